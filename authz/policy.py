"""The one evaluator: who may do what, and what they see.

Every question is answered from the lineage of an object (its ids and owners, metalake first) and the policy snapshot
the actor carries. `permits` decides, `require` raises what the caller may know, `visible_*` say the same in SQL for
lists. The rules are data in `operations`; their meaning is docs/authorization.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from authz import operations, snapshot
from authz.actor import Actor
from authz.models import Grant, in_force, unended
from authz.operations import Operation, Traversal
from authz.snapshot import DENY_SHIFT, Snapshot
from metalake.errors import Forbidden, NotFound
from metalake.kinds import KINDS, Kind, grantable_on
from metalake.lineage import Lineage, Node, lineage_text, missing
from metalake.models import Securable, below
from metalake.privileges import Effect, Privilege


@dataclass(frozen=True)
class Rights:
    """What an actor holds on one lineage."""

    member: bool
    mask: int
    owned: frozenset[str]

    def allows(self, privilege: Privilege) -> bool:
        """ALLOW somewhere on the lineage, in any role."""
        return bool(self.mask & privilege.bit)

    def denies(self, privilege: Privilege) -> bool:
        """DENY somewhere on the lineage, in any role."""
        return bool(self.mask >> DENY_SHIFT & privilege.bit)

    def holds(self, privilege: Privilege) -> bool:
        return self.allows(privilege) and not self.denies(privilege)

    def effective(self) -> list[Privilege]:
        """All that is allowed and not denied (docs/authorization.md, rule 2)."""
        return [privilege for privilege in Privilege if self.holds(privilege)]


def rights(actor: Actor, lineage: Lineage) -> Rights:
    nodes = lineage.nodes
    if not actor.is_member(nodes[0].id):
        return Rights(member=everybody_may(), mask=0, owned=frozenset())
    owned = {node.kind for node in nodes if actor.owns(node)}
    if actor.owns(nodes[-1]):
        owned.add(operations.SELF)
    return Rights(member=True, mask=actor.mask([node.id for node in nodes]), owned=frozenset(owned))


def effective(actor: Actor, lineage: Sequence[int]) -> list[Privilege]:
    """The privileges in effect for the actor on the object of these ids, the metalake's first; of members alone."""
    mask = actor.mask(lineage) if actor.is_member(lineage[0]) else 0
    return Rights(member=True, mask=mask, owned=frozenset()).effective()


def effective_alone(policy: Snapshot, roles: Iterable[int], lineage: Sequence[int]) -> list[Privilege]:
    """What these roles bring there now, whoever holds them."""
    return Rights(member=True, mask=policy.mask(roles, lineage, time.time()), owned=frozenset()).effective()


def everybody_may() -> bool:
    """Whether authorization is off: then everybody is a member everywhere, and may do everything."""
    return settings.METALAKE_AUTHORIZATION == "off"


def decide(operation: Operation, held: Rights, kind: str) -> bool:
    """Whether these rights suffice for an operation on an object of this kind."""
    if everybody_may():
        return True
    if not held.member:
        return False
    owned = held.owned & operation.owners
    if Kind.METALAKE in owned or Kind.CATALOG in owned:
        return True
    if operation.traversal is not Traversal.NONE and not held.holds(Privilege.USE_CATALOG):
        return False
    if Kind.SCHEMA in owned:
        return True
    if operation.traversal is Traversal.SCHEMA and not held.holds(Privilege.USE_SCHEMA):
        return False
    if operations.SELF in owned:
        return True
    if operation.blocked_by and any(kind in kinds and held.denies(denied) for denied, kinds in operation.blocked_by):
        return False
    return any(all(map(held.holds, needed)) for needed in operation.sufficient)


def may_bootstrap(held: Rights, kind: str) -> bool:
    """Whether missing parent schemas below this container may be made together with a schema."""
    return decide(operations.BOOTSTRAP_SCHEMA, held, kind)


def permits(actor: Actor, operation: Operation, lineage: Lineage) -> bool:
    return decide(operation, rights(actor, lineage), lineage.nodes[-1].kind)


def usable(held: Rights, kind: Kind) -> list[Privilege]:
    """The privileges that these rights let an actor use on an object of this kind, be it by owning it."""
    return [p for p in Privilege if kind in grantable_on(p) and decide(operations.use_of(p, kind), held, kind)]


def require(actor: Actor, operation: Operation, lineage: Lineage) -> None:
    """Raise NotFound where the object is unseen, Forbidden where only the act is denied."""
    held = rights(actor, lineage)
    kind = lineage.nodes[-1].kind
    if decide(operation, held, kind):
        return
    if sees(actor, lineage, held):
        raise refusal(actor.name, operation, lineage)
    raise unseen(actor, lineage)


