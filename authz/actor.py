"""The actor, which every service takes: the caller and their permissions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from authz import snapshot
from authz.snapshot import ALLOWS, DENY_SHIFT, Snapshot
from metalake.lineage import Node

NOBODY = 0
SYSTEM = "metalake"  # the actor of the server's own work


@dataclass(frozen=True)
class _Server:
    name: str = SYSTEM


SERVER = _Server()  # for events: recording what was noticed checks no permission and loads no policy


@dataclass(frozen=True)
class Actor:
    """The caller, with the policy as of the request's start; `id` is NOBODY for a name without an account.

    `claimed` are stored groups that a trusted token claims for the caller. Of the groups in `denying` only DENYs count,
    such as those a token once claimed for a schedule's owner. `active` are the roles whose ALLOWs count, None for all;
    DENY and ownership are never narrowed. `at` is the evaluation time in seconds since 1970, None for now. `within` is
    the only metalake that the token is valid in, as for a run's token; None for all. `believed`: the `simple`
    authenticator accepted the name without proof; an account is created when this actor first owns something
    (authz.callers.accounts).
    """

    id: int
    name: str
    policy: Snapshot
    service_admin: bool = False
    claimed: tuple[int, ...] = ()
    denying: tuple[int, ...] = ()
    active: tuple[int, ...] | None = None
    at: float | None = None
    believed: bool = False
    within: int | None = None

    @cached_property
    def roles(self) -> tuple[int, ...]:
        """The roles whose DENYs count: held directly, or through a group that is stored, claimed or denying."""
        return self._roles_with((*self.claimed, *self.denying))

    @cached_property
    def allowing_roles(self) -> tuple[int, ...]:
        allowing = self._roles_with(self.claimed) if self.denying else self.roles
        return allowing if self.active is None else tuple(role for role in allowing if role in self.active)

    def _roles_with(self, groups: Sequence[int]) -> tuple[int, ...]:
        stored = self.policy.roles_of(self.id)
        if not groups:
            return stored
        return tuple(sorted({*stored, *(role for group in groups for role in self.policy.group_roles.get(group, ()))}))

    @cached_property
    def groups(self) -> tuple[int, ...]:
        return (
            tuple({*self.policy.groups_of(self.id), *self.claimed}) if self.claimed else self.policy.groups_of(self.id)
        )

    @cached_property
    def now(self) -> float:
        """The same time throughout a request, so that its checks and lists agree."""
        return time.time() if self.at is None else self.at

    @cached_property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)

    def mask(self, securables: Sequence[int]) -> int:
        """The mask of all the actor's ALLOWs and DENYs on these securables, as of `now`."""
        mask = self.policy.mask(self.roles, securables, self.now)
        if self.active is None and not self.denying:
            return mask
        allowed = self.policy.mask(self.allowing_roles, securables, self.now)
        return mask >> DENY_SHIFT << DENY_SHIFT | allowed & ALLOWS

    def as_json(self) -> dict[str, Any]:
        """The serialized actor; `actor_from` restores it with the policy current at that time."""
        stored = {"id": self.id, "name": self.name, **self.standing}
        return stored if self.within is None else stored | {"within": self.within}

    @property
    def standing(self) -> dict[str, Any]:
        """This request's groups and roles, stored for work done later on the actor's behalf (`standing_in`)."""
        stored = {"claimed": self.claimed, "active": self.active}
        return stored | {"denying": self.denying} if self.denying else stored

    def refreshed(self) -> Actor:
        """The same actor with the current policy: a write rereads it inside its transaction."""
        return replace(self, policy=snapshot.latest())

    def owns(self, node: Node) -> bool:
        if node.owner_user_id is not None:
            return node.owner_user_id == self.id
        return node.owner_group_id in self.groups

    def is_member(self, metalake_id: int) -> bool:
        return self.within in (None, metalake_id) and self.policy.is_member(self.id, metalake_id)


def system_actor() -> Actor:
    """The actor of the server's own work: imported changes, crash recovery, follow-up work."""
    return Actor(NOBODY, SYSTEM, snapshot.latest())


def actor_from(stored: Mapping[str, Any]) -> Actor:
    """The actor that `as_json` wrote, with their current permissions."""
    return Actor(
        id=stored["id"],
        name=stored["name"],
        policy=snapshot.latest(),
        within=stored.get("within"),
        **standing_in(stored),
    )


def standing_in(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The groups and active roles that `standing` wrote."""
    active = stored.get("active")
    groups = {name: tuple(stored.get(name) or ()) for name in ("claimed", "denying")}
    return groups | {"active": None if active is None else tuple(active)}
