"""The rows that an actor owns, or that carry grants to them, as filters: of Django's queries, and as SQL.

Which of them a list shows is decided in authz.policy.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q, QuerySet

from authz import snapshot
from authz.actor import Actor
from authz.models import Grant, in_force
from metalake.privileges import Effect, Privilege


class Showing(NamedTuple):
    """The rows of a list that an actor may see: all of them, none, or by what the actor owns and holds.

    `by` has privileges of which one has to be in effect on the row itself, each with whether it is allowed on the
    container already, so that only a DENY on the row hides it.
    """

    is_all: bool = False
    is_none: bool = False
    by: tuple[tuple[Privilege, bool], ...] = ()


Condition = tuple[str, list[Any]]
"""A condition of SQL about columns of metalake_securable, and its parameters."""

EVERYTHING, NOTHING = Showing(is_all=True), Showing(is_none=True)


def owned(actor: Actor) -> Q:
    return Q(owner_user_id=actor.id) | Q(owner_group_id__in=actor.groups) if actor.groups else Q(owner_user_id=actor.id)


def shown(actor: Actor, showing: Showing, rows: QuerySet) -> QuerySet:
    if showing.is_all:
        return rows
    return rows.none() if showing.is_none else rows.filter(owned(actor) | effective(actor, showing))


def effective(actor: Actor, showing: Showing) -> Q:
    """A filter for the rows on which one of the privileges is in effect."""
    wanted = Q(pk__in=[])
    for privilege, is_allowed in showing.by:
        not_denied = ~carrying(actor, privilege, Effect.DENY)
        wanted |= not_denied if is_allowed else carrying(actor, privilege, Effect.ALLOW) & not_denied
    return wanted


def carrying(actor: Actor, privilege: Privilege, effect: Effect) -> Q:
    """A filter for the rows that carry such a grant themselves: by ids if they are few, which databases plan best."""
    ids = carriers(actor, privilege, effect)
    if ids is None:
        return Q(pk__in=_granted(actor, privilege, effect).values("content_object_id"))
    return Q(pk__in=ids)


def carriers(actor: Actor, privilege: Privilege, effect: Effect) -> list[int] | None:
    """The ids of the objects that carry such a grant themselves; None if there are too many to name."""
    return actor.policy.carrying(_roles(actor, effect), snapshot.mask_of(privilege, effect), actor.now)


def _granted(actor: Actor, privilege: Privilege, effect: Effect) -> QuerySet[Grant]:
    return Grant.objects.filter(
        in_force(actor.moment),
        group__role__in=_roles(actor, effect),
        permission__codename=privilege.value,
        effect=effect.value,
    )


def _roles(actor: Actor, effect: Effect) -> tuple[int, ...]:
    return actor.roles if effect is Effect.DENY else actor.allowing_roles


def condition_of(actor: Actor, showing: Showing) -> Condition | None:
    """The filter of `shown` as a condition of SQL with its parameters; None if there are too many ids to name."""
    if showing.is_all:
        return "TRUE", []
    if showing.is_none:
        return "FALSE", []
    ways, parameters = ["owner_user_id = %s"], [actor.id]
    if actor.groups:
        ways.append(_is_one_of("owner_group_id"))
        parameters.append(_listed(actor.groups))
    for privilege, is_allowed in showing.by:
        allowed = () if is_allowed else carriers(actor, privilege, Effect.ALLOW)
        denied = carriers(actor, privilege, Effect.DENY)
        if allowed is None or denied is None:
            return None
        lists = [] if is_allowed else [(_is_one_of("id"), allowed)]
        lists += [("NOT " + _is_one_of("id"), denied)] if denied else []
        ways.append("(" + " AND ".join(text for text, _ in lists) + ")" if lists else "TRUE")
        parameters += [_listed(ids) for _, ids in lists]
    return f"({' OR '.join(ways)})", parameters


def steps_below(actor: Actor, lineage: str) -> Condition | None:
    """A condition for the children of a container that lie above a schema which the actor owns or holds USE_SCHEMA on.

    Includes such schemas themselves. None if a DENY may take some of those rights away, which SQL cannot tell.
    """
    granted = carriers(actor, Privilege.USE_SCHEMA, Effect.ALLOW)
    if granted is None or carriers(actor, Privilege.USE_SCHEMA, Effect.DENY) != []:
        return None
    # The id that follows the container's in a lineage; the lineage is compared as an expression where an index by id
    # or by owner is the better one.
    rest = f"substr(lineage, {len(lineage) + 2})"
    step = f"CAST({rest} AS INTEGER)" if connection.vendor == "sqlite" else f"split_part({rest}, '/', 1)::bigint"
    bounds = [f"{lineage}/", f"{lineage}0"]
    ways = [("owner_user_id = %s AND lineage > %s AND lineage < %s", actor.id)]
    if actor.groups:
        ways.append((f"{_is_one_of('owner_group_id')} AND lineage > %s AND lineage < %s", _listed(actor.groups)))
    if granted:
        ways.append((f"{_is_one_of('id')} AND lineage || '' > %s AND lineage || '' < %s", _listed(granted)))
    below = [f"SELECT {step} FROM metalake_securable WHERE {way} AND kind = 'schema'" for way, _ in ways]  # noqa: S608
    return f"id IN ({' UNION ALL '.join(below)})", [each for _, given in ways for each in (given, *bounds)]


def _is_one_of(column: str) -> str:
    """A condition on a list of any length that is one parameter, so that the text stays the same."""
    is_sqlite = connection.vendor == "sqlite"
    return f"{column} IN (SELECT value FROM json_each(%s))" if is_sqlite else f"{column} = ANY(%s)"  # noqa: S608


def _listed(ids: Collection[int]) -> Any:
    return json.dumps(list(ids)) if connection.vendor == "sqlite" else list(ids)
