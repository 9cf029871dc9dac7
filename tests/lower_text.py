# SPDX-License-Identifier: Apache-2.0
"""Printed functions of the passes, for comparison."""

import re


def plain(text: str) -> str:
    """The text with the names of parameters' flat views (A_1) as their parameters' (A)."""
    return re.sub(r"\b([A-Z])_1\b", r"\1", text)
