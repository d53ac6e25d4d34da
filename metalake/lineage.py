"""An object's address (names) and lineage (the rows of itself and its ancestors).

Both APIs, the pages and authorization use these two; neither depends on the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from metalake.errors import NotFound
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import BESIDE_CATALOGS, CONTAINERS, LEAVES, TOP_LEAVES, Kind

SchemaName = str | Sequence[str]
"""A logical name, as in the native API, or a list of levels, as in Iceberg REST."""


class Node(NamedTuple):
    """One object on a lineage, with what authorization needs; the fields are columns of Securable."""

    id: int
    kind: str
    name: str
    owner_user_id: int | None
    owner_group_id: int | None


class Lineage(Protocol):
    """An object with its ancestors, the metalake first and itself last."""

    @property
    def nodes(self) -> Sequence[Node]: ...

    @property
    def full_name(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The fully qualified name of an object; a part that is None is not on the path.

    `leaf` is the name of an object in a schema or, like a role, directly in the metalake; `leaf_kind` is its kind.
    """

    metalake: str
    catalog: str | None = None
    schema: SchemaName | None = None
    leaf: str | None = None
    leaf_kind: Kind = Kind.TABLE

    @property
    def kind(self) -> Kind:
        if self.leaf is not None:
            return self.leaf_kind
        if self.schema is not None:
            return Kind.SCHEMA
        return Kind.METALAKE if self.catalog is None else Kind.CATALOG

    @property
    def names(self) -> tuple[str, ...]:
        """The parts of the full name: a metalake's own name, for others without the metalake."""
        schema = None if self.schema is None else logical(self.schema)
        return tuple(name for name in (self.catalog, schema, self.leaf) if name is not None) or (self.metalake,)

    @property
    def depth(self) -> int:
        """The number of names on the path, metalake included; a schema's levels count as one name."""
        return 1 + (self.catalog is not None) + (self.schema is not None) + (self.leaf is not None)

    def of_catalog(self) -> Address:
        """The address of the catalog on the path."""
        return Address(metalake=self.metalake, catalog=self.catalog)

    def of_schema(self) -> Address:
        """The address of the schema on the path."""
        return Address(metalake=self.metalake, catalog=self.catalog, schema=self.schema)


def address_in(names: Mapping[str, str]) -> Address:
    """The address of the names in a native path, keyed by kind."""
    kind = next((kind for kind in (*LEAVES, *TOP_LEAVES) if kind in names), Kind.TABLE)
    catalog, schema, leaf = (names.get(part) for part in ("catalog", "schema", kind))
    return Address(metalake=names["metalake"], catalog=catalog, schema=schema, leaf=leaf, leaf_kind=kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A resolved object with its ancestors: the metalake first, itself last.

    Only `catalogs.lookup` sets the other fields: `nested`, `catalog_type`, `provider` and `properties` (JSON with
    secrets masked) of the catalog; `own_properties` of the object; `disabled`, the kind of the disabled ancestor or
    of the object itself; a table's `metadata_location`.
    """

    nodes: tuple[Node, ...]
    disabled: str | None = None
    nested: bool = False
    catalog_type: str | None = None
    provider: str | None = None
    properties: str | None = None
    own_properties: str | None = None
    metadata_location: str | None = None

    @property
    def node(self) -> Node:
        """The object itself."""
        return self.nodes[-1]

    @property
    def id(self) -> int:
        return self.nodes[-1].id

    @property
    def kind(self) -> Kind:
        return Kind(self.nodes[-1].kind)

    @property
    def name(self) -> str:
        return self.nodes[-1].name

    @property
    def metalake(self) -> Node:
        return self.nodes[0]

    @property
    def catalog(self) -> Node:
        return self.nodes[1]

    @property
    def lineage(self) -> str:
        """The ids from the metalake to the object, as Securable stores them: "/1/5/9"."""
        return lineage_text(self)

    @property
    def address(self) -> Address:
        """The fully qualified name of the object."""
        if self.kind == Kind.METALAKE:
            return Address(metalake=self.name)
        if self.kind in BESIDE_CATALOGS:
            return Address(metalake=self.metalake.name, leaf=self.name, leaf_kind=self.kind)
        names = Address(metalake=self.metalake.name, catalog=self.catalog.name, schema=self.path.segments or None)
        return names if self.kind in CONTAINERS else replace(names, leaf=self.name, leaf_kind=self.kind)

    @property
    def path(self) -> HierarchicalSchema:
        """The path of the schema on this lineage."""
        return HierarchicalSchema(tuple(node.name for node in self.nodes if node.kind == Kind.SCHEMA))

    @property
    def full_name(self) -> list[str]:
        """The parts of the dotted full name: a metalake's own name, for others without the metalake."""
        last = self.nodes[-1]
        if last.kind in _NAMED_ALONE:
            return [last.name]
        parts = [self.catalog.name]
        path = self.path
        if path.segments:
            parts.append(path.logical())
        if last.kind != Kind.SCHEMA:
            parts.append(last.name)
        return parts

    @property
    def top(self) -> Located:
        """The metalake alone."""
        return Located(nodes=self.nodes[:1])

    def above(self) -> Located:
        """The parent of the object. Raises ValueError for a metalake."""
        if len(self.nodes) == 1:
            raise ValueError("Nothing is above a metalake.")
        disabled = None if self.disabled == self.kind else self.disabled
        return replace(self, nodes=self.nodes[:-1], disabled=disabled, own_properties=None, metadata_location=None)

    def below(self, *nodes: Node) -> Located:
        """The descendant at the end of these nodes, which continue this lineage."""
        return replace(self, nodes=(*self.nodes, *nodes), own_properties=None, metadata_location=None)

    def missing(self) -> NotFound:
        """The error for this object if it is missing or hidden from the caller."""
        return missing(self.kind, self.full_name)


_NAMED_ALONE = frozenset({Kind.METALAKE, Kind.CATALOG, *BESIDE_CATALOGS})


def lineage_text(lineage: Lineage) -> str:
    """The ids from the metalake to the object, as Securable stores them: "/1/5/9"."""
    return "".join(f"/{node.id}" for node in lineage.nodes)


def missing(kind: str, names: Sequence[str], *, error_kind: str | None = None) -> NotFound:
    """The common error for missing and hidden objects; `error_kind` is the kind to report, if it differs."""
    word = kind.capitalize().replace("_", " ")
    return NotFound(f"{word} {'.'.join(names)} does not exist.", kind=error_kind or kind)


def logical(name: SchemaName) -> str:
    return name if isinstance(name, str) else HierarchicalSchema(tuple(name)).logical()
