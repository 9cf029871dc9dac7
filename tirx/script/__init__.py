# SPDX-License-Identifier: Apache-2.0
"""The language: `tirx` is the namespace T, `ir` the namespace I, and behind them the parser."""
