"""Browse the object tree by id, level by level; built on the services of both APIs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from django.db.models import Case, Q, QuerySet, TextField, Value, When
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, NullIf

from authz import operations, policy
from authz.actor import Actor
from authz.objects import by_ids
from authz.visible_children import count_own_grants, rights_on_each
from catalogs.leaf_stores import asking_once
from catalogs.lookup import by_id
from catalogs.services.catalogs import list_catalogs
from catalogs.services.leaves import leaves_of
from catalogs.services.metalakes import list_metalakes
from catalogs.services.schemas import schemas_of
from catalogs.stores import leaf_kinds
from metalake.errors import NotFound
from metalake.kinds import CONTAINERS, IN_CATALOGS, Kind, slot_of
from metalake.lineage import Located, Node
from metalake.models import Securable, below, first_id

LEVEL_LIMIT = 200
MOST_EXAMINED = 100
_LARGEST_ID = 2**63 - 1
_SHOWN = (*Node._fields, "listed_comment", "owner_user__username", "owner_group__name")


@dataclass(frozen=True)
class Child:
    """One object of a level. With `is_path`, the actor may see only its name, as the path to an object below.

    `grants` counts those on the object itself that the actor may read. `comment` is the stored copy: empty for an
    outside object that was only listed so far, and for a table last changed before rows had a copy of the comment.
    """

    node: Node
    owner: str = ""
    comment: str = ""
    grants: int = 0
    is_path: bool = False
    enabled: bool = True

    @property
    def id(self) -> int:
        return self.node.id

    @property
    def kind(self) -> str:
        return self.node.kind

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def owner_is_group(self) -> bool:
        return self.node.owner_user_id is None

    @property
    def opens(self) -> bool:
        """Whether it can contain other objects."""
        return self.kind in CONTAINERS


class Next(NamedTuple):
    """Where a level continues: after the object of this kind and name."""

    kind: Kind
    after: str


@dataclass(frozen=True)
class Level:
    """Up to LEVEL_LIMIT objects, containers first and then one kind after the other, each by name."""

    children: tuple[Child, ...]
    next: Next | None = None


class _Row(NamedTuple):
    node: Node
    comment: str
    owner: str
    enabled: bool = True


def locate(actor: Actor, securable_id: int) -> Located:
    """The object of the tree with this id. Raises NotFound, also for a hidden one."""
    target = by_id(securable_id) if securable_id <= _LARGEST_ID else None
    if target is None or not _is_shown(target) or not policy.sees(actor, target):
        raise NotFound("There is no such object.")
    return target


def _is_shown(target: Located) -> bool:
    return target.kind in CONTAINERS or target.kind in leaf_kinds(target)


def top_level(actor: Actor, after: str | None = None) -> Level:
    """The metalakes that the actor may load."""
    rows, following = _page(list_metalakes(actor), Kind.METALAKE, after)
    return Level(_children(actor, None, rows), following)


def made_since(actor: Actor, tops: Sequence[Located], since: datetime, limit: int) -> list[tuple[Located, datetime]]:
    """Objects made in these metalakes that the actor may load, and when, newest first; of the last MOST_EXAMINED."""
    inside = Q(pk__in=[])
    for top in tops:
        inside |= below(top.lineage)
    kinds = (Kind.CATALOG, *IN_CATALOGS)
    rows = Securable.objects.filter(inside, kind__in=kinds, pk__gte=first_id(since)).order_by("-pk")
    moments = dict(rows.values_list("pk", "create_time")[:MOST_EXAMINED])
    objects = by_ids(moments) if moments else {}
    loaded = (objects[id] for id in moments if id in objects)
    may = (each for each in loaded if policy.permits(actor, operations.load_of(each.kind), each))
    return [(each, moments[each.id]) for each in islice(may, limit)]


def level_below(actor: Actor, target: Located, kind: str | None = None, after: str | None = None) -> Level:
    """The objects directly below one that the actor sees; to continue a level, pass the fields of its `next`."""
    rows, following = list[_Row](), None
    if target.kind == Kind.METALAKE and kind not in leaf_kinds(target):
        rows, following = _page(list_catalogs(actor, target.metalake.name), Kind.CATALOG, after)
        after = None
    if following is None:
        more, following = _rows_below(actor, target, kind, after, LEVEL_LIMIT - len(rows))
        rows += more
    return Level(_children(actor, target, rows), following)


def child_alone(actor: Actor, parent: Located | None, child_id: int) -> Level:
    """A level with only this object, a metalake if there is no parent.

    Raises NotFound if the actor does not see it, or it has another parent.
    """
    child = locate(actor, child_id)
    if child.nodes[:-1] != (parent.nodes if parent else ()):
        raise NotFound("There is no such object.")
    rows = _read(Securable.objects.filter(pk=child_id))
    is_enabled = child.disabled != child.kind
    return Level(_children(actor, parent, [row._replace(enabled=is_enabled) for row in rows]))


def _page(rows: QuerySet, kind: Kind, after: str | None) -> tuple[list[_Row], Next | None]:
    """A page of metalakes or catalogs, all of which the actor may load, and where the next one begins."""
    if after is not None:
        rows = rows.filter(name__gt=after)
    some = _read(rows[: LEVEL_LIMIT + 1], "enabled")
    page = some[:LEVEL_LIMIT]
    return page, Next(kind, page[-1].node.name) if len(some) > LEVEL_LIMIT else None


def _rows_below(
    actor: Actor, target: Located, kind: str | None, after: str | None, most: int
) -> tuple[list[_Row], Next | None]:
    """A page of `most` objects in a catalog or schema, or of a metalake's top leaves, and where the next begins."""
    kinds = _kinds_below(target)
    names: list[tuple[Kind, str]] = []
    following = None
    with asking_once():
        for each in kinds[kinds.index(Kind(kind)) :] if kind in kinds else kinds:
            room = most - len(names)
            more = _names_of(actor, target, each, after, room + 1)
            names += [(each, name) for name in more[:room]]
            if len(more) > room:
                following = Next(each, more[room - 1] if room else "")
                break
            after = None
    return _rows_of(target, names), following


