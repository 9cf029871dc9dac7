# SPDX-License-Identifier: Apache-2.0
"""What is printed parses back to the same function, as written and after every pass, and prints the same again."""

from __future__ import annotations

import kernels
import odd_kernels
import pytest
import seed_kernels

import tirx
from tirx import _core

PASSES = [name for name, _, _ in _core.passes()]
MAKERS = {name: k.make for name, k in kernels.KERNELS.items()}
MAKERS |= {f"seed_{name}": s.make for name, s in seed_kernels.SEEDS.items()}
MAKERS |= odd_kernels.ODD


def assert_round_trip(f, text: str) -> None:
    try:
        again = tirx.from_source(text)
    except Exception as e:
        raise AssertionError(f"{e}\n{text}") from e
    assert tirx.structural_equal(f, again), f"{text}\n---- parsed back as ----\n{again.script()}"
    assert f.structural_hash() == again.structural_hash() if hasattr(f, "structural_hash") else True
    assert again.script() == text


@pytest.mark.parametrize("name", MAKERS)
def test_functions_parse_back(name):
    f = MAKERS[name]()
    assert_round_trip(f, f.script())


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("name", MAKERS)
def test_the_other_dialect_means_the_same(name, dialect):
    f = MAKERS[name]()
    again = tirx.from_source(f.script(dialect=dialect))
    assert tirx.structural_equal(f, again), f"{f.script(dialect=dialect)}\n----\n{again.script()}"


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
@pytest.mark.parametrize("name", MAKERS)
def test_modules_parse_back_after_every_pass(name, target):
    f = MAKERS[name]()
    m = _core.Module({f.__name__: f})
    for p in PASSES:
        m = _core.run_pass(p, m, target, {})
        text = m.script()
        try:
            again = tirx.from_source(text)
        except Exception as e:
            raise AssertionError(f"after {p}: {e}\n{text}") from e
        assert tirx.structural_equal(m, again), f"after {p}\n{text}\n---- parsed back as ----\n{again.script()}"


def test_a_module_parses_back():
    m = kernels.module_of_two()
    assert_round_trip(m, m.script())
    assert m.script().startswith(
        "# from tirx.script import ir as I\n# from tirx.script import tirx as T\n\n@I.ir_module\nclass Module:\n"
    )
