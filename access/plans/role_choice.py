"""Chooses the role for an access request: an exact match, or a new one; roles of others only by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import count, islice
from typing import NamedTuple

from django.db.models import Count, Q

from access.explain.reach import type_of
from access.plans.desired import Change
from access.plans.export import by_role, holders_of
from access.plans.recipients import Party, carrier
from authz import policy
from authz.actor import Actor
from authz.models import Grant, Role, unended
from authz.name_rules import MAX_ROLE_NAME
from authz.services.grant_entries import Entries
from metalake.full_names import dotted
from metalake.levels import Level, privileges_of
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

SHOWN = 5
MOST_LOOKED_AT = 200
NAMES_AT_ONCE = 10
_READS = ("use", "select", "read", "consume", "execute")

Standing = dict[int, Entries]
"""What a role holds, by the ids of objects."""
Grants = Sequence[tuple[Located, Entries]]
"""What a role is to hold, on each object."""


class OtherHolders(NamedTuple):
    """Holders of the proposed role other than the request's people: the first few by name, and the total."""

    names: tuple[str, ...]
    total: int


NOBODY_ELSE = OtherHolders((), 0)


class Alternative(NamedTuple):
    """A role of others with exactly the requested grants, to be chosen by name."""

    role: str
    reason: str
    other_holders: OtherHolders


class Choice(NamedTuple):
    """A role, or the name of a new one (`row` is None), and why this one; `standing` is what it holds there.

    `others` hold it in addition to the request's people.
    """

    name: str
    reason: str
    row: Role | None
    standing: Standing
    others: OtherHolders = NOBODY_ELSE


