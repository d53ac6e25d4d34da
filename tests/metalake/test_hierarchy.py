"""Names of schemas: how they are split, joined, stored and refused.

Sources: docs/decisions/names.md, and the vectors by which the reference implementation tests its own.
"""

from __future__ import annotations

import random
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metalake.errors import Invalid
from metalake.full_names import dotted, undotted
from metalake.hierarchy import (
    CONTROL,
    MAX_DEPTH,
    MAX_PHYSICAL_BYTES,
    MAX_SEGMENT_BYTES,
    HierarchicalSchema,
    SeparatorPolicy,
    check_segment,
    check_separator,
    check_strict,
    decode_segment,
    encode_segment,
    split_logical,
)
from tests.cases import each
from tests.profiles import weighing

ROUND_TRIPS = 100_000


# The reference implementation's vectors


@pytest.mark.parametrize(
    ("logical", "separator", "physical"),
    [("A:B:C", ":", "A\x01B\x01C"), ("ns|sub|leaf", "|", "ns\x01sub\x01leaf"), ("sales", ":", "sales")],
)
def test_logical_and_physical(logical: str, separator: str, physical: str) -> None:
    path = HierarchicalSchema.parse(logical, separator)
    assert path.physical == physical
    assert HierarchicalSchema.from_physical(physical) == path
    assert path.logical(separator) == logical


@pytest.mark.parametrize("blank", ["", " ", "   ", "\t", "\u3000"])
def test_a_blank_name_is_refused(blank: str) -> None:
    for read in (HierarchicalSchema.parse, HierarchicalSchema.flat, lambda name: HierarchicalSchema.of([name])):
        with pytest.raises(Invalid):
            read(blank)
    for names in ([blank, "A"], ["A", blank]):
        with pytest.raises(Invalid):
            HierarchicalSchema.of(names, ":")


@pytest.mark.parametrize(("name", "nested"), [("A:B", True), ("AB", False), ("A", False), ("A.B", False)])
def test_is_nested(name: str, nested: bool) -> None:
    assert HierarchicalSchema.parse(name, ":").is_nested is nested


@pytest.mark.parametrize(
    ("name", "segments"),
    [("A::B", ["A", "", "B"]), ("A:", ["A", ""]), (":A", ["", "A"]), ("A", ["A"]), ("", [""]), (":", ["", ""])],
)
def test_splitting_keeps_empty_segments(name: str, segments: list[str]) -> None:
    assert split_logical(name, ":") == segments


@pytest.mark.parametrize("name", ["A::B", "A:", ":A", ":", "::"])
def test_an_empty_segment_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        HierarchicalSchema.parse(name, ":")


@pytest.mark.parametrize(("name", "ancestors"), [("A:B:C", ["A", "A:B"]), ("A:B", ["A"]), ("root", [])])
def test_ancestors_are_outermost_first(name: str, ancestors: list[str]) -> None:
    path = HierarchicalSchema.parse(name, ":")
    assert [above.logical(":") for above in path.ancestors] == ancestors
    assert (path.parent.logical(":") if path.parent else None) == (ancestors[-1] if ancestors else None)


@pytest.mark.parametrize(("name", "scopes"), [("A:B:C", ["A:B:C", "A:B", "A"]), ("root", ["root"])])
def test_scopes_begin_with_the_schema_itself(name: str, scopes: list[str]) -> None:
    assert [scope.logical(":") for scope in HierarchicalSchema.parse(name, ":").scopes] == scopes


def test_the_separator_is_the_servers(settings: Any) -> None:
    assert HierarchicalSchema.parse("A:B").segments == ("A", "B")
    settings.METALAKE_SCHEMA_SEPARATOR = "|"
    assert HierarchicalSchema.parse("A|B:C").segments == ("A", "B:C")
    assert HierarchicalSchema(("A", "B")).logical() == "A|B"
    with pytest.raises(Invalid):
        HierarchicalSchema.of(["A|B"])


# The separator


@pytest.mark.parametrize("separator", [":", ";", "$", "|", "~"])
def test_the_restricted_policy_lists_five(separator: str) -> None:
    for policy in SeparatorPolicy:
        check_separator(separator, policy)


OTHER_PRINTABLE = [mark for mark in string.punctuation if mark not in ":;$|~./%"] + ["§", "→", "\u00b7", "😀"]


