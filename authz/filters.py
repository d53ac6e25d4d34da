"""Visibility filters by ownership and grants, as Django queries and as SQL.

authz.policy decides which of them a list applies.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q, QuerySet

from authz import snapshot
from authz.actor import Actor
from authz.models import Grant, in_force
from metalake.privileges import Effect, Privilege


class Showing(NamedTuple):
    """Which rows of a list an actor may see: all, none, or by ownership and grants.

    One privilege of `by` has to be in effect on the row itself; its flag says that the container already ALLOWs it, so
    that only a DENY on the row hides it.
    """

    is_all: bool = False
    is_none: bool = False
    by: tuple[tuple[Privilege, bool], ...] = ()


Condition = tuple[str, list[Any]]
"""An SQL condition on columns of metalake_securable, and its parameters."""

EVERYTHING, NOTHING = Showing(is_all=True), Showing(is_none=True)


class Term(NamedTuple):
    """A condition: the column equals the value or is one of the values; `is_not` negates it."""

    column: str
    values: int | Collection[int] | QuerySet
    is_not: bool = False


def _owning(actor: Actor) -> list[Term]:
    groups = [Term("owner_group_id", actor.groups)] if actor.groups else []
    return [Term("owner_user_id", actor.id), *groups]


def _ways(actor: Actor, showing: Showing) -> list[list[Term]]:
    """The rule of lists, an OR of ANDs: a row is shown if all terms of one alternative hold.

    The actor owns it, or one of the privileges is in effect on it (docs/authorization.md, rule 2).
    """
    ways = [[term] for term in _owning(actor)]
    for privilege, is_allowed in showing.by:
        way = [] if is_allowed else [Term("id", carrying(actor, privilege, Effect.ALLOW))]
        denied = carrying(actor, privilege, Effect.DENY)
        ways.append([*way, Term("id", denied, is_not=True)] if denied != [] or is_allowed else way)
    return ways


def owned(actor: Actor) -> Q:
    return reduce(or_, map(_as_q, _owning(actor)))


def matching(actor: Actor, showing: Showing) -> Q:
    """The filter for the visible rows; not for EVERYTHING or NOTHING."""
    return reduce(or_, (reduce(and_, map(_as_q, way)) for way in _ways(actor, showing)))


def _as_q(term: Term) -> Q:
    column = "pk" if term.column == "id" else term.column
    is_so = Q((column, term.values)) if isinstance(term.values, int) else Q((f"{column}__in", term.values))
    return ~is_so if term.is_not else is_so


def shown(actor: Actor, showing: Showing, rows: QuerySet) -> QuerySet:
    if showing.is_all:
        return rows
    return rows.none() if showing.is_none else rows.filter(matching(actor, showing))


def carrying(actor: Actor, privilege: Privilege, effect: Effect) -> list[int] | QuerySet:
    """The ids of objects with such a grant of their own: a list if few, which databases plan best, else a subquery."""
    if (ids := carriers(actor, privilege, effect)) is not None:
        return ids
    about = {"permission__codename": privilege.value, "effect": effect.value}
    rows = Grant.objects.filter(in_force(actor.moment), group__role__in=_roles(actor, effect), **about)
    return rows.values("content_object_id")


def carriers(actor: Actor, privilege: Privilege, effect: Effect) -> list[int] | None:
    """The ids of objects with such a grant of their own; None if too many to list."""
    return actor.policy.carrying(_roles(actor, effect), snapshot.mask_of(privilege, effect), actor.now)


def _roles(actor: Actor, effect: Effect) -> tuple[int, ...]:
    return actor.roles if effect is Effect.DENY else actor.allowing_roles


def condition_of(actor: Actor, showing: Showing) -> Condition | None:
    """The filter of `shown` as an SQL condition with parameters; None if there are too many ids to list."""
    if showing.is_all or showing.is_none:
        return "FALSE" if showing.is_none else "TRUE", []
    ways = _ways(actor, showing)
    if any(isinstance(term.values, QuerySet) for way in ways for term in way):
        return None
    text = " OR ".join(f"({' AND '.join(_as_sql(term)[0] for term in way)})" for way in ways)
    return f"({text})", [_as_sql(term)[1] for way in ways for term in way]


def steps_below(actor: Actor, lineage: str) -> Condition | None:
    """A condition for a container's children that are or lead to a schema that the actor owns or has USE_SCHEMA on.

    None if a DENY may override some of those grants, which SQL cannot decide.
    """
    granted = carriers(actor, Privilege.USE_SCHEMA, Effect.ALLOW)
    if granted is None or carriers(actor, Privilege.USE_SCHEMA, Effect.DENY) != []:
        return None
    # The id after the container's in a lineage; comparing the lineage as an expression steers the planner to an index
    # by id or owner instead.
    rest = f"substr(lineage, {len(lineage) + 2})"
    step = f"CAST({rest} AS INTEGER)" if connection.vendor == "sqlite" else f"split_part({rest}, '/', 1)::bigint"
    inside, by_expression = "lineage > %s AND lineage < %s", "lineage || '' > %s AND lineage || '' < %s"
    ways = [(_as_sql(term), inside) for term in _owning(actor)]
    if granted:
        ways.append((_as_sql(Term("id", granted)), by_expression))
    below = [f"SELECT {step} FROM metalake_securable WHERE {way} AND {at} AND kind = 'schema'" for (way, _), at in ways]  # noqa: S608
    parameters = [each for (_, given), _ in ways for each in (given, f"{lineage}/", f"{lineage}0")]
    return f"id IN ({' UNION ALL '.join(below)})", parameters


def _as_sql(term: Term) -> tuple[str, Any]:
    """A condition with exactly one parameter, even for a list, so that the SQL text does not vary."""
    column, values, is_not = term
    if isinstance(values, int):
        return f"{column} = %s", values
    is_sqlite = connection.vendor == "sqlite"
    text = f"{column} IN (SELECT value FROM json_each(%s))" if is_sqlite else f"{column} = ANY(%s)"  # noqa: S608
    return f"NOT {text}" if is_not else text, json.dumps(list(values)) if is_sqlite else list(values)
