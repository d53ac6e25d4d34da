"""Identifier -> lineage, in one statement; asks no permission, but tells no miss that would betray what is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection

from authz import policy
from authz.policy import Actor, Node
from metalake.errors import NotFound
from metalake.hierarchy import HierarchicalSchema, encode_segment, split_logical
from metalake.privileges import Kind

SchemaName = str | Sequence[str]
"""A logical name as the native wire has it, or the levels as the Iceberg wire has them."""


class Ident(NamedTuple):
    """The address of an object: what is None is not part of it."""

    metalake: str
    catalog: str | None = None
    schema: SchemaName | None = None
    leaf: str | None = None

    @property
    def kind(self) -> Kind:
        if self.leaf is not None:
            return Kind.TABLE
        if self.schema is not None:
            return Kind.SCHEMA
        return Kind.METALAKE if self.catalog is None else Kind.CATALOG


@dataclass(frozen=True)
class Found:
    """An object with all above it, metalake first, and what the hot reads need of it."""

    nodes: tuple[Node, ...]
    lineage: str
    disabled: str | None
    nested: bool
    metadata_location: str | None
    provider: str | None

    @property
    def id(self) -> int:
        return self.nodes[-1].id

    @property
    def kind(self) -> str:
        return self.nodes[-1].kind

    @property
    def metalake(self) -> Node:
        return self.nodes[0]

    @property
    def catalog(self) -> Node:
        return self.nodes[1]

    @property
    def path(self) -> HierarchicalSchema:
        """The schema on this lineage."""
        return HierarchicalSchema(tuple(node.name for node in self.nodes if node.kind == Kind.SCHEMA))

    @property
    def full_name(self) -> list[str]:
        """The parts of the dotted full name: a metalake's is its own name, the others leave the metalake out."""
        if len(self.nodes) == 1:
            return [self.metalake.name]
        parts = [self.catalog.name]
        if self.path.segments:
            parts.append(self.path.logical())
        if self.kind not in (Kind.CATALOG, Kind.SCHEMA):
            parts.append(self.nodes[-1].name)
        return parts

    def above(self) -> Found:
        """The same lineage without its last node."""
        disabled = None if self.disabled == self.kind else self.disabled
        return Found(self.nodes[:-1], self.lineage.rpartition("/")[0], disabled, self.nested, None, self.provider)


_DEEPEST = """
    SELECT COALESCE(t.id, s.securable_ptr_id, c.id, m.id) FROM metalake_securable m
    LEFT JOIN metalake_securable c ON c.parent_id = m.id AND c.slot = 'catalog' AND c.name = %s
    LEFT JOIN catalogs_catalog cc ON cc.securable_ptr_id = c.id
    LEFT JOIN catalogs_schema s ON s.catalog_id = c.id
         AND s.physical_name = CASE WHEN cc.nested THEN CASE WHEN cc.folds_case THEN %s ELSE %s END
                                    WHEN cc.folds_case THEN %s ELSE %s END
    LEFT JOIN metalake_securable t
         ON t.parent_id = s.securable_ptr_id AND t.slot = 'tabular'
         AND t.name = CASE WHEN cc.folds_case THEN %s ELSE %s END
    WHERE m.parent_id IS NULL AND m.slot = 'metalake' AND m.name = %s
"""
# Each kind's own columns come by its key: joined, PostgreSQL would read every table there is.
_UP = """
    WITH RECURSIVE up(id, parent_id, kind, name, owner_user_id, owner_group_id, lineage, height) AS (
        SELECT id, parent_id, kind, name, owner_user_id, owner_group_id, lineage, 0
        FROM metalake_securable WHERE id = ({deepest})
        UNION ALL
        SELECT p.id, p.parent_id, p.kind, p.name, p.owner_user_id, p.owner_group_id, p.lineage, up.height + 1
        FROM metalake_securable p JOIN up ON p.id = up.parent_id
    )
    SELECT up.id, up.kind, up.name, up.owner_user_id, up.owner_group_id, up.lineage,
           CASE up.kind WHEN 'metalake' THEN (SELECT enabled FROM metalake_metalake WHERE securable_ptr_id = up.id)
                        WHEN 'catalog' THEN (SELECT enabled FROM catalogs_catalog WHERE securable_ptr_id = up.id) END,
           CASE up.kind WHEN 'catalog' THEN (SELECT nested FROM catalogs_catalog WHERE securable_ptr_id = up.id) END,
           CASE up.kind WHEN 'catalog' THEN (SELECT provider FROM catalogs_catalog WHERE securable_ptr_id = up.id) END,
           CASE up.kind WHEN 'table'
                        THEN (SELECT metadata_location FROM catalogs_table WHERE securable_ptr_id = up.id) END
    FROM up
    ORDER BY up.height DESC
"""
# On one line each: Django reads the whole text of a statement each time.
_BY_NAMES, _BY_ID = (" ".join(_UP.format(deepest=deepest).split()) for deepest in (_DEEPEST, "%s"))


