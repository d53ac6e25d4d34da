"""A user or group before it is removed from a metalake, and the undo of a removal within its hour.

What a removal ended is read from the history, so nothing more is stored for it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from django.db.models import F, QuerySet
from django.utils import timezone

from access.explain.profiles import Owned, owned_by
from access.plans.plan import GOOD_FOR
from authz import operations, policy
from authz.actor import NOBODY, Actor
from authz.locks import Lock
from authz.models import AuditEntry, Fact, Group, Member, Role, User
from authz.objects import by_ids, find_metalake
from authz.services import directory, owners, people, snapshot_changes
from authz.services.change import change, enter, event, publish_events
from authz.services.owners import Owner
from authz.services.ownership_rules import Party, escapes_deny, require_change_of, roles_of
from authz.services.people import Person
from authz.services.snapshot_changes import GroupRole, GroupUser, UserRole
from metalake.errors import AlreadyExists, Conflict, Forbidden, MetalakeError, NotFound
from metalake.events import STANDS, stands
from metalake.full_names import undotted
from metalake.lineage import Located
from metalake.models import Securable

SHOWN = 10
GONE = "Objects of theirs that no longer exist, or that you do not see, are left."
MANAGING = {"user": operations.MANAGE_USERS, "group": operations.MANAGE_GROUPS}


class Leaving(NamedTuple):
    """Somebody before they are removed: `owned` are the first objects of theirs that the caller sees, of `more` than
    these; all that they own passes to `heir`."""

    person: Person
    heir: Owner
    owned: list[Owned]
    more: bool

    @property
    def id(self) -> int:
        """Of the account or the group."""
        row = self.person.row
        return row.user_id if isinstance(row, Member) else row.pk


def leaving(actor: Actor, metalake: str, sort: str, name: str) -> Leaving:
    """What removing a "user" or "group" would do.

    Raises Forbidden, NotFound with names that are spelled alike, and Invalid if the metalake would have no owner.
    """
    top = enter(actor, metalake)
    policy.require(actor, MANAGING[sort], top)
    load = people.get_user if sort == "user" else people.get_group
    try:
        person = load(actor, metalake, name)
    except NotFound:
        raise directory.unknown(actor, top, sort, name) from None
    people.require_removable(top, person.row)
    user_id, groups = (person.row.user_id, {}) if isinstance(person.row, Member) else (NOBODY, {person.row.pk: ""})
    owned = list(islice(owned_by(actor, top, user_id, groups), SHOWN + 1))
    return Leaving(person, owners.owner_of(top), owned[:SHOWN], len(owned) > SHOWN)


@dataclass(frozen=True)
class Return:
    """Who is back, and what with; `left` says what is not as it was before, in sentences."""

    sort: str
    id: int
    name: str
    roles: list[str]
    linked: int  # groups of a user, users of a group
    objects: int
    left: tuple[str, ...]


def bring_back(actor: Actor, metalake: str, sort: str, id: int) -> Return:
    """Undo the caller's removal of a "user" or "group" by its id, within an hour, in one transaction.

    They are added again with the roles, the groups or users, and the objects that they had. Each takes the right that
    giving it takes, and is left as it is if it has changed since; `left` says so. Raises NotFound, Forbidden, Conflict
    if it is too long ago, AlreadyExists if they were added again.
    """
    on = partial(_ids_of, actor, metalake, sort, id)
    return change(actor, metalake, _bring_back, sort, id, kind=sort, on=on, lock=Lock.CHANGES)


def _bring_back(actor: Actor, top: Located, sort: str, id: int) -> Return:
    policy.require(actor, MANAGING[sort], top)
    entry = _removal(actor, top, sort, id)
    if entry is None:
        raise NotFound(f"{actor.name} has removed no such {sort} from {top.name}.", kind=sort)
    if entry.at + GOOD_FOR <= timezone.now():
        raise Conflict("It was removed more than an hour ago. Add it again instead.", kind=sort)
    return (_UserBack if sort == "user" else _GroupBack)(actor, top, entry).run()


def _removal(actor: Actor, top: Located, sort: str, id: int) -> AuditEntry | None:
    """The last removal of this user or group, if it was the caller's."""
    removals = AuditEntry.objects.filter(object_id=id, kind=sort, event=f"{sort}.removed", metalake_id=top.id)
    last = removals.order_by("-pk").first()
    return last if last and last.actor == actor.name else None


def _ids_of(actor: Actor, metalake: str, sort: str, id: int) -> Collection[int]:
    """The ids of the objects that pass back, to lock them."""
    top = find_metalake(metalake)
    entry = top and _removal(actor, top, sort, id)
    return _handed(entry) if entry else ()


