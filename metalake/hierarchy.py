"""HierarchicalSchema: the only place where schema names are split, joined or validated.

A logical name joins segments with the server's separator (`A:B:C`); a physical name joins the same segments,
percent-encoded where needed, with U+0001. Iceberg REST sends the segments themselves.
Rationale: docs/decisions/names.md.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, product

from metalake.errors import Invalid

PHYSICAL_SEPARATOR = "\x01"
DEFAULT_SEPARATOR = ":"
RESTRICTED_SEPARATORS = (":", ";", "$", "|", "~")
MAX_DEPTH = 16
MAX_SEGMENT_BYTES = 255
MAX_TWIN_PARTS = 6
MAX_PHYSICAL_BYTES = 1024

STRICT_NAME = re.compile(r"\w[\w/=-]{0,63}")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
LOOKS_BLANK = {0x2800: r"\u2800", 0x3164: r"\u3164"}  # which Unicode counts as a symbol and a letter
RESERVED_NAMES = frozenset({"", ".", "..", "*"})

_ENCODED = re.compile(r"[%\x00-\x1f\x7f-\x9f]")
_DECODED = re.compile(r"%([0-9A-F]{2})")


class SeparatorPolicy(StrEnum):
    """The allowed separators: a short list, or any safe character."""

    RESTRICTED = "restricted"
    UNRESTRICTED = "unrestricted"


def check_separator(separator: str, policy: str = SeparatorPolicy.RESTRICTED) -> None:
    """Reject a separator that could be mistaken for part of a name, a path or the stored form.

    Raises Invalid with the character, the reason and alternatives.
    """
    instead = "Try one of " + " ".join(RESTRICTED_SEPARATORS) + "."
    if policy not in set(SeparatorPolicy):
        raise Invalid(f"Separator policy {policy!r} is not known. It is 'restricted' or 'unrestricted'.")
    if len(separator) != 1:
        raise Invalid(f"Separator {separator!r} is not allowed because it must be exactly one character. {instead}")
    reason = _unsafe(separator)
    if reason is None and policy == SeparatorPolicy.RESTRICTED and separator not in RESTRICTED_SEPARATORS:
        reason = "the restricted policy does not list it"
    if reason:
        raise Invalid(f"Separator {separator!r} is not allowed because {reason}. {instead}")


def _unsafe(separator: str) -> str | None:
    if separator == ".":
        return "a dot divides catalog, schema and table in full names"
    if separator == PHYSICAL_SEPARATOR:
        return "it is reserved for the stored form"
    if separator == "/":
        return "it conflicts with path parsing"
    if separator == "%":
        return "it conflicts with percent-encoding"
    if separator.isspace() or CONTROL.match(separator) or not separator.isprintable():
        return "white space and control characters cannot be read or typed safely"
    if separator.isalnum():
        return "letters and digits are part of names"
    return None


def configured_separator() -> str:
    """The separator of this server."""
    from django.conf import settings

    return settings.METALAKE_SCHEMA_SEPARATOR


@dataclass(frozen=True, slots=True)
class HierarchicalSchema:
    """A schema's path in its catalog: one to sixteen segments, outermost first."""

    segments: tuple[str, ...]

    @classmethod
    def parse(cls, logical: str, separator: str | None = None) -> HierarchicalSchema:
        """Split a logical name. Raises Invalid for a blank name or an empty segment."""
        return cls.of(split_logical(logical, separator), separator)

    @classmethod
    def of(cls, segments: Iterable[str], separator: str | None = None) -> HierarchicalSchema:
        """The validated path of these segments, as in Iceberg REST. Raises Invalid."""
        path = cls(tuple(segments))
        path.check(separator if separator is not None else configured_separator())
        return path

    @classmethod
    def flat(cls, name: str) -> HierarchicalSchema:
        """The one-segment path of a schema in a flat catalog. Raises Invalid."""
        path = cls((name,))
        path.check(None)
        return path

    @classmethod
    def from_physical(cls, physical: str) -> HierarchicalSchema:
        """The path of a stored name, which was validated when it was written."""
        return cls(tuple(decode_segment(segment) for segment in physical.split(PHYSICAL_SEPARATOR)))

    def check(self, separator: str | None) -> None:
        """Raise Invalid unless every segment round-trips through storage and the whole name is within the limits."""
        if not self.segments:
            raise Invalid("A schema name must not be empty.", kind="schema")
        if len(self.segments) > MAX_DEPTH:
            raise Invalid(f"A schema may be nested {MAX_DEPTH} levels deep, not {len(self.segments)}.", kind="schema")
        for segment in self.segments:
            check_segment(segment, "schema")
            if separator and separator in segment:
                raise Invalid(
                    f"A schema level must not contain {separator!r}, which separates levels: {segment!r}.",
                    kind="schema",
                )
        if len(self.physical.encode()) > MAX_PHYSICAL_BYTES:
            raise Invalid(f"A schema's whole name may take {MAX_PHYSICAL_BYTES} bytes.", kind="schema")

    def logical(self, separator: str | None = None) -> str:
        return (separator or configured_separator()).join(self.segments)

    @property
    def physical(self) -> str:
        return PHYSICAL_SEPARATOR.join(encode_segment(segment) for segment in self.segments)

    @property
    def twins(self) -> list[HierarchicalSchema]:
        """The other paths with the same dotted form, which some engines use.

        For a name with many dots only two: a single level, and one level per part.
        """
        parts = ".".join(self.segments).split(".")
        gaps = [*product(".\n", repeat=len(parts) - 1)] if len(parts) <= MAX_TWIN_PARTS else []
        ways = gaps or [tuple(mark * (len(parts) - 1)) for mark in ".\n"]
        joined = ("".join(chain(*zip(parts, (*way, ""), strict=True))) for way in ways)
        return [twin for each in joined if (twin := HierarchicalSchema(tuple(each.split("\n")))) != self]

    @property
    def leaf(self) -> str:
        return self.segments[-1]

    @property
    def parent(self) -> HierarchicalSchema | None:
        return HierarchicalSchema(self.segments[:-1]) if self.is_nested else None

    @property
    def is_nested(self) -> bool:
        return len(self.segments) > 1

    @property
    def ancestors(self) -> list[HierarchicalSchema]:
        """Outermost first, without itself."""
        return [HierarchicalSchema(self.segments[:depth]) for depth in range(1, len(self.segments))]

    @property
    def scopes(self) -> list[HierarchicalSchema]:
        """Itself first, then its ancestors to the outermost."""
        return [self, *reversed(self.ancestors)]


