"""Walk the tree of objects by id, level by level, and describe one object; built on the services of the wires."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from authz import operations, policy
from authz.actor import Actor
from catalogs import secrets
from catalogs.lookup import by_id
from catalogs.models import Catalog
from catalogs.services.catalogs import list_catalogs, load_catalog
from catalogs.services.leaves import describe_leaf, list_leaves
from catalogs.services.metalakes import list_metalakes, load_metalake
from catalogs.services.schemas import list_schemas, load_schema
from catalogs.stores import leaf_kinds
from metalake.errors import NotFound, ProviderUnavailable, Unsupported
from metalake.kinds import CONTAINERS, Kind, slot_of
from metalake.lineage import Address, Located, Node
from metalake.models import Metalake, Securable

LEVEL_LIMIT = 200
_LARGEST_ID = 2**63 - 1
_NODE = ("id", "kind", "name", "owner_user_id", "owner_group_id")


@dataclass(frozen=True)
class Child:
    """One object of a level. With `is_path`, the actor may know only its name, as the way to an object below."""

    id: int
    kind: str
    name: str
    is_path: bool = False
    enabled: bool = True

    @property
    def opens(self) -> bool:
        """Whether other objects can lie in it."""
        return self.kind in CONTAINERS


class Next(NamedTuple):
    """Where a level continues: after the object of this kind and name."""

    kind: Kind
    after: str


@dataclass(frozen=True)
class Level:
    """Up to LEVEL_LIMIT objects, schemas first and then one kind after the other, each by name."""

    children: tuple[Child, ...]
    next: Next | None = None


@dataclass(frozen=True)
class Description:
    """One object with masked secrets; `details` are labelled values, `notice` says why a part of it is missing.

    With `is_path`, the actor may know only its name, as the way to an object below.
    """

    comment: str = ""
    owner: str = ""
    owner_is_group: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    details: tuple[tuple[str, str], ...] = ()
    columns: tuple[dict[str, Any], ...] = ()
    creator: str = ""
    create_time: datetime | None = None
    last_modifier: str = ""
    last_modified_time: datetime | None = None
    is_path: bool = False
    notice: str = ""


def locate(actor: Actor, securable_id: int) -> Located:
    """The object of the tree with this id. Raises NotFound, also for a hidden one."""
    target = by_id(securable_id) if securable_id <= _LARGEST_ID else None
    if target is None or not _is_shown(target) or not policy.sees(actor, target):
        raise NotFound("There is no such object.")
    return target


def top_level(actor: Actor, after: str | None = None) -> Level:
    """The metalakes of the actor."""
    return _level(list_metalakes(actor), Kind.METALAKE, after)


def _is_shown(target: Located) -> bool:
    return target.kind in CONTAINERS or target.kind in leaf_kinds(target)


def level_below(actor: Actor, target: Located, kind: str | None = None, after: str | None = None) -> Level:
    """The objects directly below one that the actor sees; to continue a level, pass the fields of its `next`."""
    if target.kind == Kind.METALAKE:
        return _level(list_catalogs(actor, target.metalake.name), Kind.CATALOG, after)
    kinds = _kinds_below(target)
    children: list[Child] = []
    for each in kinds[kinds.index(Kind(kind)) :] if kind in kinds else kinds:
        room = LEVEL_LIMIT - len(children)
        more = _children(actor, target, each, after, room)
        if len(more) > room:
            return Level((*children, *more[:room]), Next(each, more[room - 1].name if room else ""))
        children += more
        after = None
    return Level(tuple(children))


def _kinds_below(target: Located) -> list[Kind]:
    """The kinds that may lie directly in a catalog or schema, in the order of the tree; none for a leaf."""
    if target.kind == Kind.CATALOG:
        return [Kind.SCHEMA]
    if target.kind == Kind.SCHEMA:
        return [*([Kind.SCHEMA] if target.nested else []), *leaf_kinds(target)]
    return []


def _level(rows: Any, kind: Kind, after: str | None) -> Level:
    """A level of metalakes or catalogs, all of which the actor may load."""
    if after is not None:
        rows = rows.filter(name__gt=after)
    target = list(rows[: LEVEL_LIMIT + 1])
    children = tuple(Child(row.id, row.kind, row.name, enabled=row.enabled) for row in target[:LEVEL_LIMIT])
    return Level(children, Next(kind, children[-1].name) if len(target) > LEVEL_LIMIT else None)


def _children(actor: Actor, target: Located, kind: Kind, after: str | None, room: int) -> list[Child]:
    """The children of one kind, at most one more than `room`."""
    if kind != Kind.SCHEMA:
        names = list_leaves(actor, _ident(target), kind, after, room + 1).names
        return [Child(node.id, node.kind, node.name) for node in _nodes(target, kind, names)]
    paths = list_schemas(actor, _ident(target), after, room + 1).paths
    nodes = _nodes(target, kind, [path.leaf for path in paths])
    return [Child(node.id, node.kind, node.name, is_path=not _may_load(actor, target, node)) for node in nodes]


def _nodes(target: Located, kind: Kind, names: list[str]) -> Iterable[Node]:
    """The children with these names, in that order; without those that were removed in between."""
    rows = Securable.objects.filter(parent_id=target.id, slot=slot_of(kind), name__in=names).values_list(*_NODE)
    by_name = {node.name: node for node in (Node(*row) for row in rows)}
    return [by_name[name] for name in names if name in by_name]


def _may_load(actor: Actor, parent: Located, node: Node) -> bool:
    return policy.permits(actor, operations.LOAD_SCHEMA, parent.below(node))


def _ident(target: Located) -> Address:
    if target.kind == Kind.METALAKE:
        return Address(metalake=target.metalake.name)
    names = Address(metalake=target.metalake.name, catalog=target.catalog.name, schema=target.path.segments or None)
    return names if target.kind in CONTAINERS else replace(names, leaf=target.name, leaf_kind=target.kind)


def describe(actor: Actor, target: Located) -> Description:
    """All that the actor may know of a located object. Raises NotInUse if its metalake or catalog is disabled."""
    if not policy.permits(actor, operations.load_of(target.kind), target):
        return Description(is_path=True)
    if target.kind == Kind.SCHEMA:
        return _describe_schema(actor, target)
    if target.kind not in CONTAINERS:
        return _describe_leaf(actor, target)
    details = _DETAILS[Kind(target.kind)](actor, target)
    row = _row(target)
    return _described(row, row.comment or "", row.properties, details)


def _described(
    row: Securable, comment: str, properties: dict[str, str], details: Iterable[tuple[str, str]], **more: Any
) -> Description:
    owner = row.owner_user or row.owner_group
    return Description(
        comment=comment,
        owner=str(owner),
        owner_is_group=row.owner_user_id is None,
        properties=dict(sorted(secrets.mask(properties).items())),
        details=tuple(secrets.mask(dict(details)).items()),
        creator=row.creator,
        create_time=row.create_time,
        last_modifier=row.last_modifier or "",
        last_modified_time=row.last_modified_time,
        **more,
    )


def _metalake_details(actor: Actor, target: Located) -> tuple[tuple[str, str], ...]:
    return _in_use(load_metalake(actor, target.metalake.name))


def _catalog_details(actor: Actor, target: Located) -> tuple[tuple[str, str], ...]:
    row = load_catalog(actor, target.metalake.name, target.catalog.name)
    nested = "allowed" if row.nested else "not in this catalog"
    return (("Type", row.type), ("Provider", row.provider), ("Schemas inside schemas", nested), *_in_use(row))


_DETAILS = {Kind.METALAKE: _metalake_details, Kind.CATALOG: _catalog_details}


def _describe_schema(actor: Actor, target: Located) -> Description:
    """The description of a schema by its store or, if its system does not answer, from the row alone."""
    details = (("Full name", target.path.logical()),)
    try:
        row = load_schema(actor, _ident(target)).row
    except ProviderUnavailable as failure:
        return _described(_row(target), "", {}, details, notice=f"Its details cannot be read now. {failure.message}")
    return _described(row, row.comment or "", row.properties, details)


def _in_use(row: Metalake | Catalog) -> tuple[tuple[str, str], ...]:
    return () if row.enabled else (("State", "disabled: nothing below it answers"),)


def _describe_leaf(actor: Actor, target: Located) -> Description:
    """The description of a leaf by its store or, if it cannot be read, from the row alone."""
    try:
        leaf, shown = describe_leaf(actor, _ident(target))
    except (ProviderUnavailable, Unsupported) as failure:
        return _described(_row(target), "", {}, (), notice=f"Its metadata cannot be read now. {failure.message}")
    return _described(_row(leaf), shown.comment, shown.properties, shown.details, columns=shown.columns)


def _row(target: Located) -> Securable:
    row = Securable.objects.select_related("owner_user", "owner_group").filter(pk=target.id).first()
    if row is None:
        raise target.missing()
    return row
