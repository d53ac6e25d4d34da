"""The permission cache: the policy of all metalakes in memory, immutable, versioned by the policy epoch.

Grants without a time span are bit masks; those with one are stored separately and compared with the clock.

A request reads the epoch together with its identity in one statement; if it has advanced, one more statement reads the
changes since, so no request decides on a policy older than was acknowledged when it began. Owners are columns of the
objects and are not cached here. Every granting transaction calls `publish`, which advances the epoch under a row lock,
so epochs are in commit order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from math import inf
from secrets import token_hex
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import F
from django.utils import timezone

from authz.models import Grant, PolicyChange, PolicyEpoch, unended
from metalake.privileges import Effect, Privilege

DENY_SHIFT = 64
MOST_LOOKED_AT = 50_000
MOST_NAMED = 1000
ALLOWS = (1 << DENY_SHIFT) - 1
CHANGES_STORED = 10_000
TOPICS = frozenset({"grants", "members", "user_roles", "user_groups", "group_roles"})

_NOTHING: Mapping[int, Any] = {}


class Timed(NamedTuple):
    """A grant with a time span: its privilege mask, and start and end (seconds since 1970)."""

    mask: int
    starts: float
    ends: float


def mask_of(privilege: Privilege, effect: Effect | str) -> int:
    """The privilege's bit: allows low, denies high."""
    return privilege.bit << (DENY_SHIFT if effect == Effect.DENY else 0)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Memberships, role assignments and grants.

    `grants` is role id -> securable id -> mask, `timed` role id -> securable id -> grants with a time span.
    """

    epoch: int
    stamp: str
    members: Mapping[int, frozenset[int]]
    user_roles: Mapping[int, tuple[int, ...]]
    user_groups: Mapping[int, tuple[int, ...]]
    group_roles: Mapping[int, tuple[int, ...]]
    grants: Mapping[int, Mapping[int, int]]
    timed: Mapping[int, Mapping[int, tuple[Timed, ...]]] = field(default_factory=dict)
    _roles: dict[int, tuple[int, ...]] = field(default_factory=dict, repr=False)

    def roles_of(self, user_id: int) -> tuple[int, ...]:
        """Roles held directly or through a group."""
        roles = self._roles.get(user_id)
        if roles is None:
            role_ids = set(self.user_roles.get(user_id, ()))
            for group_id in self.user_groups.get(user_id, ()):
                role_ids.update(self.group_roles.get(group_id, ()))
            roles = self._roles[user_id] = tuple(sorted(role_ids))
        return roles

    def groups_of(self, user_id: int) -> tuple[int, ...]:
        return self.user_groups.get(user_id, ())

    def is_member(self, user_id: int, metalake_id: int) -> bool:
        return user_id in self.members.get(metalake_id, ())

    def mask(self, roles: Iterable[int], lineage: Sequence[int], now: float) -> int:
        """The ALLOWs and DENYs of these roles anywhere on the lineage at `now` (seconds since 1970)."""
        mask = 0
        for role in roles:
            grants = self.grants.get(role, _NOTHING)
            for securable in lineage:
                if securable in grants:
                    mask |= grants[securable]
            if role in self.timed:
                timed = self.timed[role]
                for securable in lineage:
                    for grant in timed.get(securable, ()):
                        if grant.starts <= now < grant.ends:
                            mask |= grant.mask
        return mask

    def carrying(self, roles: Iterable[int], mask: int, now: float) -> list[int] | None:
        """The ids of securables with a grant of the mask to these roles; None if too many."""
        of_roles = [self.grants[role] for role in roles if role in self.grants]
        if sum(map(len, of_roles)) > MOST_LOOKED_AT:
            return None
        carriers = {securable for grants in of_roles for securable, granted in grants.items() if granted & mask}
        for role in roles if self.timed else ():
            for securable, timed in self.timed.get(role, _NOTHING).items():
                if any(grant.mask & mask and grant.starts <= now < grant.ends for grant in timed):
                    carriers.add(securable)
        return sorted(carriers) if len(carriers) <= MOST_NAMED else None

    def after(self, epoch: int, stamp: str, changes: Iterable[list[Any]]) -> Snapshot:
        """The snapshot with these changes applied; unchanged parts are shared with this one."""
        tables: dict[str, dict[int, Any]] = {}
        fresh_roles: set[int] = set()
        for name, key, *rest in changes:
            if name not in tables:
                tables[name] = dict(getattr(self, name))
            table = tables[name]
            if name == "grants":
                timed = tables.setdefault("timed", dict(self.timed))
                _change_grants(table, timed, key, rest, fresh_roles)
            elif name == "members":
                user, is_in = rest
                users = table.get(key, frozenset())
                table[key] = users | {user} if is_in else users - {user}
            else:
                table[key] = tuple(rest[0])
        return replace(self, epoch=epoch, stamp=stamp, _roles={}, **tables)


def _change_grants(
    table: dict[int, Any], timed: dict[int, Any], role: int, rest: list[Any], fresh_roles: set[int]
) -> None:
    if role not in fresh_roles:
        table[role] = dict(table.get(role, _NOTHING))
        fresh_roles.add(role)
    if not rest:
        table[role] = {}
        timed.pop(role, None)
        return
    securable, entries = rest
    _put(table[role], securable, _lasting(entries))
    of_role = dict(timed.get(role, _NOTHING))
    _put(of_role, securable, _for_a_time(entries))
    _put(timed, role, of_role)


def _put(table: dict[int, Any], key: int, value: Any) -> None:
    if value:
        table[key] = value
    else:
        table.pop(key, None)


def _lasting(entries: Iterable[dict[str, Any]]) -> int:
    mask = 0
    for entry in entries:
        if "starts" not in entry and "ends" not in entry:
            mask |= _entry_mask(entry)
    return mask


def _for_a_time(entries: Iterable[dict[str, Any]]) -> tuple[Timed, ...]:
    return tuple(
        Timed(_entry_mask(entry), _seconds(entry.get("starts"), 0), _seconds(entry.get("ends"), inf))
        for entry in entries
        if "starts" in entry or "ends" in entry
    )


def _entry_mask(entry: dict[str, Any]) -> int:
    return mask_of(Privilege(entry["privilege"]), entry["effect"])


def _seconds(moment: str | datetime | None, otherwise: float) -> float:
    if moment is None:
        return otherwise
    return (datetime.fromisoformat(moment) if isinstance(moment, str) else moment).timestamp()


# A change is the full new state, so that applying it is idempotent.


def grants_change(role_id: int, securable_id: int, entries: list[dict[str, Any]]) -> list[Any]:
    """The role's complete grants on the securable: privilege, effect, and optional starts and ends (ISO 8601)."""
    return ["grants", role_id, securable_id, entries]


