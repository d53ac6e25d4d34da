"""The policy evaluator: decides what an actor may do and which objects an actor sees.

Its inputs are an object's lineage (ids and owners, metalake first) and the actor's policy snapshot. `permits` returns
a bool, `require` raises the error that the caller may see, `visible_*` apply the same rules to lists, in SQL. The rules
are data in `operations`; docs/authorization.md explains them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from authz import filters, operations, usage_counter
from authz.actor import Actor
from authz.filters import EVERYTHING, NOTHING, Showing
from authz.operations import Operation, Traversal
from authz.snapshot import DENY_SHIFT
from metalake.errors import Forbidden, NotFound
from metalake.kinds import CONTAINERS, Kind, grantable_on
from metalake.lineage import Lineage, Node, lineage_text, missing
from metalake.models import Metalake, Securable, below
from metalake.privileges import Effect, Privilege


@dataclass(frozen=True)
class Rights:
    """What an actor holds on one lineage."""

    member: bool
    mask: int
    owned: frozenset[str]

    def allows(self, privilege: Privilege) -> bool:
        """Whether any role ALLOWs the privilege somewhere on the lineage."""
        return bool(self.mask & privilege.bit)

    def denies(self, privilege: Privilege) -> bool:
        """Whether any role DENYs the privilege somewhere on the lineage."""
        return bool(self.mask >> DENY_SHIFT & privilege.bit)

    def holds(self, privilege: Privilege) -> bool:
        return self.allows(privilege) and not self.denies(privilege)

    def effective(self) -> list[Privilege]:
        """All that is allowed and not denied (docs/authorization.md, rule 2)."""
        return [privilege for privilege in Privilege if self.holds(privilege)]


def rights_on(actor: Actor, lineage: Lineage) -> Rights:
    nodes = lineage.nodes
    if not actor.is_member(nodes[0].id):
        return Rights(member=authorization_is_off(), mask=0, owned=frozenset())
    owned = {node.kind for node in nodes if actor.owns(node)}
    if actor.owns(nodes[-1]):
        owned.add(operations.SELF)
    return Rights(member=True, mask=actor.mask([node.id for node in nodes]), owned=frozenset(owned))


def authorization_is_off() -> bool:
    """Whether authorization is off: everybody is a member of every metalake and may do everything."""
    return settings.METALAKE_AUTHORIZATION == "off"


def decide(operation: Operation, rights: Rights, kind: str) -> bool:
    """Whether these rights suffice for an operation on an object of this kind."""
    if authorization_is_off():
        return True
    if not rights.member:
        return False
    owned = rights.owned & operation.owners
    if Kind.METALAKE in owned or Kind.CATALOG in owned:
        return True
    if operation.traversal is not Traversal.NONE and not rights.holds(Privilege.USE_CATALOG):
        return False
    if Kind.SCHEMA in owned:
        return True
    if operation.traversal is Traversal.SCHEMA and not rights.holds(Privilege.USE_SCHEMA):
        return False
    if operations.SELF in owned:
        return True
    if operation.blocked_by and any(kind in kinds and rights.denies(denied) for denied, kinds in operation.blocked_by):
        return False
    return any(all(map(rights.holds, needed)) for needed in operation.sufficient)


def permits(actor: Actor, operation: Operation, lineage: Lineage) -> bool:
    return decide(operation, rights_on(actor, lineage), lineage.nodes[-1].kind)


def usable(rights: Rights, kind: Kind) -> list[Privilege]:
    """The privileges usable with these rights on an object of this kind, by grants or by ownership."""
    return [p for p in Privilege if kind in grantable_on(p) and decide(operations.use_of(p, kind), rights, kind)]


def require(actor: Actor, operation: Operation, lineage: Lineage) -> None:
    """Raise NotFound if the actor may not see the object, Forbidden if they see it but may not do this."""
    rights = rights_on(actor, lineage)
    kind = lineage.nodes[-1].kind
    if decide(operation, rights, kind):
        usage_counter.note(actor, operation, lineage, usage_counter.ALLOWED)
        return
    if sees(actor, lineage, rights):
        usage_counter.note(actor, operation, lineage, usage_counter.REFUSED)
        raise refusal(actor.name, operation, lineage)
    raise hidden(actor, operation, lineage)


def require_seen(actor: Actor, lineage: Lineage, operation: Operation | None = None) -> None:
    """Raise NotFound if the actor may not see the object; `operation` is for the usage records, load if None."""
    operation = operation or operations.load_of(lineage.nodes[-1].kind)
    if not sees(actor, lineage):
        raise hidden(actor, operation, lineage)
    usage_counter.note(actor, operation, lineage, usage_counter.ALLOWED)


def uses(actor: Actor, operation: Operation, lineage: Lineage) -> bool:
    """`permits`, for an action that the request performs: True is recorded as usage."""
    is_permitted = permits(actor, operation, lineage)
    if is_permitted:
        usage_counter.note(actor, operation, lineage, usage_counter.ALLOWED)
    return is_permitted


def hidden(actor: Actor, operation: Operation, lineage: Lineage) -> NotFound:
    """The error for a request of a hidden object, recorded as usage."""
    usage_counter.note(actor, operation, lineage, usage_counter.HIDDEN)
    return unseen(actor, lineage)


def refusal(name: str, operation: Operation, lineage: Lineage) -> Forbidden:
    """The error for an actor who sees the object but may not do this; it can be asked for where a grant allows it."""
    node = lineage.nodes[-1]
    can_be_granted = any(operation.sufficient) and node.kind in operations.FAMILIES["grant_on"]
    return Forbidden(
        f"{name} may not {_act(operation, lineage)}.",
        kind=node.kind,
        object_id=node.id if can_be_granted else 0,
        operation=operation.name,
    )


def unseen(actor: Actor, lineage: Lineage) -> NotFound:
    """The error for a hidden object: NotFound for the first container on its path that the actor does not see."""
    for above in _containers_above(lineage):
        if not sees(actor, above):
            return missing(above.nodes[-1].kind, above.full_name)
    return missing(lineage.nodes[-1].kind, lineage.full_name)


def _containers_above(lineage: Lineage) -> Iterator[_Ancestor]:
    """The containers above an object, outermost first: metalake, catalog, schema with all its levels."""
    nodes, names = lineage.nodes, lineage.full_name
    for depth in range(1, len(nodes)):
        if nodes[depth - 1].kind != nodes[depth].kind:
            yield _Ancestor(nodes[:depth], [nodes[0].name] if depth == 1 else names[: min(depth, 3) - 1])


def require_member(actor: Actor, lineage: Lineage) -> None:
    require(actor, operations.LOAD_METALAKE, lineage)


def sees(actor: Actor, lineage: Lineage, rights: Rights | None = None) -> bool:
    """Whether the actor may know that the object exists: they may load it or something below it."""
    rights = rights or rights_on(actor, lineage)
    kind = lineage.nodes[-1].kind
    if not rights.member:
        return False
    if kind == Kind.METALAKE:
        return True
    if kind == Kind.ROLE:
        return _sees_role(actor, lineage, rights)
    if may_see_name(rights, kind):
        return True
    return kind == Kind.SCHEMA and _leads_to_visible(actor, lineage, rights)


def may_see_name(rights: Rights, kind: str) -> bool:
    """Whether these rights suffice to load an object of this kind, or to find it for a drop."""
    if decide(operations.load_of(kind), rights, kind):
        return True
    finding = operations.FINDING.get(kind)
    return finding is not None and decide(finding, rights, kind)


def _leads_to_visible(actor: Actor, schema: Lineage, rights: Rights) -> bool:
    """Whether a schema that the actor may not load is visible as the path to one that they may."""
    return rights.member and rights.holds(Privilege.USE_CATALOG) and is_path(actor, schema)


def check_as_hidden(actor: Actor, absent: Lineage) -> None:
    """Run the checks of `require` on a hidden object for a missing one, so that timing does not differ."""
    rights, kind = rights_on(actor, absent), absent.nodes[-1].kind
    usage_counter.note(
        actor, operations.load_of(kind), absent, usage_counter.HIDDEN
    )  # no object, so it is never stored
    if kind == Kind.SCHEMA:
        _leads_to_visible(actor, absent, rights)
    elif kind not in CONTAINERS:
        decide(operations.load_of(kind), rights, kind)


def _sees_role(actor: Actor, lineage: Lineage, rights: Rights) -> bool:
    """Whether the actor holds or owns the role, or may read every role of the metalake."""
    return lineage.nodes[-1].id in actor.roles or decide(operations.LOAD_ROLE, rights, Kind.ROLE)


def _act(operation: Operation, lineage: Lineage) -> str:
    """The operation for a message: `alter table lake.a.t`, `create table in schema lake.a`."""
    verb = operation.name.partition("_")[0]
    if verb == "own":
        return f"set the owner of {describe(lineage)}"
    if verb == "grant":
        return f"grant on {describe(lineage)}"
    if operation.name.startswith("read_access"):
        return f"read who has access to {describe(lineage)}"
    words = operation.name.replace("_", " ")
    return (
        f"{verb} {describe(lineage)}"
        if operation.name == f"{verb}_{lineage.nodes[-1].kind}"
        else f"{words} in {describe(lineage)}"
    )


def describe(lineage: Lineage) -> str:
    return f"{lineage.nodes[-1].kind.replace('_', ' ')} {'.'.join(lineage.full_name)}"


class _Ancestor(NamedTuple):  # the lineage of an object above another one
    nodes: Sequence[Node]
    full_name: Sequence[str]


# Lists: the same rules as filters.


def metalakes_of(actor: Actor) -> QuerySet[Metalake]:
    """The metalakes that the actor is a member of."""
    rows = Metalake.objects.filter(members__user_id=actor.id, members__enabled=True)
    return rows if actor.within is None else rows.filter(pk=actor.within)


def visible_catalogs(actor: Actor, lineage: Lineage, catalogs: QuerySet) -> QuerySet:
    """The catalogs of a metalake that the actor may load."""
    rights = rights_on(actor, lineage)
    if decide(operations.ALTER_METALAKE, rights, Kind.METALAKE):
        return catalogs
    return filters.shown(actor, _showing(actor, rights, [Privilege.USE_CATALOG]), catalogs)


def shows_leaves(actor: Actor, lineage: Lineage, kind: Kind, *, to_load: bool = False) -> Showing:
    """The leaves of one kind in a schema or metalake that the actor may load or drop; with `to_load`, only load."""
    declared, rights, home = operations.rights_of(kind), rights_on(actor, lineage), lineage.nodes[-1].kind
    known = declared.load if to_load else (*declared.load, *declared.drop)
    if decide(operations.OPERATIONS[f"alter_{home}"], rights, home):
        return EVERYTHING
    if not decide(operations.listing(kind), rights, home):
        return NOTHING
    return _showing(actor, rights, known)


def shows_schemas(actor: Actor, lineage: Lineage) -> Showing:
    """The child schemas that the actor may load; `visible_schemas` adds the paths to deeper ones."""
    rights = rights_on(actor, lineage)
    kind = lineage.nodes[-1].kind
    everything = operations.ALTER_CATALOG if kind == Kind.CATALOG else operations.ALTER_SCHEMA
    if decide(everything, rights, kind):
        return EVERYTHING
    if not (rights.member and rights.holds(Privilege.USE_CATALOG)):
        return NOTHING
    return _showing(actor, rights, [Privilege.USE_SCHEMA])


def visible_leaves(actor: Actor, lineage: Lineage, rows: QuerySet, kind: Kind, *, to_load: bool = False) -> QuerySet:
    """The rows of one kind in a schema or metalake that `shows_leaves` selects."""
    return filters.shown(actor, shows_leaves(actor, lineage, kind, to_load=to_load), rows)


def visible_schemas(actor: Actor, lineage: Lineage, schemas: QuerySet) -> QuerySet:
    """The child schemas that the actor may load, or that lead to one they may load."""
    showing = shows_schemas(actor, lineage)
    if showing.is_all or showing.is_none:
        return filters.shown(actor, showing, schemas)
    owned = Securable.objects.filter(
        filters.owned(actor),
        kind=Kind.SCHEMA,
        lineage__gt=Concat(OuterRef("lineage"), Value("/")),
        lineage__lt=Concat(OuterRef("lineage"), Value("0")),
    )
    return schemas.filter(
        filters.matching(actor, showing) | Exists(owned) | Q(pk__in=_steps_to_granted(actor, lineage))
    )


def is_path(actor: Actor, lineage: Lineage) -> bool:
    """Whether the actor may load some schema below this one."""
    if authorization_is_off():
        return True
    owned = Securable.objects.filter(filters.owned(actor), below(lineage_text(lineage)), kind=Kind.SCHEMA)
    return bool(_steps_to_granted(actor, lineage)) or owned.exists()


def _showing(actor: Actor, rights: Rights, privileges: Sequence[Privilege]) -> Showing:
    """Visibility by these privileges, given the container's rights; EVERYTHING if one is in effect throughout it."""
    by = tuple((each, rights.allows(each)) for each in privileges if not rights.denies(each))
    if any(is_allowed and filters.carriers(actor, each, Effect.DENY) == [] for each, is_allowed in by):
        return EVERYTHING
    return Showing(by=by)


def _steps_to_granted(actor: Actor, lineage: Lineage) -> set[int]:
    """The ids of an object's children that are, or lead to, a schema with an effective USE_SCHEMA grant."""
    depth = len(lineage.nodes)
    carrying = Q(pk__in=filters.carrying(actor, Privilege.USE_SCHEMA, Effect.ALLOW))
    granted = Securable.objects.filter(below(lineage_text(lineage)), carrying, kind=Kind.SCHEMA)
    steps = set()
    for text in granted.values_list("lineage", flat=True):
        ids = [int(part) for part in text[1:].split("/")]
        if not actor.mask(ids) >> DENY_SHIFT & Privilege.USE_SCHEMA.bit:
            steps.add(ids[depth])
    return steps


def may_grant(actor: Actor, lineage: Lineage) -> bool:
    """Whether the actor may grant and revoke on this object."""
    return permits(actor, operations.grant_on(lineage.nodes[-1].kind), lineage)
