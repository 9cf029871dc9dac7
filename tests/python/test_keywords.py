# SPDX-License-Identifier: Apache-2.0
"""Keywords of functions that the core defines: an unknown one is told with the one that is most like it."""

import pytest

from tirx import _core


@pytest.mark.parametrize(
    "keywords, end",
    [({"exten": 4}, "; did you mean 'extent'?"), ({"colour": 4}, "'colour'")],
)
def test_unknown_keyword(keywords, end):
    ctx = _core.Context()
    x = _core.var(ctx, "param", "x", "int32")
    with pytest.raises(TypeError) as e:
        _core.prove(x, **keywords)
    name = next(iter(keywords))
    assert str(e.value).startswith(f"prove() got an unexpected keyword argument '{name}'")
    assert str(e.value).endswith(end)
