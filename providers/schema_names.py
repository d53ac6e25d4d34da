"""Schema names in an outside system: a flat one stores a nested path as a single name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metalake.errors import Invalid
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from providers.remote_objects import Levels


@dataclass(frozen=True, kw_only=True)
class SchemaNames:
    """How one catalog's schemas are named in its outside system."""

    label: str  # of the system
    nests_there: bool  # whether the system itself has nested schemas
    nests_here: bool  # whether this catalog has them on top of a flat system
    folds_case: bool
    longest: int  # bytes of UTF-8
    check: Callable[[str], str] = str  # returns the name in the system's form; raises Invalid

    def levels_of(self, path: HierarchicalSchema) -> Levels:
        """The levels of a schema in the system. Raises Invalid for a name that is too long or not accepted there."""
        if self.nests_there:
            return list(path.segments)
        name = encode_path(path.segments) if self.nests_here else path.leaf
        if len(name.encode()) > self.longest:
            raise Invalid(
                f"Schema {path.logical()} would be called {name!r} in {self.label}, where a name may take "
                f"{self.longest} characters.",
                kind=Kind.SCHEMA,
            )
        return [self.check(name)]

    def path_of(self, levels: Levels) -> HierarchicalSchema:
        """The path in this catalog of the system's schema with these levels. Raises Invalid for an invalid name."""
        if self.nests_there:
            return HierarchicalSchema.of(levels)
        if self.nests_here:
            return HierarchicalSchema.of(decode_path(levels[0]))
        return HierarchicalSchema.flat(levels[0])

    def folded(self, name: str) -> str:
        """The name of a schema, or of an object in one, as the system stores it."""
        return name.lower() if self.folds_case else name


# Flat systems accept lower-case letters, digits and underscores; other characters are escaped as in XML names.
_SPELT = re.compile(r"_x([0-9a-f]{4,6})_")
_ODD = re.compile(r"[^a-z0-9_]|_(?=x[0-9a-f]{4,6}_)")
_LEVEL = "\x1f"


def encode_path(segments: Sequence[str]) -> str:
    """A path as one name: `sales`, `emea` becomes `sales_x001f_emea`. Different paths get different names."""
    return _ODD.sub(lambda odd: f"_x{ord(odd[0]):04x}_", _LEVEL.join(segments))


def decode_path(name: str) -> list[str]:
    """The path of a name that `encode_path` returned; any other name is a path of one level."""

    def spelt(spelling: re.Match[str]) -> str:
        code = int(spelling[1], 16)
        return chr(code) if code <= 0x10FFFF else spelling[0]

    segments = _SPELT.sub(spelt, name).split(_LEVEL)
    return segments if encode_path(segments) == name else [name]
