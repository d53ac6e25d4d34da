"""The current state of objects, people and grants, as access queries need it.

The past (access/history/past.py) has the same interface, so one evaluator serves both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from authz import objects, snapshot
from authz.actor import NOBODY, Actor
from authz.models import Grant, Group, Member, Role, User, unended
from authz.snapshot import Snapshot
from metalake.kinds import BESIDE_CATALOGS, Kind
from metalake.lineage import Address, Located
from metalake.models import Securable
from metalake.privileges import Effect, Privilege


class GrantRow(NamedTuple):
    """One grant of a role on an object, with who granted it and when."""

    role_id: int
    object_id: int
    privilege: Privilege
    effect: Effect
    grantor: str
    granted_at: datetime
    starts_at: datetime | None
    ends_at: datetime | None


class Placed(NamedTuple):
    """An object in a walk over a metalake, in which parents come before what is below them."""

    id: int
    kind: str
    name: str
    lineage: str
    owner_user_id: int | None
    owner_group_id: int | None


class State(Protocol):
    """The rights and objects of one metalake at `at` (seconds since 1970; None is now)."""

    @property
    def top(self) -> Located: ...

    @property
    def at(self) -> float | None: ...

    def locate(self, kind: Kind, full_name: str, asker: Actor | None = None) -> Located:
        """Raises NotFound and Invalid of kind "object"; `asker` as for find_asked."""

    def locate_all(self, addresses: Collection[Address]) -> dict[Address, Located]:
        """The objects at these addresses, in as many queries as for one; misses are left out.

        External systems are not queried: an object not yet imported is a miss.
        """

    def same(self, on: Located) -> Located:
        """An object located by id, as of this state. Raises NotFound of kind "object"."""

    def policy_on(self, object_ids: Collection[int] | None = None) -> Snapshot:
        """The policy, with at least the grants on these objects, or on all (None)."""

    def grants(self, object_ids: Collection[int], role_ids: Collection[int] | None = None) -> list[GrantRow]:
        """Unexpired grants on these objects, of these roles or of all (None)."""

    def members(self) -> dict[str, int]:
        """The enabled members' ids by name."""

    def roles(self, ids: Collection[int] | None = None) -> dict[int, str]:
        """The names of these roles of the metalake, or of all (None), by id."""

    def groups(self, ids: Collection[int] | None = None) -> dict[int, str]:
        """The names of these groups of the metalake, or of all (None), by id."""

    def walk(self, below: Located, start: str = "", size: int = 10_000) -> list[Placed]:
        """At most `size` of the objects at and below one, by lineage, from `start` on; roles are left out."""

    def lineages(self, ids: Collection[int]) -> Iterator[str]:
        """The lineages of these objects, in any order."""

    def owned(self, actor: Actor, below: Located, start: str, size: int) -> list[str]:
        """At most `size` lineages of what the actor owns at or below an object, sorted, from the lineage `start` on."""

    def actor(self, name: str, policy: Snapshot) -> Actor:
        """The member of that name, or a former one who still has links; else an actor without rights."""


@dataclass(frozen=True)
class Now:
    top: Located
    at: float | None = None

    def locate(self, kind: Kind, full_name: str, asker: Actor | None = None) -> Located:
        return objects.find_asked(self.top.name, kind, full_name, asker)

    def locate_all(self, addresses: Collection[Address]) -> dict[Address, Located]:
        return objects.locate_all(self.top, addresses)

    def same(self, on: Located) -> Located:
        return on

    def policy_on(self, object_ids: Collection[int] | None = None) -> Snapshot:
        return snapshot.latest()

    def grants(self, object_ids: Collection[int], role_ids: Collection[int] | None = None) -> list[GrantRow]:
        rows = Grant.objects.filter(unended(timezone.now()), content_object__in=object_ids, group__role__isnull=False)
        if role_ids is not None:
            # With the groups' ids PostgreSQL uses the index; with a join it reads every grant on a busy catalog.
            rows = rows.filter(group__in=list(Role.objects.filter(pk__in=role_ids).values_list("group_id", flat=True)))
        values = rows.order_by("pk").values_list(
            "group__role", "content_object_id", "permission__codename", "effect",
            "grantor", "granted_at", "starts_at", "ends_at",
        )  # fmt: skip
        return [
            GrantRow(role_id, object_id, Privilege(codename), Effect(effect), grantor, granted_at, starts_at, ends_at)
            for role_id, object_id, codename, effect, grantor, granted_at, starts_at, ends_at in values
        ]

    def members(self) -> dict[str, int]:
        rows = Member.objects.filter(metalake_id=self.top.id, enabled=True)
        return dict(rows.order_by("user__username").values_list("user__username", "user_id"))

    def roles(self, ids: Collection[int] | None = None) -> dict[int, str]:
        return names_of(Role.objects.filter(parent_id=self.top.id), ids)

    def groups(self, ids: Collection[int] | None = None) -> dict[int, str]:
        return names_of(Group.objects.filter(metalake_id=self.top.id), ids)

    def walk(self, below: Located, start: str = "", size: int = 10_000) -> list[Placed]:
        with connection.cursor() as cursor:
            cursor.execute(_WALK, [max(start, below.lineage), f"{below.lineage}0", size])
            return list(map(Placed._make, cursor.fetchall()))

    def lineages(self, ids: Collection[int]) -> Iterator[str]:
        every = sorted(ids)
        for first in range(0, len(every), 5000):
            rows = Securable.objects.filter(pk__in=every[first : first + 5000])
            yield from rows.values_list("lineage", flat=True)

    def owned(self, actor: Actor, below: Located, start: str, size: int) -> list[str]:
        # One statement for each owner reads an index in order; one for all would sort everything that is owned.
        owners = [Q(owner_user_id=actor.id), *(Q(owner_group_id=group) for group in actor.groups)]
        queries = [at_or_below(Securable.objects.filter(owner), below, start) for owner in owners]
        return sorted(lineage for rows in queries for lineage in rows.values_list("lineage", flat=True)[:size])[:size]

    def actor(self, name: str, policy: Snapshot) -> Actor:
        belongs = Q(memberships__metalake=self.top.id)
        # Former members who still have links that carry a DENY.
        belongs |= Q(groups__role__parent=self.top.id) | Q(metalake_groups__metalake=self.top.id)
        user_id = User.objects.filter(belongs, username=name).values_list("pk", flat=True)
        return Actor(user_id.first() or NOBODY, name, policy)


_LEFT_OUT = ", ".join(f"'{kind}'" for kind in BESIDE_CATALOGS)
# Raw SQL: one answer may run it 1000 times, and composing it in Django takes as long as running it.
_WALK = (
    "SELECT id, kind, name, lineage, owner_user_id, owner_group_id FROM metalake_securable "  # noqa: S608
    f"WHERE lineage >= %s AND lineage < %s AND kind NOT IN ({_LEFT_OUT}) ORDER BY lineage LIMIT %s"
)


def at_or_below(rows: QuerySet[Securable], below: Located, start: str) -> QuerySet[Securable]:
    """The rows at or below an object, from the lineage `start` on; 0 is the character after a slash."""
    lineage = below.lineage
    return rows.filter(lineage__gte=max(start, lineage), lineage__lt=f"{lineage}0").order_by("lineage")


def names_of(rows: QuerySet, ids: Collection[int] | None) -> dict[int, str]:
    if ids is not None:
        rows = rows.filter(pk__in=ids)
    return dict(rows.order_by("name").values_list("pk", "name"))