def nearest(ident: Ident) -> Found | None:
    """The object, or the deepest container on the way to it that exists; None where the metalake does not.

    A table's nearest container is its schema itself, a schema's its catalog.
    """
    nested, flat = schema_keys(ident.schema)
    names = [part for key in (nested, flat, ident.leaf) for part in (_folded(key), key)]
    return _fetch(_BY_NAMES, [ident.catalog, *names, ident.metalake])


def find(actor: Actor, ident: Ident) -> Found:
    """The object, whether the actor may see it or not.

    Raises NotFound of what is missing first on the way to it, and below something hidden as if that were missing.
    """
    found = nearest(ident)
    if found is None or not is_whole(ident, found):
        raise miss(actor, ident, found)
    return found


def is_whole(ident: Ident, found: Found) -> bool:
    """Whether it is the object of the address, and not only on the way to it."""
    return found.kind == Kind.VIEW or _depth(found) >= _wanted(ident)


def miss(actor: Actor, ident: Ident, found: Found | None) -> NotFound:
    """How it is told that an address leads no further than this.

    All that is asked of an object that is there and hidden is asked, of the store too, so that neither takes longer.
    """
    kind = _missing_kind(found)
    nodes, names = (found.nodes, found.full_name) if found else ((), [])
    absent = _Absent((*nodes, Node(0, kind, "", None, None)), [*names, ""])
    told = policy.unseen(actor, absent)
    if told.kind != kind:
        return told
    if kind == Kind.SCHEMA:
        policy.seek_path(actor, absent)
    return NotFound(_miss(ident, found), kind=kind)


class _Absent(NamedTuple):
    """The lineage that a missing object would have."""

    nodes: Sequence[Node]
    full_name: Sequence[str]


def by_id(securable_id: int) -> Found | None:
    return _fetch(_BY_ID, [securable_id])


def _fetch(sql: str, parameters: list) -> Found | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows = cursor.fetchall()
    if not rows:
        return None
    nodes = tuple(Node(*row[:5]) for row in rows)
    disabled = next((row[1] for row in rows if row[6] is not None and not row[6]), None)
    catalog = rows[1] if len(rows) > 1 else (None,) * 10
    return Found(nodes, rows[-1][5], disabled, bool(catalog[7]), rows[-1][9], catalog[8])


def schema_keys(name: SchemaName | None) -> tuple[str | None, str | None]:
    """The physical names that this name would have in a nested and in a flat catalog."""
    if name is None:
        return None, None
    levels = split_logical(name) if isinstance(name, str) else list(name)
    nested = HierarchicalSchema(tuple(levels)).physical
    if isinstance(name, str):
        return nested, encode_segment(name)
    return nested, encode_segment(levels[0]) if len(levels) == 1 else None


def _folded(key: str | None) -> str | None:
    """As a catalog keeps it that knows lower case only."""
    return None if key is None else key.lower()


def logical(name: SchemaName) -> str:
    return name if isinstance(name, str) else HierarchicalSchema(tuple(name)).logical()


def _depth(found: Found) -> int:
    return {Kind.METALAKE: 1, Kind.CATALOG: 2, Kind.SCHEMA: 3}.get(Kind(found.kind), 4)


def _wanted(ident: Ident) -> int:
    return 1 + sum(part is not None for part in ident[1:])


def _missing_kind(found: Found | None) -> Kind:
    if found is None:
        return Kind.METALAKE
    return {Kind.METALAKE: Kind.CATALOG, Kind.CATALOG: Kind.SCHEMA}.get(Kind(found.kind), Kind.TABLE)


def _miss(ident: Ident, found: Found | None) -> str:
    kind = _missing_kind(found)
    if kind == Kind.METALAKE:
        return does_not_exist(kind, [ident.metalake])
    parts = [ident.catalog or ""]
    if kind != Kind.CATALOG:
        parts.append(logical(ident.schema or ""))
    if kind == Kind.TABLE:
        parts.append(ident.leaf or "")
    return does_not_exist(kind, parts)


def does_not_exist(kind: str, parts: Sequence[str]) -> str:
    """What a miss and a hidden object are both answered with."""
    return f"{kind.capitalize()} {'.'.join(parts)} does not exist."
