"""The folders of schemas and tables: their defaults, and where a creator may put a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from formats.iceberg.locations import canonical, is_inside, is_under, normalise, overlap, real_path, steps_below
from metalake.errors import Invalid
from metalake.hierarchy import HierarchicalSchema

LONGEST, LONGEST_PATH = 64, 512  # of a folder's name, and of all of a schema's


def schema_folder(warehouse: str, levels: Sequence[str]) -> str:
    """`<warehouse>/<levels>`, the default folder of a schema's tables; different schemas have different folders.

    A name that is not a valid folder name is cleaned and gets a short hash. A schema's folder never contains a dash.
    """
    folders = [_folder(level) for level in levels]
    if len("/".join(folders)) > LONGEST_PATH:
        folders = [f"~{_digest(HierarchicalSchema(tuple(levels)).physical, 40)}"]
    return "/".join([normalise(warehouse), *folders])


def table_folder(folder: str, name: str, uuid: str | UUID) -> str:
    """`<folder>/<name>-<uuid>`: the uuid makes it unique, the dash distinguishes it from a schema's folder."""
    return f"{normalise(folder)}/{_cleaned(name)}-{UUID(str(uuid))}"


def _folder(name: str) -> str:
    cleaned = _cleaned(name)
    return cleaned if cleaned == name else f"{cleaned[: LONGEST - 17]}~{_digest(name, 16)}"


def _cleaned(name: str) -> str:
    # Engines treat folders with a leading dot or underscore as hidden.
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("._")[:LONGEST].rstrip(".") or "x"


def _digest(name: str, digits: int) -> str:
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


@dataclass(frozen=True)
class Ground:
    """The locations that the creator of a table in one schema may choose.

    Anywhere below `own`; below `shared`, which also has the folders of other schemas, in a folder with a dash in its
    name, which no schema's has; in the `opened` places. Never in or around `apart`, the places of other schemas.
    """

    own: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()

    def holds(self, place: str) -> bool:
        """Whether a table may be at this place; local symbolic links are followed. Raises Invalid."""
        place = real_path(place)
        if any(overlap(place, real_path(other)) for other in _nameable(self.apart)):
            return False
        return (
            any(is_inside(place, real_path(folder)) for folder in _nameable(self.own))
            or any(_is_beside_schemas(place, real_path(folder)) for folder in _nameable(self.shared))
            or any(is_under(place, real_path(other)) for other in _nameable(self.opened))
        )

    def is_among_schemas(self, place: str) -> bool:
        """Whether a place is in a folder shared with other schemas. Raises Invalid."""
        return any(is_inside(real_path(place), real_path(folder)) for folder in _nameable(self.shared))

    def __str__(self) -> str:
        """The allowed places, for error messages."""
        ways = [f"below {folder}" for folder in self.own]
        ways += [f"below {folder} in a folder whose name has a dash" for folder in self.shared]
        return " or ".join([*ways, *(f"in {place}" for place in self.opened)]) or "where it is put by default"


def _is_beside_schemas(place: str, folder: str) -> bool:
    return is_inside(place, folder) and has_dash(place, folder)


def has_dash(place: str, folder: str) -> bool:
    """Whether the first step from a folder to a place in it has a dash."""
    return any("-" in step for step in steps_below(place, folder)[:1])


def _nameable(places: Iterable[str]) -> Iterable[str]:
    """The places without malformed ones, which a remote system may have and which cannot be compared."""
    for place in places:
        try:
            canonical(place)
        except Invalid:
            continue
        yield place


def divided(places: str | None) -> list[str]:
    """The places in a comma-separated list."""
    return [place.strip() for place in (places or "").split(",") if place.strip()]
