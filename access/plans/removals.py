"""Removes a principal's access to an object through all roles that give it, as one plan; or lifts a DENY for one.

A role that nobody else holds has its grants revoked; a shared role is only unassigned from this user or group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet

from access.explain.grants_on import TRAVERSED, bearing_on
from access.explain.permissions import HIDDEN, open_on, reads_access, require_reader
from access.explain.queries import Place, Whom
from access.explain.reach import type_of
from access.plans.desired import Change
from access.plans.export import by_role, holders_of
from access.plans.recipients import Party, find_parties
from authz import operations, policy
from authz.actor import Actor
from authz.callers.enumeration import misses_counted
from authz.models import Grant, Group, Role, unended
from authz.objects import by_ids
from authz.services.authority import may_give, may_lift, require_lift_of_roles
from authz.services.grant_entries import Given
from authz.services.roles import located
from metalake.errors import Forbidden
from metalake.full_names import dotted
from metalake.kinds import grantable_on
from metalake.lineage import Located
from metalake.models import Securable, below
from metalake.privileges import Effect, Privilege

MOST_OWNED = 20  # that are named
MOST_NAMED = 3  # objects in a sentence


class Part(NamedTuple):
    """A role that gives or denies somebody access, and what happens to it; without changes it stays."""

    role: str
    says: str
    changes: tuple[Change, ...]


class Removal(NamedTuple):
    """The roles that give access; `notes` say what stays: owned objects, and USE_* still needed elsewhere."""

    parts: list[Part]
    notes: list[str]

    @property
    def changes(self) -> list[Change]:
        return [change for part in self.parts for change in part.changes]


class _Entry(NamedTuple):
    on: Located
    privilege: Privilege
    given: Given


def _key(row: Role, one: _Entry) -> tuple[int, int, str]:
    return row.pk, one.on.id, one.privilege.value


@misses_counted("user", "group")
def remove_access(
    actor: Actor, metalake: str, whom: Whom, on: Place, effect: Effect = Effect.ALLOW, only: Collection[str] = ()
) -> Removal:
    """What gives a user or group access to an object and all below it, with the changes that remove it, to be planned.

    With DENY: what denies them something on the object, to be lifted for them. `only` limits this to the named roles.
    What the caller may not remove stays, with a note. Raises NotFound, and Forbidden if the caller may not read access
    to the object.
    """
    state, target = open_on(actor, metalake, on)
    require_reader(actor, state, target)
    (party,) = find_parties(actor, target.top, [whom])
    removing = _Removing(actor, target, party, effect)
    parts = list(removing.parts(only))
    return Removal(parts, [*removing.owned(), *sorted(set(removing.stays), reverse=True)])  # use_schema first


class _Removing:
    """`gone` are the revoked grants, by ids of role and object and privilege; `left` the roles fully unassigned."""

    def __init__(self, actor: Actor, target: Located, party: Party, effect: Effect) -> None:
        self.actor, self.target, self.party, self.effect = actor, target, party, effect
        self.who, self.is_user = f"{party.whom.sort} {party.whom.name}", party.whom.sort == "user"
        self.above = {node.id for node in target.nodes[:-1]}
        self.gone: set[tuple[int, int, str]] = set()
        self.left: set[int] = set()
        self.stays: list[str] = []
        self.entries = self._entries()
        # Revoking the DENY from the role would lift it for former members too.
        former = effect is Effect.DENY
        self.holders = [holders_of(target.top, s, self.entries, with_former=former) for s in ("user", "group")]
        counts = self._grants(self.entries).values_list("group__role", "effect").annotate(Count("pk"))
        self.counts = {(role, sort): count for role, sort, count in counts.order_by("group__role", "effect")}
        self.may_assign = policy.permits(actor, operations.ASSIGN_ROLES, target.top)

    def _grants(self, roles: Collection[int]) -> QuerySet[Grant]:
        return Grant.objects.filter(unended(self.actor.moment), group__role__in=roles)

    def _entries(self) -> dict[int, list[_Entry]]:
        """The roles' grants that affect the object, and for ALLOW also those below it."""
        scope = Q(content_object__in=[node.id for node in self.target.nodes])
        if self.effect is Effect.ALLOW:
            scope |= below(self.target.lineage, "content_object__lineage")
        standing = by_role(self._grants(self.party.actor.roles).filter(scope, effect=self.effect.value))
        objects = by_ids(id for on in standing.values() for id in on)
        bearing = bearing_on(self.target, type_of(self.target))
        by_id: dict[int, list[_Entry]] = {}
        for role, on in standing.items():
            for one in (_Entry(objects[id], *pair) for id in on if id in objects for pair in sorted(on[id].items())):
                if one.privilege in bearing if one.on.id in self.above else self._is_read(one.on):
                    by_id.setdefault(role, []).append(one)
        return by_id

    def _is_read(self, on: Located) -> bool:
        return on.id == self.target.id or reads_access(self.actor, on)

    def _named(self, on: Located) -> str:
        return policy.describe(on) if self._is_read(on) or policy.sees(self.actor, on) else HIDDEN

    # What happens to each role

    def parts(self, only: Collection[str]) -> Iterator[Part]:
        """The roles by name. USE_* above the object comes last: it is removed unless a remaining grant needs it."""
        rows = Role.objects.filter(pk__in=self.entries).order_by("name")
        roles = [row for row in rows if not only or row.name in only]
        going = {row.pk: [one for one in self.entries[row.pk] if not self._leads_there(one)] for row in roles}
        parts = {row.pk: self._part(row, going[row.pk]) for row in roles if going[row.pk]}
        for row in roles:
            if (part := parts.get(row.pk)) and part.changes and self._others(row.pk):
                self.left |= {row.pk} - self.by_group.keys()
            elif part and part.changes:
                self.gone |= {_key(row, one) for one in going[row.pk] if self._may_take(one)}
        for row, free in self._free([row for row in roles if row.pk not in self.left]):
            going[row.pk] += free
            parts[row.pk] = self._part(row, going[row.pk])
        yield from (parts[row.pk] for row in roles if row.pk in parts)

    def _leads_there(self, one: _Entry) -> bool:
        return self.effect is Effect.ALLOW and one.on.id in self.above and one.privilege in TRAVERSED

    def _total(self, role: int) -> int:
        return sum(self.counts.get((role, effect.value), 0) for effect in Effect)

    def _others(self, role: int) -> int:
        """How many other users and groups hold the role."""
        return sum(len(by_id.get(role, ())) for by_id in self.holders) - (role in self.party.direct)

    def _may_take(self, one: _Entry) -> bool:
        is_lift = self.effect is Effect.DENY
        return may_lift(self.actor, one.on) if is_lift else may_give(self.actor, one.on, one.privilege)

    @cached_property
    def by_group(self) -> dict[int, str]:
        """The names of the groups through which a user has roles, by role."""
        by_group, ids = self.party.actor.policy.group_roles, self.party.actor.groups if self.is_user else ()
        groups = list(Group.objects.filter(pk__in=ids).order_by("name").values_list("pk", "name")) if ids else []
        through = {role: [name for id, name in groups if role in by_group.get(id, ())] for role in self.entries}
        return {role: ", ".join(names) for role, names in through.items() if names}

    def _part(self, role: Role, entries: list[_Entry]) -> Part:
        says: list[str] = []
        changes: tuple[Change, ...] = ()
        if role.pk in self.party.direct:
            sentence, changes = self._unassigned(role) if self._others(role.pk) else self._revoked(role, entries)
            says.append(sentence)
        if groups := self.by_group.get(role.pk):
            says.append(f"{self.who} has it through group {groups}: leave that, or change what it holds.")
        return Part(role.name, " ".join(says), changes)

    def _unassigned(self, role: Role) -> tuple[str, tuple[Change, ...]]:
        """Unassign the role from them alone, if that removes nothing else."""
        others = self._others(role.pk)
        keep = f"{others} others hold it and keep it" if others > 1 else "1 other holds it and keeps it"
        has_both = any(id == role.pk and sort != self.effect.value for id, sort in self.counts)
        if not self.may_assign:
            return f"{keep}; taking it from one takes manage_grants on {policy.describe(self.target.top)}.", ()
        if has_both and self.effect is Effect.DENY:
            return f"{keep}; it also allows things, which {self.who} would lose: take the DENY out of it first.", ()
        try:
            require_lift_of_roles(self.actor, [role.pk] if (role.pk, Effect.DENY.value) in self.counts else [])
        except Forbidden:
            return f"{keep}; it carries a DENY that you may not lift.", ()
        does = "denies" if self.effect is Effect.DENY else "allows"
        also = ", and what it denies counts no more for them" if has_both else ""
        change = Change("unassign", role.name, holder=(self.party.whom.sort, self.party.whom.name))
        return f"{keep}; {self.who} loses it with all that it {does} elsewhere{also}.", (change,)

    def _revoked(self, role: Role, entries: list[_Entry]) -> tuple[str, tuple[Change, ...]]:
        """Nobody else holds the role: revoke its grants, and drop it with the last one."""
        mine = [one for one in entries if self._may_take(one)]
        may_drop = self.may_assign and policy.permits(self.actor, operations.DROP_ROLE, located(self.target.top, role))
        if may_drop and len(mine) == self._total(role.pk):
            return f"Only {self.who} holds it; nothing is left in it: it is dropped.", (Change("dropRole", role.name),)
        refused = sorted({f"{one.privilege} on {self._named(one.on)}" for one in entries if not self._may_take(one)})
        if not mine:
            return f"Only {self.who} holds it; you may not take {', '.join(refused)}.", ()
        stays = f"; you may not take {', '.join(refused)}" if refused else ""
        on = list(
            dict.fromkeys(f"{self._named(one.on)}{' (for all in it)' * (one.on.id in self.above)}" for one in mine)
        )
        where = f"{', '.join(on[:MOST_NAMED])}{f' and {len(on) - MOST_NAMED:,} more' if len(on) > MOST_NAMED else ''}"
        changes = [Change("revoke", role.name, p, given, (on.kind, dotted(on.full_name))) for on, p, given in mine]
        return f"Only {self.who} holds it: what it holds on {where} is revoked{stays}.", tuple(changes)

    # What stays

    def owned(self) -> Iterator[str]:
        """What they own on the lineage or below it: ownership is transferred, not revoked."""
        if self.effect is Effect.DENY:
            return
        owner = Q(owner_group__in=self.party.actor.groups) | Q(owner_user__in=[self.party.id] if self.is_user else [])
        around = Q(pk__in=[node.id for node in self.target.nodes]) | below(self.target.lineage)
        rows = Securable.objects.filter(around, owner, kind__in=operations.FAMILIES["read_access"]).order_by("lineage")
        for on in by_ids(rows.values_list("pk", flat=True)[:MOST_OWNED]).values():
            if on.id in self.above or self._is_read(on):
                yield f"{self.who} owns {self._named(on)}: only another owner ends that."

    def _free(self, roles: list[Role]) -> list[tuple[Role, list[_Entry]]]:
        """The USE_* above the object that no remaining grant needs; a shared role is unassigned as a whole."""
        units = [(row, unit) for row in roles for unit in self._units(row)]
        self.gone |= {_key(row, one) for row, uses in units for one in uses}
        while True:  # start with all; one that stays may need others
            ways = {(one.on.id, one.privilege): one for _, uses in units for one in uses}
            needed = {way for way, one in ways.items() if self._is_needed(one)}
            staying = [unit for unit in units if any((one.on.id, one.privilege) in needed for one in unit[1])]
            if not staying:
                return units
            units = [unit for unit in units if unit not in staying]
            for row, uses in staying:
                self.gone -= {_key(row, one) for one in uses}
                for one in uses:
                    is_needed = (one.on.id, one.privilege) in needed
                    self._stays(one, "it leads to more that they have" if is_needed else self._whole(row))

    def _units(self, row: Role) -> list[list[_Entry]]:
        """The removable USE_* above the object, grouped by what is removed together; notes why others are not."""
        uses = [one for one in self.entries[row.pk] if self._leads_there(one)]
        others = self._others(row.pk)
        if others and len(uses) < len(self.entries[row.pk]):
            return []  # covered by the role's part
        reasons = [self._why_not(row, one, uses) for one in uses]
        if others and any(reasons):
            reasons = [why or self._whole(row) for why in reasons]
        for one, why in zip(uses, reasons, strict=True):
            if why:
                self._stays(one, why)
        free = [one for one, why in zip(uses, reasons, strict=True) if not why]
        return [free] if others and free else [[one] for one in free]

    def _why_not(self, row: Role, one: _Entry, uses: list[_Entry]) -> str:
        if not self._may_take(one):
            return "you may not take it"
        if groups := self.by_group.get(row.pk):
            return f"{self.who} has role {row.name} through group {groups}"
        if self._others(row.pk) and len(uses) < self._total(row.pk):
            return f"role {row.name}, which others hold too, holds more than that"
        sentence, changes = self._unassigned(row) if self._others(row.pk) else ("", ("",))
        return "" if changes else f"role {row.name}: {sentence.rstrip('.')}"

    def _whole(self, row: Role) -> str:
        return f"role {row.name}, which others hold too, is taken whole or not at all"

    def _stays(self, one: _Entry, why: str) -> None:
        self.stays.append(f"{one.privilege} on {self._named(one.on)} stays: {why}.")

    @cached_property
    def _people(self) -> tuple[list[int], set[int], set[int]]:
        """The user, or the group's members, and their other roles and groups."""
        snapshot, id = self.party.actor.policy, self.party.id
        users = [id] if self.is_user else [user for user, groups in snapshot.user_groups.items() if id in groups]
        roles = {*self.party.actor.roles, *(role for user in users for role in snapshot.roles_of(user))}
        return (
            users,
            roles,
            {*self.party.actor.groups, *(group for user in users for group in snapshot.groups_of(user))},
        )

    def _is_needed(self, one: _Entry) -> bool:
        """Whether they, or the group's members, still need this USE_* for other access after the removal."""
        users, roles, groups = self._people
        kinds = [privilege.value for privilege in Privilege if one.on.kind in grantable_on(privilege)]
        around = Q(content_object__in=[node.id for node in one.on.nodes], permission__codename__in=kinds)
        uses = TRAVERSED if one.privilege is Privilege.USE_SCHEMA else (Privilege.USE_CATALOG,)
        rows = self._grants(roles - self.left).filter(around | below(one.on.lineage, "content_object__lineage"))
        rows = rows.filter(effect=Effect.ALLOW.value).exclude(permission__codename__in=uses)
        triples = rows.values_list("group__role", "content_object_id", "permission__codename")
        if any(grant not in self.gone for grant in triples.iterator()):
            return True
        owned = Securable.objects.filter(Q(owner_user__in=users) | Q(owner_group__in=groups))
        return owned.filter(Q(pk=one.on.id) | below(one.on.lineage)).exists()
