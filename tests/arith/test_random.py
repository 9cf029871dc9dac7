# SPDX-License-Identifier: Apache-2.0
"""Random integer expressions: simplifying keeps the value, bounds and divisors contain it, proofs are true."""

from __future__ import annotations

import arith_model as model
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tirx import _core

quick = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def make(problem):
    dtype, tree, ranges, samples = problem
    ctx = _core.Context()
    variables = [_core.var(ctx, "let", name, dtype) for name in "xyz"]
    e = model.build(ctx, dtype, variables, tree)
    assume(e is not None)
    known = {}
    for v, (lo, hi) in zip(variables, ranges, strict=True):
        if (lo, hi) != model.limits(dtype) and hi < 1 << 63:
            known[v] = (_core.literal(ctx, dtype, lo), _core.literal(ctx, dtype, hi))
    return ctx, dtype, variables, e, known, [dict(zip(variables, s, strict=True)) for s in samples]


@quick
@given(model.problems())
def test_simplified_expressions_have_the_same_value(problem):
    ctx, dtype, _, e, known, samples = make(problem)
    s = _core.simplify(ctx, e, known)
    assert s.dtype == e.dtype
    for values in samples:
        assert model.evaluate(s, values) == model.evaluate(e, values), (str(e), str(s), known, values)


@quick
@given(model.problems())
def test_simplified_expressions_are_no_larger_and_stay(problem):
    ctx, dtype, _, e, known, _ = make(problem)
    s = _core.simplify(ctx, e, known)
    assert model.size(s) <= model.size(e), (str(e), str(s))
    again = _core.simplify(ctx, s, known)
    assert again.same_as(s), (str(e), str(s), str(again))


@quick
@given(model.problems())
def test_bounds_contain_every_value(problem):
    ctx, dtype, _, e, known, samples = make(problem)
    lo, hi = _core.bounds(ctx, e, known)
    for values in samples:
        v = model.evaluate(e, values)
        assert (lo is None or lo <= v) and (hi is None or v <= hi), (str(e), known, values, lo, hi, v)


@quick
@given(model.problems(), st.integers(2, 8), st.integers(0, 7))
def test_divisors_hold(problem, m, r):
    ctx, dtype, variables, e, known, samples = make(problem)
    lo, hi = model.limits(dtype)
    multiples = {variables[0]: (m, r % m)}
    k, rest = _core.divisor(ctx, e, None, multiples)
    for values in samples:
        x = values[variables[0]]
        x = x - (x - r) % m  # the nearest value below that fits the fact
        if not lo <= x <= hi:
            continue
        v = model.evaluate(e, {**values, variables[0]: x})
        if dtype == "uint64" and k == 0:
            rest %= 1 << 64
        assert v == rest if k == 0 else v % k == rest, (str(e), multiples, x, k, rest, v)


@quick
@given(
    model.problems(),
    model.trees(),
    model.trees(),
    st.sampled_from(model.COMPARISONS),
    st.sampled_from(model.COMPARISONS),
)
def test_proofs_are_true_where_the_assumption_holds(problem, b, c, op, op2):
    ctx, dtype, variables, e, known, samples = make(problem)
    right = model.build(ctx, dtype, variables, b)
    third = model.build(ctx, dtype, variables, c)
    assume(right is not None and third is not None)
    fact = _core.op(ctx, op, e, right)
    claim = _core.op(ctx, op2, e, third)
    told = _core.prove(ctx, claim, known, assume=[fact])
    simpler = _core.simplify(ctx, third, known, assume=[fact])
    for values in samples:
        if not model.evaluate(fact, values):
            continue
        if told is not None:
            assert bool(model.evaluate(claim, values)) is told, (str(fact), str(claim), known, values)
        assert model.evaluate(simpler, values) == model.evaluate(third, values), (str(fact), str(third), values)


@quick
@given(model.problems(), model.trees())
def test_what_is_in_range_stays_there(problem, tree):
    ctx, dtype, variables, e, known, samples = make(problem)
    extent = model.build(ctx, dtype, variables, tree)
    assume(extent is not None)
    if _core.prove(ctx, e, known, extent=extent):
        for values in samples:
            assert 0 <= model.evaluate(e, values) < model.evaluate(extent, values), (str(e), str(extent), values)