def refusal(name: str, operation: Operation, lineage: Lineage) -> Forbidden:
    """What is told to somebody who sees the object and may not do this."""
    return Forbidden(f"{name} may not {_act(operation, lineage)}.", kind=lineage.nodes[-1].kind)


def unseen(actor: Actor, lineage: Lineage) -> NotFound:
    """How a hidden object is told: as a miss of the first thing on the way to it that the actor does not see."""
    for above in _ways(lineage):
        if not sees(actor, above):
            return missing(above.nodes[-1].kind, above.full_name)
    return missing(lineage.nodes[-1].kind, lineage.full_name)


def _ways(lineage: Lineage) -> Iterator[_Above]:
    """The containers that a path names one by one: the metalake, the catalog, the whole schema."""
    nodes, names = lineage.nodes, lineage.full_name
    for depth in range(1, len(nodes)):
        if nodes[depth - 1].kind != nodes[depth].kind:
            yield _Above(nodes[:depth], [nodes[0].name] if depth == 1 else names[: min(depth, 3) - 1])


def require_member(actor: Actor, lineage: Lineage) -> None:
    require(actor, operations.LOAD_METALAKE, lineage)


def sees(actor: Actor, lineage: Lineage, held: Rights | None = None) -> bool:
    """Whether the actor may know that the object exists: it can be loaded, or something below it can be."""
    held = held or rights(actor, lineage)
    kind = lineage.nodes[-1].kind
    if not held.member:
        return False
    if kind == Kind.METALAKE:
        return True
    if kind == Kind.ROLE:
        return _sees_role(actor, lineage, held)
    if _may_find(held, kind):
        return True
    return kind == Kind.SCHEMA and _leads_to_seen(actor, lineage, held)


def _may_find(held: Rights, kind: str) -> bool:
    """Whether these rights load an object of this kind, or show its name to whoever may drop it."""
    if decide(operations.load_of(kind), held, kind):
        return True
    finding = operations.FINDING.get(kind)
    return finding is not None and decide(finding, held, kind)


def _leads_to_seen(actor: Actor, schema: Lineage, held: Rights) -> bool:
    """Whether a schema that cannot be loaded may be passed on the way to one below."""
    return held.member and held.holds(Privilege.USE_CATALOG) and is_path(actor, schema)


def ask_as_if_hidden(actor: Actor, absent: Lineage) -> None:
    """Ask of what is missing all that `require` asks of what is hidden, the store included: neither takes longer."""
    held = rights(actor, absent)
    if absent.nodes[-1].kind == Kind.SCHEMA:
        _leads_to_seen(actor, absent, held)


def _sees_role(actor: Actor, lineage: Lineage, held: Rights) -> bool:
    """Its holders, its owner, and those who may read every role of the metalake."""
    return lineage.nodes[-1].id in actor.roles or decide(operations.LOAD_ROLE, held, Kind.ROLE)


def _act(operation: Operation, lineage: Lineage) -> str:
    """What was asked, as a sentence says it: `alter table lake.a.t`, `create table in schema lake.a`."""
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
        if words == f"{verb} {lineage.nodes[-1].kind}"
        else f"{words} in {describe(lineage)}"
    )


def describe(lineage: Lineage) -> str:
    return f"{lineage.nodes[-1].kind} {'.'.join(lineage.full_name)}"


class _Above(NamedTuple):
    nodes: Sequence[Node]
    full_name: Sequence[str]


# Lists: the same rules as filters.


def visible_catalogs(actor: Actor, lineage: Lineage, catalogs: QuerySet) -> QuerySet:
    """The catalogs of a metalake that the actor may load."""
    held = rights(actor, lineage)
    if decide(operations.ALTER_METALAKE, held, Kind.METALAKE):
        return catalogs
    return catalogs.filter(_owned(actor) | _effective(actor, held, [Privilege.USE_CATALOG]))


def visible_leaves(actor: Actor, lineage: Lineage, rows: QuerySet, kind: Kind) -> QuerySet:
    """The rows of one kind in a schema that the actor may load, or find to drop them."""
    declared, listing, held = KINDS[kind].rights, operations.listing(kind), rights(actor, lineage)
    assert declared is not None, kind
    known = (*declared.load, *declared.drop)
    if decide(operations.ALTER_SCHEMA, held, Kind.SCHEMA):
        return rows
    if not decide(listing, held, Kind.SCHEMA):
        return rows.none()
    if _reaches_all(actor, held, known):
        return rows
    return rows.filter(_owned(actor) | _effective(actor, held, known))