def role_gone(role_id: int) -> list[Any]:
    return ["grants", role_id]


def member_change(metalake_id: int, user_id: int, is_in: bool) -> list[Any]:
    return ["members", metalake_id, user_id, is_in]


def roles_change(holder: str, holder_id: int, role_ids: Iterable[int]) -> list[Any]:
    """`holder` is "user" or "group"."""
    return [f"{holder}_roles", holder_id, sorted(role_ids)]


def groups_change(user_id: int, group_ids: Iterable[int]) -> list[Any]:
    return ["user_groups", user_id, sorted(group_ids)]


def publish(changes: list[list[Any]]) -> None:
    """Advance the epoch; call it in the transaction of the changes, after its last permission check."""
    if not changes:
        return
    stamp = token_hex(8)
    PolicyEpoch.objects.filter(pk=1).update(value=F("value") + 1, stamp=stamp)
    epoch = PolicyEpoch.objects.values_list("value", flat=True).get(pk=1)
    PolicyChange.objects.create(epoch=epoch, stamp=stamp, changes=changes)
    if epoch % 1000 == 0:
        PolicyChange.objects.filter(epoch__lt=epoch - CHANGES_STORED).delete()


def begin(**signal: Any) -> None:
    """Write the first epoch of an empty database after its migrations, with a stamp unique to this database."""
    if not PolicyEpoch.objects.exists():
        stamp = token_hex(8)
        PolicyEpoch.objects.create(pk=1, value=1, stamp=stamp)
        PolicyChange.objects.update_or_create(epoch=1, defaults={"stamp": stamp, "changes": []})


_current: Snapshot | None = None
_lock = threading.Lock()


def at(epoch: int, stamp: str) -> Snapshot:
    """The snapshot of an epoch just read, or a later one."""
    global _current
    if (snapshot := in_memory(epoch, stamp)) is not None:
        return snapshot
    with _lock:
        snapshot = _current
        if snapshot is None or (snapshot.epoch, snapshot.stamp) != (epoch, stamp):
            _current = snapshot = _follow(snapshot) or load()
    return snapshot


def in_memory(epoch: int, stamp: str) -> Snapshot | None:
    """This process's snapshot, if it is of this epoch."""
    snapshot = _current
    return snapshot if snapshot is not None and (snapshot.epoch, snapshot.stamp) == (epoch, stamp) else None