@dataclass(frozen=True)
class Choosing:
    """The inputs to choosing a role; `grants` are the request's own first, then USE_* on the ancestors."""

    top: Located
    parties: Sequence[Party]
    grants: Grants
    actor: Actor

    def choose(self) -> Choice:
        """A role with exactly these grants that nobody else holds, else a new one.

        Another owner may change or drop their role, so such a role is used only if these people already hold it.
        """
        mine = [choice for choice in self._exact if not choice.others.total and not self._is_elses(choice)]
        if not mine:
            return self._new()
        choice = min(mine, key=lambda choice: (len(self._lines(choice) or ()), choice.name))
        return choice._replace(reason=f"{choice.name} {self._what_for(choice)}.")

    def alternatives(self) -> tuple[Alternative, ...]:
        """The first few roles of others with exactly these grants; anyone assigned one also gets its later grants."""
        some = [choice for choice in self._exact if choice.others.total or self._is_elses(choice)]
        some = [choice for choice in some if not self._lines(choice)]
        some = sorted(some, key=lambda choice: choice.name)[:SHOWN]
        return tuple(Alternative(c.name, f"{c.name} {self._what_for(c)}.", c.others) for c in some)

    def _is_elses(self, choice: Choice) -> bool:
        have_it = bool(self.parties) and all(choice.row and choice.row.pk in party.direct for party in self.parties)
        return bool(self._owner_beside(choice.row)) and not (have_it and not self._lines(choice))

    def _owner_beside(self, row: Role | None) -> str:
        """Who owns a role, unless it is the caller or the metalake's owner."""
        if row is None or row.owner_user_id == self.actor.id or row.owner_group_id in self.actor.groups:
            return ""
        if (row.owner_user_id, row.owner_group_id) == self.top.nodes[0][3:]:
            return ""
        return row.owner_user.username if row.owner_user else row.owner_group.name if row.owner_group else ""

    def named(self, name: str, *, says_all: bool = True) -> Choice:
        """The role of this name, or a new one; `says_all`: also describe its other grants and its holders."""
        row = Role.objects.filter(parent_id=self.top.id, name=name).first()
        if row is None:
            return Choice(name, f"There is no role {name} yet: it is made.", None, {})
        standing = self._standing([row], [on.id for on, _ in self.grants]).get(row.pk, {})
        beside = self._beside(row) if says_all else ""
        reason = f"You chose role {name}{f', which also holds {beside}' if beside else ''}."
        return Choice(name, reason, row, standing, self._others([row])[row.pk])

    @property
    def target(self) -> Located:
        return self.grants[0][0]

    @property
    def entries(self) -> Entries:
        return self.grants[0][1]

    @cached_property
    def _exact(self) -> list[Choice]:
        """The roles with all of the request's grants and otherwise at most USE_* on the ancestors.

        None for a temporary grant, which gets its own role.
        """
        if any(given.starts or given.ends for given in self.entries.values()):
            return []
        uses = {use: carrier(use, self.target).id for use in (Privilege.USE_CATALOG, Privilege.USE_SCHEMA)}
        rows = self._carrying(len(self.entries) + len(uses))
        standing, others = self._standing(rows), self._others(rows)
        exact = []
        for row in rows:
            on = {id: dict(entries) for id, entries in standing.get(row.pk, {}).items()}
            for use, id in uses.items():
                if (
                    use not in self.entries
                    and (given := on.get(id, {}).get(use))
                    and given == (Effect.ALLOW, None, None)
                ):
                    del on[id][use]
            if {id: entries for id, entries in on.items() if entries} == {self.target.id: self.entries}:
                exact.append(Choice(row.name, "", row, standing[row.pk], others[row.pk]))
        return exact

    def _carrying(self, most: int) -> list[Role]:
        """Roles with the first requested grant and `most` grants in all; those nobody else can hold come first."""
        privilege, given = next(iter(self.entries.items()))
        carrying = Grant.objects.filter(
            unended(self.actor.moment),
            content_object=self.target.id,
            permission__codename=privilege.value,
            effect=given.effect.value,
        )
        direct = frozenset().union(*(party.direct for party in self.parties))
        free = Q(group__role__in=direct) | Q(group__user__isnull=True, group__role__groups__isnull=True)
        groups: set[int] = set()
        for some in (carrying.filter(free), carrying):
            few = Grant.objects.filter(unended(self.actor.moment), group__in=some.values("group")).values("group")
            few = few.annotate(count=Count("pk")).filter(count__lte=most).order_by("group")
            groups.update(few.values_list("group", flat=True)[:MOST_LOOKED_AT])
        rows = Role.objects.filter(parent_id=self.top.id, group__in=groups)
        return list(rows.select_related("owner_user", "owner_group"))

    def _new(self) -> Choice:
        names = names_for(self.target, self.entries)
        first = next(names_for(self.target, self.entries))
        while True:
            some = list(islice(names, NAMES_AT_ONCE))
            there = set(Role.objects.filter(parent_id=self.top.id, name__in=some).values_list("name", flat=True))
            if free := [name for name in some if name not in there]:
                break
        why = "no role exists for exactly this that nobody else holds"
        why += " or owns" * any(not choice.others.total for choice in self._exact)
        if any(given.starts or given.ends for given in self.entries.values()):
            why = "a grant for a time has a role of its own"
        is_timed = why.startswith("a grant for a time")
        another = f"; there is a role {first}{' already' if is_timed else ', for something or somebody else'}"
        return Choice(free[0], f"New role {free[0]}: {why}{another * (free[0] != first)}.", None, {})

    def _lines(self, choice: Choice) -> list[Change] | None:
        return lines_for(choice.name, choice.standing, self.grants, self.actor.moment)

    def _what_for(self, choice: Choice) -> str:
        """ "exists for exactly this: Reader on schema lake.A, held by mia"."""
        assert choice.row is not None
        names = [*choice.others.names, *(p.whom.name for p in self.parties if choice.row.pk in p.direct)]
        shown, more = sorted(names)[:SHOWN], choice.others.total - len(choice.others.names) + len(names[SHOWN:])
        whose = f"held by {', '.join(shown)}{f' and {more} more' if more else ''}" if names else "held by nobody yet"
        alone = " and by nobody else" if names and not choice.others.total else ""
        owned = f", owned by {owner}" if (owner := self._owner_beside(choice.row)) else ""
        return f"exists for exactly this: {self._requested()} on {policy.describe(self.target)}, {whose}{alone}{owned}"

    def _requested(self) -> str:
        """The level of the request, or its privileges."""
        effects = {given.effect for given in self.entries.values()}
        for level in Level:
            if effects == {Effect.ALLOW} and {*privileges_of(level, self.target.kind, type_of(self.target))} == {
                *self.entries
            }:
                return level.capitalize()
        return ", ".join(f"{'DENY ' * (g.effect is Effect.DENY)}{p}" for p, g in sorted(self.entries.items()))

    def _beside(self, row: Role) -> str:
        """The role's DENYs, temporary grants and grants elsewhere, as text."""
        on_others = ~Q(content_object__in=[on.id for on, _ in self.grants])
        counts = Grant.objects.filter(unended(self.actor.moment), group=row.group_id).aggregate(
            DENY=Count("pk", filter=Q(effect=Effect.DENY.value)),
            timed=Count("pk", filter=Q(starts_at__isnull=False) | Q(ends_at__isnull=False)),
            elsewhere=Count("pk", filter=on_others),
        )
        words = {"DENY": "DENY|s", "timed": "grant|s for a time", "elsewhere": "grant|s on other objects"}
        some = (
            f"{counts[key]:,} {word.replace('|s', 's' * (counts[key] > 1))}"
            for key, word in words.items()
            if counts[key]
        )
        return ", ".join(some)

    def _others(self, rows: Sequence[Role]) -> dict[int, OtherHolders]:
        """Each role's holders other than these people."""
        people = {(party.whom.sort, party.id) for party in self.parties}
        names: dict[int, list[str]] = {row.pk: [] for row in rows}
        for sort in ("user", "group"):
            for role, holders in holders_of(self.top, sort, list(names)).items():
                names[role] += [name for id, name in holders.items() if (sort, id) not in people]
        return {role: OtherHolders(tuple(sorted(some)[:SHOWN]), len(some)) for role, some in names.items()}

    def _standing(self, rows: Sequence[Role], on: Sequence[int] | None = None) -> dict[int, Standing]:
        """What the roles hold, on all objects or on these."""
        grants = Grant.objects.filter(unended(self.actor.moment), group__in=[row.group_id for row in rows])
        return by_role(grants if on is None else grants.filter(content_object__in=on))