def split_logical(logical: str, separator: str | None = None) -> list[str]:
    """The segments between separators, including empty ones: `A::B` is [A, "", B]."""
    return logical.split(separator or configured_separator())


def encode_segment(segment: str) -> str:
    """Percent-encode only `%` and control characters, so that a plain name is stored as it is."""
    if segment.isprintable() and "%" not in segment:
        return segment
    return _ENCODED.sub(lambda match: f"%{ord(match[0]):02X}", segment)


def decode_segment(segment: str) -> str:
    return _DECODED.sub(lambda match: chr(int(match[1], 16)), segment)


def check_segment(name: str, kind: str) -> None:
    """Raise Invalid unless Iceberg REST can carry the name: the rule of Iceberg catalogs."""
    if not isinstance(name, str):
        raise Invalid(f"A {kind} name must be a string.", kind=kind)
    if name in RESERVED_NAMES or name.isspace():
        raise Invalid(f"{name!r} cannot be a {kind} name.", kind=kind)
    if CONTROL.search(name):
        raise Invalid(f"A {kind} name must not contain control characters: {name!r}.", kind=kind)
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise Invalid(f"A {kind} name must be valid Unicode: {name!r}.", kind=kind) from None
    if size > MAX_SEGMENT_BYTES:
        raise Invalid(f"A {kind} name may take {MAX_SEGMENT_BYTES} bytes, not {size}.", kind=kind)


def check_new_name(name: str, kind: str) -> None:
    """As `check_segment`, for a new name: also rejects invisible characters at either end. Raises Invalid."""
    check_segment(name, kind)
    if any(end.isspace() or unicodedata.category(end) == "Cf" or ord(end) in LOOKS_BLANK for end in name[0] + name[-1]):
        visible = repr(name).translate(LOOKS_BLANK)
        raise Invalid(f"A {kind} name must not begin or end with blanks or invisible characters: {visible}.", kind=kind)


def check_strict(name: str, kind: str) -> None:
    """Raise Invalid unless a metalake, catalog, role or flat schema name is `\\w`, then up to 63 of `\\w / = -`."""
    if not isinstance(name, str) or not STRICT_NAME.fullmatch(name):
        raise Invalid(
            f"{name!r} cannot be a {kind} name: use up to 64 letters, digits or any of _ / = - and start with a "
            "letter, a digit or _.",
            kind=kind,
        )
