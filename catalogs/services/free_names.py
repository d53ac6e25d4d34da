"""Check that a name is free: tables and views share one namespace in a schema.

The error messages are those that the Iceberg REST compatibility kit expects.
"""

from __future__ import annotations

from dataclasses import replace

from metalake import prefetch
from metalake.errors import AlreadyExists, Invalid
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import KINDS, Kind, slot_of
from metalake.lineage import Located
from metalake.statements import fetch


def require_free(home: Located, name: str, kind: Kind = Kind.TABLE, *, is_there: bool = False) -> None:
    """Raise AlreadyExists if the schema has an object with the name of a new object of this kind.

    Raises Invalid for a name ambiguous with one in another schema, unless the object already exists outside.
    """
    if there := _holder(home, name, kind):
        same = "already exists" if there is kind else "with same name already exists"
        full_name = ".".join((*home.path.segments, name))
        raise AlreadyExists(f"{KINDS[there].label} {same}: {full_name}", kind=kind)
    if not is_there:
        _require_unlike(home, name, kind)


def require_free_for_rename(leaf: Located, home: Located, name: str) -> None:
    """The same for an object that is to be renamed or moved."""
    if there := _holder(home, name, leaf.kind):
        old, new = (".".join((*each.path.segments, last)) for each, last in ((leaf, leaf.name), (home, name)))
        raise AlreadyExists(f"Cannot rename {old} to {new}. {KINDS[there].label} already exists", kind=leaf.kind)
    _require_unlike(home, name, leaf.kind)


def _require_unlike(home: Located, name: str, kind: Kind) -> None:
    """Raise Invalid for `b.t` in schema `a` if schema `["a", "b"]` exists: its `t` has the same dotted name."""
    parts = name.split(".")
    paths = [HierarchicalSchema((*home.path.segments, *parts[:cut])) for cut in range(1, len(parts))]
    physical = [each.physical for path in paths for each in (path, *path.twins)]
    if not physical:
        return
    if fetch(_SCHEMAS.replace("{names}", ", ".join(["%s"] * len(physical))), [home.catalog.id, *physical]):
        raise Invalid(
            f"The name {name!r} in {list(home.path.segments)} collides with a schema when levels are joined with dots: "
            "choose another name.",
            kind=kind,
        )


def _holder(home: Located, name: str, kind: Kind) -> Kind | None:
    """The kind of the object that has the name; no statement if this transaction has read it already."""
    ahead = prefetch.take(replace(home.address, leaf=name, leaf_kind=kind))
    if ahead is not None and ahead.located is not None:
        return None if ahead.located.id == home.id else ahead.located.kind
    rows = fetch(_NAMED, [home.id, slot_of(kind), name])
    return Kind(rows[0][0]) if rows else None


_NAMED = "SELECT kind FROM metalake_securable WHERE parent_id = %s AND slot = %s AND name = %s"
_SCHEMAS = "SELECT 1 FROM catalogs_schema WHERE catalog_id = %s AND physical_name IN ({names}) LIMIT 1"
