# SPDX-License-Identifier: Apache-2.0
"""The reference of the PTX table is what the table generates."""

from __future__ import annotations

from ptx_reference import FILE, reference


def test_the_reference_is_the_tables():
    assert FILE.read_text() == reference(), "run: python tests/ptx_reference.py"