def visible_schemas(actor: Actor, lineage: Lineage, schemas: QuerySet) -> QuerySet:
    """The child schemas that the actor may load, or that lead to one."""
    held = rights(actor, lineage)
    kind = lineage.nodes[-1].kind
    everything = operations.ALTER_CATALOG if kind == Kind.CATALOG else operations.ALTER_SCHEMA
    if decide(everything, held, kind):
        return schemas
    if not (held.member and held.holds(Privilege.USE_CATALOG)):
        return schemas.none()
    if _reaches_all(actor, held, [Privilege.USE_SCHEMA]):
        return schemas
    loadable = _owned(actor) | _effective(actor, held, [Privilege.USE_SCHEMA])
    owned = Securable.objects.filter(
        _owned(actor),
        kind=Kind.SCHEMA,
        lineage__gt=Concat(OuterRef("lineage"), Value("/")),
        lineage__lt=Concat(OuterRef("lineage"), Value("0")),
    )
    return schemas.filter(loadable | Exists(owned) | Q(pk__in=_steps_to_granted(actor, lineage)))


def is_path(actor: Actor, lineage: Lineage) -> bool:
    """Whether a schema that cannot be loaded leads to one that can."""
    if everybody_may():
        return True
    owned = Securable.objects.filter(_owned(actor), below(lineage_text(lineage)), kind=Kind.SCHEMA)
    return bool(_steps_to_granted(actor, lineage)) or owned.exists()


def _owned(actor: Actor) -> Q:
    return Q(owner_user_id=actor.id) | Q(owner_group_id__in=actor.groups) if actor.groups else Q(owner_user_id=actor.id)


def _granted(actor: Actor, privilege: Privilege, effect: Effect) -> QuerySet[Grant]:
    roles = actor.roles if effect is Effect.DENY else actor.allowing_roles
    return Grant.objects.filter(
        in_force(actor.moment), group__role__in=roles, permission__codename=privilege.value, effect=effect.value
    )


def _effective(actor: Actor, held: Rights, privileges: Sequence[Privilege]) -> Q:
    """Rows on which one of the privileges is effective, given what the container's lineage already says."""
    shown = Q(pk__in=[])
    for privilege in privileges:
        if held.denies(privilege):
            continue
        not_denied = ~_carrying(actor, privilege, Effect.DENY)
        if held.allows(privilege):
            shown |= not_denied
        else:
            shown |= _carrying(actor, privilege, Effect.ALLOW) & not_denied
    return shown


def _reaches_all(actor: Actor, held: Rights, privileges: Sequence[Privilege]) -> bool:
    """Whether one of the privileges is effective on whatever lies in the container: then no row need be asked."""
    return any(
        held.allows(privilege) and not held.denies(privilege) and _carriers(actor, privilege, Effect.DENY) == []
        for privilege in privileges
    )


def _carriers(actor: Actor, privilege: Privilege, effect: Effect) -> list[int] | None:
    """The ids of what carries such a grant itself; None where they are many."""
    roles = actor.roles if effect is Effect.DENY else actor.allowing_roles
    return actor.policy.carrying(roles, snapshot.mask_of(privilege, effect), actor.now)


def _carrying(actor: Actor, privilege: Privilege, effect: Effect) -> Q:
    """Rows that carry such a grant themselves: by their ids where these are few, which databases plan best."""
    ids = _carriers(actor, privilege, effect)
    if ids is None:
        return Q(pk__in=_granted(actor, privilege, effect).values("content_object_id"))
    return Q(pk__in=ids)


def _steps_to_granted(actor: Actor, lineage: Lineage) -> set[int]:
    """The children of an object on the way to a schema below where a grant of USE_SCHEMA is effective."""
    depth = len(lineage.nodes)
    carrying = _carrying(actor, Privilege.USE_SCHEMA, Effect.ALLOW)
    granted = Securable.objects.filter(below(lineage_text(lineage)), carrying, kind=Kind.SCHEMA)
    steps = set()
    for text in granted.values_list("lineage", flat=True):
        ids = [int(part) for part in text[1:].split("/")]
        if not actor.mask(ids) >> DENY_SHIFT & Privilege.USE_SCHEMA.bit:
            steps.add(ids[depth])
    return steps


def require_no_escape(actor: Actor, target: Lineage, home: Lineage) -> None:
    """A move must not shed a DENY that the mover could not lift: it stands on an object left behind."""
    kept = {node.id for node in home.nodes}
    left = [node.id for node in target.nodes[:-1] if node.id not in kept]
    denied = Grant.objects.filter(unended(actor.moment), content_object__in=left, effect=Effect.DENY.value)
    for securable_id in denied.values_list("content_object_id", flat=True).distinct():
        depth = next(place for place, node in enumerate(target.nodes) if node.id == securable_id)
        if not may_grant(actor, _Above(target.nodes[:depth], target.full_name)):
            raise Forbidden(
                f"Moving {describe(target)} would shed a DENY that {actor.name} may not lift.", kind="table"
            )


def may_grant(actor: Actor, lineage: Lineage) -> bool:
    """Whether the actor may grant and revoke on this object."""
    return permits(actor, operations.grant_on(lineage.nodes[-1].kind), lineage)