@each("separator", OTHER_PRINTABLE)
def test_the_unrestricted_policy_takes_any_safe_character(separator: str) -> None:
    check_separator(separator, SeparatorPolicy.UNRESTRICTED)
    with pytest.raises(Invalid, match="restricted policy"):
        check_separator(separator)


NEVER = {
    ".": "dot",
    "\x01": "stored form",
    "/": "path parsing",
    "%": "percent-encoding",
    " ": "white space",
    "\t": "white space",
    "\x00": "control",
    "\x1f": "control",
    "\x7f": "control",
    "\u200b": "control",
    "\u2028": "control",
    "\u3000": "white space",
    "\udc80": "control",
    "a": "letters",
    "Ω": "letters",
    "7": "digits",
    "²": "digits",
    "": "exactly one",
    "::": "exactly one",
}


@each("policy", SeparatorPolicy)
@each("separator", NEVER)
def test_never_a_separator(separator: str, policy: SeparatorPolicy) -> None:
    """The refusal has the character, the reason and what to use instead."""
    with pytest.raises(Invalid, match=NEVER[separator]) as refused:
        check_separator(separator, policy)
    assert repr(separator) in refused.value.message
    assert "Try one of : ; $ | ~" in refused.value.message


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(Invalid, match="'restricted' or 'unrestricted'"):
        check_separator(":", "lenient")


# What a segment may be

CARRIED = ["a", "a.b", "a b", " a", "a ", "é", "e\u0301", "名前", "😀", "A/B", "a%2Fb", "%41", "?", "#", "a+b", "..."]
CARRIED += ["'", '"', "`", "\\", "${x}", "-- ", "SELECT", "\u200f", "\u00a0x", "a*", "**", "-", "_", "0", "NULL"]


@each("name", CARRIED)
def test_a_segment_is_whatever_the_wire_carries(name: str) -> None:
    path = HierarchicalSchema.of([name, "b"], ":")
    assert HierarchicalSchema.from_physical(path.physical) == path
    assert HierarchicalSchema.parse(path.logical(":"), ":") == path


REFUSED = ["", ".", "..", "*", "a\x00", "\x01", "a\x1fb", "\x7f", "\x85", "\u2028", "a\u2029", "\ud800", "a\n", "\r"]


@each("name", REFUSED)
def test_never_a_segment(name: str) -> None:
    for place in range(3):
        segments = ["x", "y", "z"]
        segments[place] = name
        with pytest.raises(Invalid):
            HierarchicalSchema.of(segments, ":")
    with pytest.raises(Invalid):
        check_segment(name, "table")


@pytest.mark.parametrize("name", [None, 1, b"a", ["a"], {"a": 1}, True])
def test_a_segment_is_a_string(name: Any) -> None:
    for check in (check_segment, check_strict):
        with pytest.raises(Invalid):
            check(name, "table")


@pytest.mark.parametrize("separator", [":", ";", "$", "|", "~"])
def test_the_separator_is_no_part_of_a_segment(separator: str) -> None:
    with pytest.raises(Invalid, match="separates levels"):
        HierarchicalSchema.of(["a", f"b{separator}c"], separator)
    HierarchicalSchema.flat(f"b{separator}c")  # whether a flat catalog takes it is its policy's


