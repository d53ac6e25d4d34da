"""Grants as code: the desired or current state in one form, and the steps from the current to the desired one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from authz.services.grant_entries import Entries, Given
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

MAX_GRANTS = 100_000


Holders = dict[str, list[str]]
"""Names by "user" and "group"."""


class WantedGrant(NamedTuple):
    """All that a role is to hold on one object; `place` names the entry in the file."""

    place: str
    kind: Kind
    full_name: str
    entries: Entries


class WantedRole(NamedTuple):
    """A role; `users` and `groups` are None if the file does not name its holders."""

    place: str
    name: str
    users: list[str] | None
    groups: list[str] | None
    grants: list[WantedGrant]

    def holders(self) -> Holders:
        given = {"user": self.users, "group": self.groups}
        return {sort: names for sort, names in given.items() if names is not None}


class Wanted(NamedTuple):
    """The state of all grants of a metalake, or of an object and all below it (`subtree`)."""

    metalake: str
    subtree: tuple[Kind, str] | None
    roles: list[WantedRole]


class Change(NamedTuple):
    """One line of a plan: "createRole", "revoke", "grant", "unassign", "assign" or "dropRole"."""

    change: str
    role: str
    privilege: Privilege | None = None
    given: Given | None = None
    on: tuple[Kind, str] | None = None
    holder: tuple[str, str] | None = None


@dataclass
class Step:
    """The changes to one role, by ids; `role_id` is None for a role to be created.

    Dropping a role also removes all that is in `take` and `unassign`.
    """

    role_id: int | None
    name: str
    give: dict[int, Entries] = field(default_factory=dict)
    take: dict[int, Entries] = field(default_factory=dict)
    assign: dict[str, dict[int, str]] = field(default_factory=dict)
    unassign: dict[str, dict[int, str]] = field(default_factory=dict)
    drop: bool = False

    def __bool__(self) -> bool:
        return self.role_id is None or any((self.give, self.take, self.assign, self.unassign, self.drop))

    def allows_removed(self, object_id: int) -> list[Privilege]:
        """The ALLOWs that are removed and not replaced by another span or effect."""
        given = self.give.get(object_id, {})
        removed = self.take[object_id]
        return [p for p in removed if removed[p].effect is Effect.ALLOW and p not in given]


@dataclass(frozen=True)
class Difference:
    """The steps from the current to the desired state; `standing` is what each role holds on each object now."""

    top: Located
    scope: Located
    steps: list[Step]
    located: dict[int, Located]
    standing: dict[int, dict[int, Entries]]

    @property
    def changes(self) -> list[Change]:
        return changes_of(self.steps, self.located)


def object_ids(steps: Iterable[Step]) -> set[int]:
    """The ids of the objects that the steps change grants on."""
    return {id for step in steps for id in step.give.keys() | step.take.keys()}


def changes_of(steps: Iterable[Step], located: dict[int, Located]) -> list[Change]:
    """The changes role by role: createRole, revoke, grant, unassign, assign, dropRole; each of these sorted by name."""
    changes: list[Change] = []
    for step in steps:
        if step.role_id is None:
            changes.append(Change("createRole", step.name))
        for change, part in (("revoke", step.take), ("grant", step.give)):
            on = [((located[id].kind, dotted(located[id].full_name)), entries) for id, entries in part.items()]
            changes += [
                Change(change, step.name, privilege, given, where)
                for where, entries in sorted(on, key=lambda pair: (pair[0][1], pair[0][0]))
                for privilege, given in sorted(entries.items())
            ]
        for change, people in (("unassign", step.unassign), ("assign", step.assign)):
            changes += [
                Change(change, step.name, holder=(sort, name))
                for sort, names in people.items()
                for name in sorted(names.values())
            ]
        if step.drop:
            changes.append(Change("dropRole", step.name))
    return changes
