"""One access question, with the data its explanation needs and the sentences it uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from access.explain.permissions import Redactor
from access.history.current import GrantRow, State
from authz import operations
from authz.actor import Actor
from authz.operations import Operation
from authz.services.owners import Owner
from metalake.kinds import grantable_on
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege


@dataclass(frozen=True)
class NamedGrant:
    """A grant with its role and its object by name; `on` is None if the asker may not see the object."""

    role: str
    privilege: Privilege
    effect: Effect
    on: Located | None
    grantor: str
    granted_at: datetime
    starts_at: datetime | None
    ends_at: datetime | None


@dataclass(frozen=True)
class Reason:
    """One sentence of an explanation, the reasons for it, and the same as data.

    `on` is the object that is owned, or the nearest one that the privilege `lacks` could be granted on; None if the
    asker may not see it.
    """

    says: str
    because: tuple[Reason, ...] = ()
    grant: NamedGrant | None = None
    group: str | None = None
    owner: Owner | None = None
    lacks: Privilege | None = None
    on: Located | None = None


@dataclass(frozen=True)
class Case:
    """Whether `subject` may do the operation on `target`. The subject's policy is as of the requested moment."""

    asker: Actor
    state: State
    subject: Actor
    target: Located
    operation: Operation

    @property
    def who(self) -> str:
        return self.subject.name

    @property
    def top(self) -> Located:
        return self.target.top

    @cached_property
    def sight(self) -> Redactor:
        return Redactor(self.asker, self.state, self.target)

    @property
    def lineage(self) -> list[Located]:
        """The objects from the metalake down to the target, each with its lineage."""
        return self.sight.lineage

    @cached_property
    def grants(self) -> list[GrantRow]:
        """The grants, ALLOW and DENY, of the subject's roles on the lineage, the nearest to the object first."""
        if not self.subject.roles:
            return []
        depths = {node.id: depth for depth, node in enumerate(self.target.nodes)}
        rows = self.state.grants(depths, self.subject.roles)
        return sorted(rows, key=lambda row: -depths[row.object_id])

    @cached_property
    def roles(self) -> dict[int, str]:
        return self.state.roles({row.role_id for row in self.grants})

    @cached_property
    def groups(self) -> dict[int, str]:
        """The subject's groups in this metalake."""
        return self.state.groups(self.subject.groups) if self.subject.groups else {}

    def given(self, privilege: Privilege, effect: Effect) -> list[GrantRow]:
        return [row for row in self.grants if (row.privilege, row.effect) == (privilege, effect)]

    def in_force(self, rows: Iterable[GrantRow]) -> list[GrantRow]:
        now = self.subject.moment
        return [row for row in rows if not is_ahead(row, now) and (row.ends_at is None or row.ends_at > now)]

    def at(self, object_id: int) -> Located:
        return self.sight.at(object_id)

    def owned_at(self, level: str) -> list[Located]:
        """The objects that the subject owns at one level of the lineage, nearest first."""
        return [located for located in self.at_level(level) if self.subject.owns(located.nodes[-1])]

    def at_level(self, level: str) -> list[Located]:
        if level == operations.SELF:
            return [self.target]
        return [located for located in reversed(self.lineage) if located.kind == level]

    def nearest(self, privilege: Privilege) -> Located:
        """The target, or the nearest object above it, that the privilege can be granted on."""
        return next(on for on in reversed(self.lineage) if on.kind in grantable_on(privilege))

    # Sentences

    def named(self, on: Located) -> str:
        return self.sight.named(on)

    def shown(self, on: Located) -> Located | None:
        return self.sight.shown(on)

    def named_grant(self, row: GrantRow) -> NamedGrant:
        return NamedGrant(
            role=self.roles.get(row.role_id, ""),
            privilege=row.privilege,
            effect=row.effect,
            on=self.shown(self.at(row.object_id)),
            grantor=row.grantor,
            granted_at=row.granted_at,
            starts_at=row.starts_at,
            ends_at=row.ends_at,
        )

    def grant_reason(self, row: GrantRow, comment: str = "") -> Reason:
        """ "Role analysts allows select_table on table lake.sales.orders, granted by olga on 2026-08-01 12:00 UTC." """
        grant = self.named_grant(row)
        verb = "denies" if row.effect is Effect.DENY else "allows"
        says = f"Role {grant.role} {verb} {row.privilege} on {self.named(self.at(row.object_id))}{comment}"
        says += f", granted by {row.grantor} on {in_words(row.granted_at)}"
        if row.ends_at is not None:
            says += f" until {in_words(row.ends_at)}"
        return Reason(f"{says}.", because=self.holding(row.role_id), grant=grant)

    def holding(self, role_id: int) -> tuple[Reason, ...]:
        """Why the subject holds a role: directly, and through each group that holds it."""
        snapshot, role = self.subject.policy, self.roles.get(role_id, "")
        direct = (
            [Reason(f"{self.who} holds role {role}.")]
            if role_id in snapshot.user_roles.get(self.subject.id, ())
            else []
        )
        through = [
            Reason(f"{self.who} is in group {name}, which holds role {role}.", group=name)
            for group_id, name in self.groups.items()
            if role_id in snapshot.group_roles.get(group_id, ())
        ]
        return (*direct, *through)


def is_ahead(row: GrantRow, now: datetime) -> bool:
    return row.starts_at is not None and row.starts_at > now


def in_words(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
