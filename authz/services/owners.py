"""Who owns what: every object has one owner, a user or a group of its metalake."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db.models import F, Q

from authz import operations, policy
from authz.actor import NOBODY, Actor
from authz.callers.enumeration import misses_counted
from authz.locks import Lock
from authz.models import Group, Member
from authz.objects import find_asked, find_object, id_of
from authz.services.authority import require, require_seen
from authz.services.change import change, enter, event, publish_events
from authz.services.ownership_rules import Party, party_of, require_handing
from metalake.errors import Forbidden, Invalid, NotFound
from metalake.events import STANDS, stands
from metalake.kinds import Kind
from metalake.lineage import Located, missing
from metalake.models import Securable, below


class Owner(NamedTuple):
    """`type` is "user" or "group"."""

    name: str
    type: str


def get_owner(actor: Actor, metalake: str, kind: Kind, full_name: str) -> Owner:
    """The owner, for an actor who may load the object; a column's owner is its table's."""
    enter(actor, metalake)
    target = find_asked(metalake, kind, full_name, actor)
    if target.kind is Kind.ROLE:
        require_seen(actor, target)
    else:
        require(actor, operations.load_of(target.kind), target)
    return owner_of(target)


@misses_counted("user", "group")
def set_owner(actor: Actor, metalake: str, kind: Kind, full_name: str, name: str, type_: str) -> None:
    """Hand an object to a user or group of the metalake; the actor must own it or an object above.

    Those who manage groups cannot change a group that owns something, so only its users and those who assign roles
    may make it an owner; others do not learn which groups there are. DENYs against the new owner on the object, above
    it or below it take who may lift them.

    Raises Invalid if a metalake would be left without an owner who can act.
    """
    if kind is Kind.COLUMN:
        raise Invalid("A column has no owner of its own; set its table's.", kind="object")
    on = partial(id_of, metalake, kind, full_name, actor)
    change(actor, metalake, _set_owner, kind, full_name, name, type_, kind="object", on=on, lock=Lock.CHANGES)


def _set_owner(actor: Actor, top: Located, kind: Kind, full_name: str, name: str, type_: str) -> None:
    target = find_object(top.name, kind, full_name, viewer=actor)
    require(actor, operations.own(target.kind), target)
    user_id, group_id = _checked(actor, top, target, name, type_)
    if party_of(target.nodes[-1]) == (user_id, group_id):
        return
    before = owner_of(target)
    Securable.objects.filter(pk=target.id).update(
        owner_user_id=user_id, owner_group_id=group_id, version=F("version") + 1
    )
    details = {"owner": name, "type": type_, "before": before._asdict()}
    facts = [stands(Securable.objects.get(pk=target.id))]
    publish_events(event(actor, top, "owner.set", target.kind, target.id, target.full_name, facts, **details))


@misses_counted("user", "group")
def check_owner(actor: Actor, metalake: str, target: Located, name: str, type_: str) -> Party:
    """The ids of a new owner of a located object. Raises what `set_owner` would raise now."""
    top = enter(actor, metalake)
    require(actor, operations.own(target.kind), target)
    return _checked(actor, top, target, name, type_)


def _checked(actor: Actor, top: Located, target: Located, name: str, type_: str) -> Party:
    user_id, group_id = to = _party(actor, top, name, type_)
    if party_of(target.nodes[-1]) == to:
        return to
    require_handing(actor, target, to)
    check_handing(target)
    if target.kind is Kind.METALAKE:
        _require_able(target.id, Q(user__metalake_groups=group_id) if user_id is None else Q(user_id=user_id))
    return to


def owner_of(target: Located) -> Owner:
    """The owner, in one statement. Raises NotFound if the object was dropped meanwhile."""
    row = Securable.objects.filter(pk=target.id).values_list("owner_user__username", "owner_group__name").first()
    if row is None:
        raise missing(target.kind, target.full_name, error_kind="object")
    user, group = row
    return Owner(group, "group") if user is None else Owner(user, "user")


def _party(actor: Actor, top: Located, name: str, type_: str) -> tuple[int | None, int | None]:
    """The user's id or the group's. Raises NotFound if it is not in the metalake, Forbidden for a group of others."""
    if type_ == "user":
        member = Member.objects.filter(metalake_id=top.id, user__username=name).first()
        if member is None:
            raise NotFound(f"User {name} does not exist.", kind="user")
        return member.user_id, None
    group = Group.objects.filter(metalake_id=top.id, name=name).first()
    is_theirs = group is not None and group.pk in actor.groups
    if not is_theirs and not policy.uses(actor, operations.ASSIGN_ROLES, top):
        raise Forbidden(
            f"{actor.name} may hand it to a group that they are in; to any other it takes manage_grants on metalake "
            f"{top.name}.",
            kind="group",
        )
    if group is None:
        raise NotFound(f"Group {name} does not exist.", kind="group")
    return None, group.pk


def require_owner(metalake_id: int, without: int | None = None) -> None:
    """Raise Invalid unless the metalake's owner is an enabled member, or a group that has one, `without` this user."""
    owners = Q(user__owned=metalake_id) | Q(user__metalake_groups__owned=metalake_id)
    _require_able(metalake_id, owners & ~Q(user_id=without or NOBODY))


def _require_able(metalake_id: int, owners: Q) -> None:
    if not Member.objects.filter(owners, metalake_id=metalake_id, enabled=True, user__is_active=True).exists():
        raise Invalid(
            "A metalake is owned by an enabled member or by a group that has one: choose its new owner first.",
            kind=Kind.METALAKE,
        )


_checks: list[Callable[[Located], None]] = []
_after: list[Callable[[Sequence[int]], None]] = []


def check_handing(target: Located) -> None:
    """Raise if an object must not be handed to another owner whoever asks; its row is locked."""
    for check in _checks:
        check(target)


def check_before_handing_with(check: Callable[[Located], None]) -> None:
    """Register a function that raises if an object must not be handed to another owner; its row is locked."""
    if check not in _checks:
        _checks.append(check)


def tell_when_handed_over(call: Callable[[Sequence[int]], None]) -> None:
    """Register a function that is called with the ids of objects whose owner was removed, in that transaction."""
    if call not in _after:
        _after.append(call)


_more: list[Callable[[int, Party, Party], None]] = []


def hand_over_with(move: Callable[[int, Party, Party], None]) -> None:
    """Register a function that hands over what is owned without being an object, given the metalake, from and to."""
    if move not in _more:
        _more.append(move)


def hand_over(top: Located, *, user_id: int | None = None, group_id: int | None = None) -> list[list[Any]]:
    """Give what this user or group owns below the metalake to the metalake's owner; returns the facts."""
    owned = Securable.objects.filter(below(top.lineage))
    owned = owned.filter(owner_group_id=group_id) if user_id is None else owned.filter(owner_user_id=user_id)
    rows = list(owned.only(*STANDS))
    to = top.metalake
    owned.update(owner_user_id=to.owner_user_id, owner_group_id=to.owner_group_id, version=F("version") + 1)
    for row in rows:
        row.owner_user_id, row.owner_group_id = to.owner_user_id, to.owner_group_id
    for call in _after:
        call([row.pk for row in rows])
    for move in _more:
        move(top.id, (user_id, group_id), (to.owner_user_id, to.owner_group_id))
    return [stands(row) for row in rows]
