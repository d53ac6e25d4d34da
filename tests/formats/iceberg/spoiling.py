"""Garbage for tests that spoil something good: whatever a client may send instead of it."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 12),
    st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**30]),
    st.floats(),
    st.sampled_from(["", "struct", "list", "main", "decimal(", "bucket[0]", "identity", "int", "-1", "ä" * 300]),
    st.text(max_size=6),
)
GARBAGE = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "fields", "id", "name", "key", "element", "snapshot-id"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, the value itself included."""
    yield path
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from places(node[key], (*path, key))


def spoilt(draw, good):
    """A copy of something good with a few places replaced by garbage, or left out."""
    bad: Any = [deepcopy(good)]
    for _ in range(draw(st.integers(1, 3))):
        whole: tuple[Any, ...] = (0, *draw(st.sampled_from(sorted(places(bad[0]), key=repr))))
        path, last = whole[:-1], whole[-1]
        holder: Any = bad
        for key in path:
            holder = holder[key]
        if isinstance(holder, dict) and draw(st.booleans()):
            del holder[last]
        else:
            holder[last] = draw(GARBAGE)
    return bad[0]