def _handed(entry: AuditEntry) -> dict[int, Party]:
    """The objects that a removal handed over, by id, with the owner that it gave them.

    Their facts come right before the one that the holder is gone, so this reads the history from there backwards.
    """
    count = entry.details.get("objects_handed_over", 0)
    gone = _gone(entry) if count else None
    facts = _facts(entry, "object").filter(id__lt=gone.id).order_by("-id")[:count] if gone else Fact.objects.none()
    states: list[tuple[int, Any]] = list(facts.values_list("about", "state"))
    return {about: (state["owner_user"], state["owner_group"]) for about, state in states}


def _facts(entry: AuditEntry, topic: str) -> QuerySet[Fact]:
    """The facts of one topic that the removal appended."""
    return Fact.objects.filter(metalake_id=entry.metalake_id or 0, topic=topic, at=entry.at, event=entry.event)


def _gone(entry: AuditEntry) -> Fact | None:
    """The fact that the user or group is gone."""
    facts = _facts(entry, "members" if entry.kind == "user" else "group")
    return facts.filter(about=entry.object_id).order_by("-id").first()


@dataclass
class _Back:
    """The undo of one removal; `roles` are those that are assigned again."""

    actor: Actor
    top: Located
    entry: AuditEntry
    left: list[str] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)

    def run(self) -> Return:
        raise NotImplementedError

    def _before(self, topic: str, holder: int) -> set[int]:
        """The ids that the history has for this holder just before the removal."""
        facts = Fact.objects.filter(topic=topic, holder=holder, at__lt=self.entry.at)
        return set(facts.order_by("-id").values_list("state", flat=True).first() or ())

    def _roles(self, ids: Collection[int], holder: str) -> list[Role]:
        """Those of the roles that still exist and that the caller may assign."""
        rows = list(Role.objects.filter(parent_id=self.top.id, pk__in=ids).order_by("name"))
        dropped = set(ids).difference(row.pk for row in rows)
        if rows or dropped:
            if not policy.uses(self.actor, operations.ASSIGN_ROLES, self.top):
                self.left.append(f"{holder} has no role again: you may not assign roles.")
                return []
            facts = Fact.objects.filter(topic="object", about__in=dropped, metalake_id=self.top.id)
            names = facts.exclude(name="").order_by("name").values_list("name", flat=True).distinct()
            self.left += [f"Role {name} was dropped since." for name in names]
        return rows

    def _objects(self, party: Party, roles: Collection[int]) -> list[Securable]:
        """The objects that passed on with the removal, given to this owner again where that is allowed."""
        handed = _handed(self.entry)
        rows = {row.pk: row for row in Securable.objects.filter(pk__in=handed).only(*STANDS)}
        seen = {id: on for id, on in by_ids(rows).items() if policy.sees(self.actor, on)}
        stay = {id: row for id, row in rows.items() if (row.owner_user_id, row.owner_group_id) == handed[id]}
        still = [on for id, on in seen.items() if id in stay]
        mine = [on for on in still if policy.permits(self.actor, operations.own(on.kind), on)]
        allowed = [on for on in mine if self._may_pass(on)]
        if len(seen) < len(handed):
            self.left.append(GONE)
        self._leave(len(seen) - len(still), "have another owner by now")
        self._leave(len(still) - len(mine), "stay with their owner: you may not set it")
        self._leave(len(mine) - len(allowed), "may not change their owner now")
        given = [stay[on.id] for on in allowed]
        of_these = Securable.objects.filter(pk__in=[row.pk for row in given])
        if given and escapes_deny(self.actor, roles, of_these):
            self.left.append("What they owned stays with its owner: a DENY that you may not lift would be shed.")
            return []
        of_these.update(owner_user_id=party[0], owner_group_id=party[1], version=F("version") + 1)
        for row in given:
            row.owner_user_id, row.owner_group_id = party
        return given

    def _may_pass(self, on: Located) -> bool:
        try:
            owners.check_handing(on)
        except MetalakeError:
            return False
        return True

    def _leave(self, count: int, why: str) -> None:
        if count:
            self.left.append(f"Of the objects that they owned, {count:,} {why}.")

    def _done(self, id: int, name: str, linked: int, objects: list[Securable], links: list[Any]) -> Return:
        names = [row.name for row in self.roles]
        details = {"roles": names, "objects_returned": len(objects), "removed_at": self.entry.at.isoformat()}
        facts = [*map(stands, objects), *links]
        kind = self.entry.kind
        publish_events(event(self.actor, self.top, f"{kind}.restored", kind, id, [name], facts, **details))
        return Return(kind, id, name, names, linked, len(objects), tuple(self.left))