def latest() -> Snapshot:
    """The current snapshot: one statement, plus one if the epoch has advanced."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT value, stamp FROM authz_policyepoch WHERE id = 1")
        return at(*cursor.fetchone())


def forget() -> None:
    """Drop this process's snapshot; the next request reloads it."""
    global _current
    _current = None


def _follow(snapshot: Snapshot | None) -> Snapshot | None:
    """The snapshot updated with the changes since; None if some are no longer stored."""
    if snapshot is None:
        return None
    since = PolicyChange.objects.filter(epoch__gte=snapshot.epoch).order_by("epoch")
    rows = list(since.values_list("epoch", "stamp", "changes"))
    if not rows or rows[0][:2] != (snapshot.epoch, snapshot.stamp):
        return None
    for epoch, stamp, changes in rows[1:]:
        snapshot = snapshot.after(epoch, stamp, changes)
    return snapshot


def load() -> Snapshot:
    """The whole policy as of one epoch: seven statements, streamed.

    A change committed in between is in only some of the results; applying it afterwards corrects the others.
    """
    read = _read()
    return _follow(read) or read


def _read() -> Snapshot:
    # PostgreSQL returns the many grants in batches only through a server-side cursor.
    with connection.cursor() as cursor, connection.chunked_cursor() as streamed:
        cursor.execute("SELECT value, stamp FROM authz_policyepoch WHERE id = 1")
        epoch, stamp = cursor.fetchone()
        members: dict[int, set[int]] = {}
        cursor.execute("SELECT metalake_id, user_id FROM authz_member WHERE enabled")
        for metalake_id, user_id in cursor:
            members.setdefault(metalake_id, set()).add(user_id)
        return Snapshot(
            epoch=epoch,
            stamp=stamp,
            members={metalake_id: frozenset(users) for metalake_id, users in members.items()},
            user_roles=_pairs(
                cursor,
                "SELECT ug.user_id, r.securable_ptr_id FROM authz_user_groups ug "
                "JOIN authz_role r ON r.group_id = ug.group_id",
            ),
            user_groups=_pairs(cursor, "SELECT user_id, group_id FROM authz_group_users"),
            group_roles=_pairs(cursor, "SELECT group_id, role_id FROM authz_group_roles"),
            grants=_grants(streamed),
            timed=_timed(),
        )


def _pairs(cursor: Any, sql: str) -> dict[int, tuple[int, ...]]:
    pairs: dict[int, list[int]] = {}
    cursor.execute(sql)
    for left, right in cursor:
        pairs.setdefault(left, []).append(right)
    return {left: tuple(sorted(rights)) for left, rights in pairs.items()}


def _grants(cursor: Any) -> dict[int, dict[int, int]]:
    grants: dict[int, dict[int, int]] = {}
    masks: dict[tuple[str, str], int] = {}
    shared: dict[int, int] = {}
    cursor.execute(
        "SELECT r.securable_ptr_id, g.content_object_id, p.codename, g.effect FROM authz_grant g "
        "JOIN authz_role r ON r.group_id = g.group_id JOIN auth_permission p ON p.id = g.permission_id "
        "WHERE g.starts_at IS NULL AND g.ends_at IS NULL"
    )
    for role_id, securable_id, codename, effect in chain.from_iterable(iter(lambda: cursor.fetchmany(10_000), [])):
        bit = masks.get((codename, effect))
        if bit is None:
            bit = masks[codename, effect] = mask_of(Privilege(codename), effect)
        of_role = grants.setdefault(role_id, {})
        mask = of_role.get(securable_id, 0) | bit
        of_role[securable_id] = shared.setdefault(mask, mask)
    return grants


def _timed() -> dict[int, dict[int, tuple[Timed, ...]]]:
    timed: dict[int, dict[int, tuple[Timed, ...]]] = {}
    rows = Grant.objects.filter(unended(timezone.now()), group__role__isnull=False)
    rows = rows.exclude(starts_at__isnull=True, ends_at__isnull=True)
    for role_id, securable_id, codename, effect, starts, ends in rows.values_list(
        "group__role", "content_object_id", "permission__codename", "effect", "starts_at", "ends_at"
    ):
        grant = Timed(mask_of(Privilege(codename), effect), _seconds(starts, 0), _seconds(ends, inf))
        of_role = timed.setdefault(role_id, {})
        of_role[securable_id] = (*of_role.get(securable_id, ()), grant)
    return timed