def _kinds_below(target: Located) -> list[Kind]:
    """The kinds that may lie directly in an object, in the order of the tree, without catalogs; none for a leaf."""
    if target.kind == Kind.CATALOG:
        return [Kind.SCHEMA]
    nested = [Kind.SCHEMA] if target.kind == Kind.SCHEMA and target.nested else []
    return [*nested, *leaf_kinds(target)] if target.kind in CONTAINERS else []


def _names_of(actor: Actor, target: Located, kind: Kind, after: str | None, limit: int) -> list[str]:
    if kind == Kind.SCHEMA:
        return [path.leaf for path in schemas_of(actor, target, after, limit).paths]
    return leaves_of(actor, target, kind, after, limit).names


def _rows_of(target: Located, names: Sequence[tuple[Kind, str]]) -> list[_Row]:
    """The children of these kinds and names, in that order; without those removed meanwhile."""
    if not names:
        return []
    wanted = Q()
    for kind in {kind for kind, _ in names}:
        wanted |= Q(slot=slot_of(kind), name__in=[name for each, name in names if each == kind])
    rows = _read(Securable.objects.filter(wanted, parent_id=target.id))
    by_name = {(slot_of(row.node.kind), row.node.name): row for row in rows}
    keys = [(slot_of(kind), name) for kind, name in names]
    return [by_name[key] for key in keys if key in by_name]


def _read(rows: QuerySet, *more: str) -> list[_Row]:
    # SQLite returns JSON null as the text "null". Engines use the comment of a view's entry for their own notes.
    outside = NullIf(KeyTextTransform("comment", "mirror__definition"), Value("null", TextField()))
    of_iceberg = Coalesce(outside, NullIf("comment", Value("", TextField())), KeyTextTransform("comment", "properties"))
    comment = Case(
        When(kind=Kind.VIEW, then="comment"),
        When(kind=Kind.SCHEMA, then=of_iceberg),  # Iceberg REST has it in the namespace properties
        default=Coalesce(outside, "comment"),
    )
    values = rows.annotate(listed_comment=comment).values_list(*_SHOWN, *more)
    return [_Row(Node(*row[:5]), row[5] or "", row[6] or row[7] or "", *row[8:]) for row in values]


def _children(actor: Actor, above: Located | None, rows: Sequence[_Row]) -> tuple[Child, ...]:
    """The rows, reduced to what the actor may see."""
    rights = rights_on_each(actor, above, [row.node for row in rows])
    grants = count_own_grants(actor, rights) if rights else {}

    def child(row: _Row) -> Child:
        kind = row.node.kind
        if not policy.decide(operations.load_of(kind), rights[row.node], kind):
            return Child(row.node, is_path=True)
        return Child(row.node, row.owner, row.comment, grants.get(row.node.id, 0), enabled=row.enabled)

    return tuple(map(child, rows))