@pytest.mark.parametrize("letter", ["a", "é", "😀"])
def test_the_limits(letter: str) -> None:
    size = len(letter.encode())
    longest = letter * (MAX_SEGMENT_BYTES // size)
    HierarchicalSchema.of([longest], ":")
    with pytest.raises(Invalid, match="255 bytes"):
        HierarchicalSchema.of([longest + letter], ":")
    HierarchicalSchema.of(["a"] * MAX_DEPTH, ":")
    with pytest.raises(Invalid, match="16 levels"):
        HierarchicalSchema.of(["a"] * (MAX_DEPTH + 1), ":")
    with pytest.raises(Invalid, match="1024 bytes"):
        HierarchicalSchema.of([longest] * 5, ":")


def test_the_whole_limit_counts_what_is_stored() -> None:
    whole = HierarchicalSchema.of(["a" * 255] * 3 + ["a" * 254] + ["a"], ":")
    assert len(whole.physical.encode()) == MAX_PHYSICAL_BYTES
    with pytest.raises(Invalid, match="1024 bytes"):
        HierarchicalSchema.of(["a" * 255] * 3 + ["a" * 254] + ["ab"], ":")
    with pytest.raises(Invalid, match="1024 bytes"):
        HierarchicalSchema.of(["%" * 200] * 2, ":")  # each is stored as three characters


def test_no_schema_has_no_name() -> None:
    with pytest.raises(Invalid):
        HierarchicalSchema.of([], ":")


STRICT = ["a", "_", "7", "A" * 64, "a/b", "a=b", "a-b", "é", "a/=-_"]
NOT_STRICT = ["", "-a", "/a", "=a", "a.b", "a b", "a:b", "a\n", "A" * 65, "a%", "*", ".", "a\x00", " a", "a,b"]


@each("name", STRICT)
def test_the_strict_rule_takes(name: str) -> None:
    check_strict(name, "catalog")


@each("name", NOT_STRICT)
def test_the_strict_rule_refuses(name: str) -> None:
    with pytest.raises(Invalid):
        check_strict(name, "catalog")


# How it is stored


@each(
    "segment, stored",
    [
        ("plain", "plain"),
        ("a.b c/é", "a.b c/é"),
        ("%", "%25"),
        ("%25", "%2525"),
        ("100%", "100%25"),
        ("\x01", "%01"),
        ("\x1f\x7f\x80", "%1F%7F%80"),
        ("%01", "%2501"),
    ],
)
def test_only_percent_and_controls_are_encoded(segment: str, stored: str) -> None:
    assert encode_segment(segment) == stored
    assert decode_segment(stored) == segment


ALPHABET = "aAbB.%:|~ é\u0301名😀\x00\x01\x02\x1f\x7f\x80\x9f0125Ff/\\"


def random_paths(seed: int, count: int) -> list[tuple[str, ...]]:
    """Short and look-alike, from few characters: where an encoding would confuse two of them, it confuses these."""
    rng = random.Random(seed)
    return [
        tuple("".join(rng.choices(ALPHABET, k=rng.randint(0, 5))) for _ in range(rng.randint(1, 5)))
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_distinct_paths_are_stored_as_distinct_names(seed: int) -> None:
    stored: dict[str, tuple[str, ...]] = {}
    for segments in random_paths(seed, ROUND_TRIPS // 2):
        physical = HierarchicalSchema(segments).physical
        assert stored.setdefault(physical, segments) == segments
        assert HierarchicalSchema.from_physical(physical).segments == segments
    assert len(stored) > ROUND_TRIPS // 4


def test_what_is_accepted_comes_back_from_every_form() -> None:
    accepted = 0
    for segments in random_paths(3, ROUND_TRIPS // 2):
        try:
            path = HierarchicalSchema.of(segments, ":")
        except Invalid:
            continue
        accepted += 1
        assert HierarchicalSchema.parse(path.logical(":"), ":") == path
        assert undotted(dotted(segments)) == list(segments)
        assert not CONTROL.search(path.physical.replace("\x01", ""))
    assert accepted > 1000


@weighing(10)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=6), st.lists(st.text(max_size=20), min_size=1, max_size=6))
def test_two_paths_are_stored_alike_only_if_they_are_one(one: list[str], other: list[str]) -> None:
    first, second = HierarchicalSchema(tuple(one)), HierarchicalSchema(tuple(other))
    assert (first.physical == second.physical) == (one == other)
    assert HierarchicalSchema.from_physical(first.physical) == first


def test_ancestors_are_what_a_stored_name_begins_with() -> None:
    """The storage's view of the tree and ours are one: no other schema's stored name is such a beginning."""
    path = HierarchicalSchema.of(["A", "A", "AB"], ":")
    parts = path.physical.split("\x01")
    beginnings = ["\x01".join(parts[:depth]) for depth in range(1, len(parts))]
    assert [above.physical for above in path.ancestors] == beginnings


# Full names


@pytest.mark.parametrize(
    ("names", "full"),
    [
        (["lake", "A:B", "t"], "lake.A:B.t"),
        (["lake", "a.b", "t"], "lake.a%2Eb.t"),
        (["lake", "50%"], "lake.50%25"),
        (["lake", "%2E"], "lake.%252E"),
    ],
)
def test_a_full_name_is_decoded_once(names: list[str], full: str) -> None:
    assert dotted(names) == full
    assert undotted(full) == names


def test_a_full_name_may_be_encoded_in_lower_case() -> None:
    assert undotted("lake.a%2eb") == ["lake", "a.b"]
