"""tirx: a GPU kernel language embedded in Python, and its compiler."""

__version__ = "0.1.0"