def lines_for(role: str, standing: Standing, grants: Grants, now: datetime) -> list[Change] | None:
    """The changes that add the grants to a role that holds `standing`.

    None if it holds one with another effect, or for a period that the new one does not contain.
    """
    lines = []
    for on, entries in grants:
        place = on.kind, dotted(on.full_name)
        for privilege, given in entries.items():
            there = standing.get(on.id, {}).get(privilege)
            if there is not None:
                ahead = there._replace(starts=None) if there.starts and there.starts <= now else there
                if ahead.covers(given):
                    continue
                if not given.covers(ahead):
                    return None
                lines.append(Change("revoke", role, privilege, there, on=place))
            lines.append(Change("grant", role, privilege, given, on=place))
    return lines


def assignments(role: str, row: Role | None, parties: Sequence[Party]) -> list[Change]:
    """The changes that assign a role to those who do not hold it yet, directly or through a group."""
    id = row.pk if row else 0
    return [
        Change("assign", role, holder=(party.whom.sort, party.whom.name))
        for party in parties
        if id not in party.actor.roles
    ]


def names_for(target: Located, entries: Entries) -> Iterator[str]:
    """Endless role name candidates, from the full path and the level: `lake_sales_emea_reader`, then with `_2`, ...

    One that is too long keeps its catalog and as much of its end as fits: `lake--emea_orders_reader`.
    """
    nodes = target.nodes[1:] or target.nodes
    parts = [re.sub(r"[^\w=-]+", "_", node.name).strip("_") or node.kind for node in nodes]
    parts[0] = parts[0] if parts[0][0] not in "=-" else f"_{parts[0]}"
    word = _word(entries) + _span_word(entries)
    yield _name(parts, word)
    yield from (_name(parts, f"{word}_{n}") for n in count(2))


def _name(parts: list[str], word: str) -> str:
    room, base = MAX_ROLE_NAME - len(word) - 1, "_".join(parts)
    if len(base) > room and len(parts) > 1:
        first, rest = parts[0][: room // 3], parts[1:]
        while len(rest) > 1 and len("_".join(rest)) > room - len(first) - 2:
            rest = rest[1:]
        base = f"{first}--{'_'.join(rest)}"
    return f"{base[:room]}_{word}"


def _span_word(entries: Entries) -> str:
    """ "_until_2026-12-31" for a temporary grant."""
    for word, way in (("until", "ends"), ("from", "starts")):
        if moments := {getattr(given, way) for given in entries.values()} - {None}:
            return f"_{word}_{max(moments):%Y-%m-%d}"
    return ""


def _word(entries: Entries) -> str:
    """What holders of such a role are."""
    allowed = [privilege for privilege, given in entries.items() if given.effect is Effect.ALLOW]
    if not allowed:
        return "denied"
    if Privilege.MANAGE_GRANTS in allowed:
        return "manager"
    return "reader" if all(privilege.startswith(_READS) for privilege in allowed) else "writer"
