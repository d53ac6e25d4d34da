"""By which role people are given privileges: one that is theirs alone, one that carries just this, or a new one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count, islice
from typing import NamedTuple

from django.db.models import Count, QuerySet

from authz.models import Grant, Role, unended
from authz.name_rules import MAX_ROLE_NAME
from authz.plans.exporting import by_role, holders_of
from authz.plans.parties import Party, carrier
from authz.plans.wanted import Change
from authz.plans.wishes import OtherHolders
from authz.services.entries import Entries
from authz.services.publishing import GroupRole, UserRole
from metalake.lineage import Located
from metalake.names import dotted
from metalake.privileges import Effect, Privilege

SHOWN = 5
MOST_LOOKED_AT = 200
NAMES_AT_ONCE = 10
_READS = ("use", "select", "read", "consume", "execute")

Standing = dict[int, Entries]
"""What a role holds, by the ids of objects."""
Grants = Sequence[tuple[Located, Entries]]
"""What a role is to hold, on each object."""


class Choice(NamedTuple):
    """A role, or the name of a new one (`row` is None), and why this one; `standing` is what it holds there."""

    name: str
    reason: str
    row: Role | None
    standing: Standing

    def others(self, top: Located, parties: Sequence[Party]) -> OtherHolders:
        """Who holds the role beside these people."""
        if self.row is None:
            return OtherHolders((), 0)
        people = {(party.whom.sort, party.id) for party in parties}
        names = [
            name
            for sort in ("user", "group")
            for id, name in holders_of(top, sort, [self.row.pk]).get(self.row.pk, {}).items()
            if (sort, id) not in people
        ]
        return OtherHolders(tuple(sorted(names)[:SHOWN]), len(names))


@dataclass(frozen=True)
class Choosing:
    """What the choice of a role depends on; `grants` are the wish's own first, then USE_* on the way."""

    top: Located
    parties: Sequence[Party]
    grants: Grants
    now: datetime

    def choose(self) -> Choice:
        """The first that fits: a role of exactly these people, one that carries exactly these grants, a new one."""
        return self._of_these_people() or self._with_these_grants() or self._new()

    def named(self, name: str) -> Choice:
        """The role of this name, or a new one."""
        row = Role.objects.filter(parent_id=self.top.id, name=name).first()
        if row is None:
            return Choice(name, f"There is no role {name} yet: it is made.", None, {})
        return Choice(name, f"You chose role {name}.", row, self._standing([row]).get(row.pk, {}))

    def _of_these_people(self) -> Choice | None:
        common = frozenset.intersection(*(party.direct for party in self.parties))
        rows = list(Role.objects.filter(parent_id=self.top.id, pk__in=common))
        counts = {row.pk: 0 for row in rows}
        for pairs in (
            UserRole.objects.filter(group__role__in=counts).values_list("group__role").annotate(Count("pk")),
            GroupRole.objects.filter(role__in=counts).values_list("role").annotate(Count("pk")),
        ):
            for role, holders in pairs:
                counts[role] += holders
        theirs = [row for row in rows if counts[row.pk] == len(self.parties)]
        standing = self._standing(theirs)
        fits = [
            (len(lines), row)
            for row in theirs
            if (lines := lines_for(row.name, standing.get(row.pk, {}), self.grants, self.now)) is not None
        ]
        if not fits:
            return None
        _, row = min(fits, key=lambda pair: (pair[0], pair[1].name))
        who = "this user or group" if len(self.parties) == 1 else "exactly these users and groups"
        return Choice(row.name, f"Role {row.name} is held by {who} and by nobody else.", row, standing.get(row.pk, {}))

    def _with_these_grants(self) -> Choice | None:
        """A role that has all of the wish's grants, and beside them USE_* on the way at most."""
        target, entries = self.grants[0]
        extras = [(carrier(use, target).id, use) for use in (Privilege.USE_CATALOG, Privilege.USE_SCHEMA)]
        carrying = Grant.objects.filter(
            unended(self.now), content_object=target.id, permission__codename=next(iter(entries)).value
        )
        few = Grant.objects.filter(group__in=carrying.values("group")).values("group").annotate(count=Count("pk"))
        few = few.filter(count__lte=len(entries) + len(extras)).order_by("group")[:MOST_LOOKED_AT]
        rows = list(Role.objects.filter(parent_id=self.top.id, group__in=[row["group"] for row in few]))
        wanted = {(on.id, privilege) for on, privileges in self.grants for privilege in privileges} | {*extras}
        standing = by_role(self._grants_of(rows))
        for row in sorted(rows, key=lambda row: row.name):
            present = standing.get(row.pk, {})
            has_more = any((id, privilege) not in wanted for id, on in present.items() for privilege in on)
            if not has_more and lines_for(row.name, present, self.grants, self.now) == []:
                return Choice(row.name, f"Role {row.name} carries exactly these grants.", row, present)
        return None

    def _new(self) -> Choice:
        name = next(name for some in self._free_names() for name in some)
        reason = f"No role is held by just these people or carries just these grants: {name} is made for them."
        return Choice(name, reason, None, {})

    def _free_names(self) -> Iterator[list[str]]:
        """The names for a new role that no role has, a few in each statement."""
        names = names_for(*self.grants[0])
        while True:
            some = list(islice(names, NAMES_AT_ONCE))
            there = set(Role.objects.filter(parent_id=self.top.id, name__in=some).values_list("name", flat=True))
            yield [name for name in some if name not in there]

    def _standing(self, rows: Sequence[Role]) -> dict[int, Standing]:
        """What the roles hold on the objects of the grants."""
        return by_role(self._grants_of(rows).filter(content_object__in=[on.id for on, _ in self.grants]))

    def _grants_of(self, rows: Sequence[Role]) -> QuerySet[Grant]:
        return Grant.objects.filter(unended(self.now), group__in=[row.group_id for row in rows])


def lines_for(role: str, standing: Standing, grants: Grants, now: datetime) -> list[Change] | None:
    """The changes by which a role that holds `standing` holds the grants too.

    None if it holds one with another effect, or for a time that the new one would not contain.
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
    """The changes by which those of these people hold a role who do not hold it yet, directly or by a group."""
    id = row.pk if row else 0
    return [
        Change("assign", role, holder=(party.whom.sort, party.whom.name))
        for party in parties
        if id not in party.actor.roles
    ]


def names_for(target: Located, entries: Entries) -> Iterator[str]:
    """Names for a role, after the object and without end: `nyc_reader`, `travel_nyc_reader`, `nyc_reader_2`, ..."""
    word = _word(entries)
    parts = [re.sub(r"[^\w=-]+", "_", node.name).strip("_") or node.kind for node in target.nodes]
    base = ""
    for part in reversed(parts):
        base = f"{part}_{base}" if base else part
        yield _name(base, word)
    yield from (_name(parts[-1], f"{word}_{n}") for n in count(2))


def _name(base: str, word: str) -> str:
    base = base if base[0] not in "=-" else f"_{base}"
    return f"{base[: MAX_ROLE_NAME - len(word) - 1]}_{word}"


def _word(entries: Entries) -> str:
    """What holders of such a role are."""
    allowed = [privilege for privilege, given in entries.items() if given.effect is Effect.ALLOW]
    if not allowed:
        return "denied"
    if Privilege.MANAGE_GRANTS in allowed:
        return "manager"
    return "reader" if all(privilege.startswith(_READS) for privilege in allowed) else "writer"