class _UserBack(_Back):
    def run(self) -> Return:
        user = User.objects.filter(pk=self.entry.object_id).first()
        if user is None:
            raise NotFound("The account was deleted since.", kind="user")
        if Member.objects.filter(metalake_id=self.top.id, user=user).exists():
            raise AlreadyExists(f"User {user.username} was added again since.", kind="user")
        before = self.entry.details
        enabled = before.get("enabled", True)
        people.add_member(self.actor, self.top, user.username, before.get("external_id"), enabled)
        present = set(UserRole.objects.filter(user=user).values_list("group_id", flat=True))
        rows = self._roles(self._before("user_roles", user.pk), f"User {user.username}")
        self.roles = [row for row in rows if row.group_id not in present]
        user.groups.add(*(row.group_id for row in self.roles))
        joined = self._groups(user)
        of_groups = GroupRole.objects.filter(group__users=user).values_list("role_id", flat=True)
        roles = {row.pk for row in rows} | roles_of(self.actor.policy, (user.pk, None)) | set(of_groups)
        objects = self._objects((user.pk, None), roles)
        links = [*snapshot_changes.roles_of_users([user.pk]), *snapshot_changes.groups_of_users([user.pk])]
        return self._done(user.pk, user.username, joined, objects, links)

    def _groups(self, user: User) -> int:
        """How many of their groups they are in again."""
        ids = self._before("user_groups", user.pk)
        rows = {row.pk: row for row in Group.objects.filter(metalake_id=self.top.id, pk__in=ids)}
        gone = Fact.objects.filter(topic="group", holder=self.top.id, about__in=ids - rows.keys()).exclude(name="")
        if policy.uses(self.actor, operations.MANAGE_GROUPS, self.top):
            names = sorted(set(gone.values_list("name", flat=True)))
            self.left += [f"Group {name} was removed since." for name in names]
        inside = set(GroupUser.objects.filter(user=user, group_id__in=rows).values_list("group_id", flat=True))
        fresh = [row for id, row in rows.items() if id not in inside and self._may_join(row, user)]
        GroupUser.objects.bulk_create(GroupUser(group_id=row.pk, user_id=user.pk) for row in fresh)
        return len(fresh)

    def _may_join(self, row: Group, user: User) -> bool:
        """Whether the caller may put the user into the group, by the rules of people.set_group_users."""
        has = list(GroupRole.objects.filter(group_id=row.pk).values_list("role_id", flat=True))
        roles = {role.pk for role in self.roles} | set(self.actor.policy.roles_of(user.pk))
        owned = Securable.objects.filter(owner_group_id=row.pk)
        is_known = row.pk in self.actor.groups or policy.permits(self.actor, operations.MANAGE_GROUPS, self.top)
        stays = f"{f'Group {row.name}' if is_known else 'A group of theirs'} stays without them"
        try:
            if not policy.uses(self.actor, operations.ASSIGN_ROLES, self.top):
                policy.require(self.actor, operations.MANAGE_GROUPS, self.top)
            require_change_of(self.actor, self.top, row, has)
        except Forbidden:
            self.left.append(f"{stays}: you may not put anybody in.")
            return False
        if owned.exists() and escapes_deny(self.actor, roles, owned):
            self.left.append(f"{stays}: a DENY that you may not lift would be shed.")
            return False
        return True


class _GroupBack(_Back):
    def run(self) -> Return:
        (name,) = undotted(self.entry.full_name)
        if Group.objects.filter(metalake_id=self.top.id, name=name).exists():
            raise AlreadyExists(f"There is another group {name} since.", kind="group")
        group = people.insert_group(self.actor, self.top, name, self.entry.details.get("external_id")).row
        gone = _gone(self.entry)
        left = _facts(self.entry, "user_groups").filter(id__gt=gone.id if gone else 0)
        were = set(left.values_list("holder", flat=True))
        users = list(Member.objects.filter(metalake_id=self.top.id, user_id__in=were).values_list("user_id", flat=True))
        if len(users) < len(were):
            self.left.append(f"{len(were) - len(users):,} of its people are not in {self.top.name} any more.")
        GroupUser.objects.bulk_create(GroupUser(group_id=group.pk, user_id=id) for id in users)
        self.roles = self._roles(self._before("group_roles", self.entry.object_id), f"Group {name}")
        GroupRole.objects.bulk_create(GroupRole(group_id=group.pk, role_id=row.pk) for row in self.roles)
        roles = roles_of(self.actor.policy, (None, group.pk)) | {row.pk for row in self.roles}
        objects = self._objects((None, group.pk), roles)
        links = [*snapshot_changes.roles_of_groups([group.pk]), *snapshot_changes.groups_of_users(users)]
        return self._done(group.pk, name, len(users), objects, links)
