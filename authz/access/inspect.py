"""Reading the rights on an object: the grants that reach it, who holds them, and what the reader may do there.

Whoever may read access to an object reads every grant that reaches it; everybody else reads only the grants of
their own roles.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Window
from django.db.models.functions import RowNumber

from authz import policy
from authz.access.sight import reads_access
from authz.actor import Actor
from authz.models import Grant, Group, User, unended
from metalake.kinds import Kind, grantable_on
from metalake.lineage import Lineage, Node
from metalake.privileges import Effect, Privilege

MAX_GRANTS = 500
SHOWN_HOLDERS = 5
SHOWN_RIVALS = 3
_FIELDS = (
    "permission__codename",
    "effect",
    "group__role",
    "group__role__name",
    "content_object_id",
    "grantor",
    "granted_at",
    "starts_at",
    "ends_at",
)


@dataclass(frozen=True)
class Holders:
    """Who holds a role: how many, and the first few by name; a group's name comes with the number of its users."""

    users: tuple[str, ...] = ()
    user_count: int = 0
    groups: tuple[tuple[str, int], ...] = ()
    group_count: int = 0

    @property
    def more_users(self) -> int:
        return self.user_count - len(self.users)

    @property
    def more_groups(self) -> int:
        return self.group_count - len(self.groups)


@dataclass(frozen=True)
class GrantSeen:
    """One grant that reaches an object; `verdict` says what wins if its privilege is both allowed and denied."""

    privilege: Privilege
    effect: Effect
    role_id: int
    role: str
    on: Node
    depth: int
    is_direct: bool
    grantor: str
    granted_at: datetime
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    is_in_force: bool = True
    holders: Holders | None = None
    verdict: str = ""

    @property
    def is_deny(self) -> bool:
        return self.effect is Effect.DENY


@dataclass(frozen=True)
class GrantsSeen:
    """The grants that reach an object, nearest first. `is_complete`: of every role, not just the reader's own."""

    grants: tuple[GrantSeen, ...]
    is_complete: bool
    is_cut: bool

    @property
    def direct_count(self) -> int:
        return sum(grant.is_direct for grant in self.grants)

    @property
    def inherited_count(self) -> int:
        return len(self.grants) - self.direct_count


@dataclass(frozen=True)
class Standing:
    """What one actor may do on an object: the topmost thing they own on its lineage, and the privileges in effect."""

    owns: Node | None
    privileges: tuple[Privilege, ...]


def grants_on(actor: Actor, lineage: Lineage) -> GrantsSeen:
    """The grants that reach the object and that the actor may read; three statements at most.

    The caller has made sure that the actor sees the object.
    """
    is_complete = reads_access(actor, lineage)
    ids = [node.id for node in lineage.nodes]
    rows = Grant.objects.filter(unended(actor.moment), content_object_id__in=ids, group__role__isnull=False)
    if not is_complete:
        rows = rows.filter(group__role__in=actor.roles)
    # DENY sorts after ALLOW and is read first, so that what is cut off never changes a verdict on what is shown.
    rows_read = _read(actor, lineage, rows.order_by("-effect", "pk")[: MAX_GRANTS + 1])
    grants = rows_read[:MAX_GRANTS]
    holders = _holders({grant.role_id for grant in grants}) if is_complete else {}
    judged = [replace(grant, holders=holders.get(grant.role_id), verdict=_verdict(grant, grants)) for grant in grants]
    judged.sort(key=lambda grant: (-grant.depth, not grant.is_deny, grant.privilege, grant.role))
    return GrantsSeen(tuple(judged), is_complete, is_cut=len(rows_read) > MAX_GRANTS)


def standing(actor: Actor, lineage: Lineage) -> Standing:
    """What the actor may do on the object; no statement, it is all in the actor's snapshot."""
    rights = policy.rights_on(actor, lineage)
    kind = Kind(lineage.nodes[-1].kind)
    owns = next((node for node in lineage.nodes if actor.owns(node)), None) if rights.member else None
    privileges = [privilege for privilege in rights.effective() if kind in grantable_on(privilege)]
    return Standing(owns, tuple(privileges))


def _read(actor: Actor, lineage: Lineage, rows: QuerySet[Grant]) -> list[GrantSeen]:
    depths = {node.id: depth for depth, node in enumerate(lineage.nodes)}
    values = rows.values_list(*_FIELDS)
    return [
        GrantSeen(
            privilege=Privilege(codename),
            effect=Effect(effect),
            role_id=role_id,
            role=role,
            on=lineage.nodes[depths[object_id]],
            depth=depths[object_id],
            is_direct=depths[object_id] == len(lineage.nodes) - 1,
            grantor=grantor,
            granted_at=granted_at,
            starts_at=starts_at,
            ends_at=ends_at,
            is_in_force=starts_at is None or starts_at <= actor.moment,
        )
        for codename, effect, role_id, role, object_id, grantor, granted_at, starts_at, ends_at in values
    ]


def _holders(role_ids: Collection[int]) -> dict[int, Holders]:
    """The holders of each role; two statements, however many roles and holders there are."""
    if not role_ids:
        return {}
    holders = {role_id: Holders() for role_id in role_ids}
    # Former members may stay in a role or a group for its DENY; they hold nothing until they are added again.
    members = User.groups.through.objects.filter(user__memberships__metalake=F("group__role__parent"))
    direct = _first_few(members.filter(group__role__in=role_ids), "group_id", "user__username")
    for role_id, name, total in direct.values_list("group__role", "user__username", "total"):
        of_role = holders[role_id]
        holders[role_id] = replace(of_role, users=(*of_role.users, name), user_count=total)
    inside = Group.users.through.objects.filter(user__memberships__metalake=F("group__metalake"))
    people = inside.filter(group_id=OuterRef("group_id")).order_by()
    sizes = people.values("group_id").annotate(size=Count("pk")).values("size")  # type: ignore[misc]
    stored = _first_few(Group.roles.through.objects.filter(role_id__in=role_ids), "role_id", "group__name")
    stored = stored.annotate(size=Subquery(sizes))
    for role_id, name, size, total in stored.values_list("role_id", "group__name", "size", "total"):
        of_role = holders[role_id]
        holders[role_id] = replace(of_role, groups=(*of_role.groups, (name, size or 0)), group_count=total)
    return holders


def _first_few(rows, of: str, by: str):  # type: ignore[no-untyped-def]  # a through model has no type to name
    """The first few rows of each `of`, in the order of `by`, each with the total."""
    return (
        rows.annotate(
            place=Window(RowNumber(), partition_by=F(of), order_by=F(by).asc()),
            total=Window(Count("pk"), partition_by=F(of)),
        )
        .filter(place__lte=SHOWN_HOLDERS)
        .order_by(of, "place")
    )


def _verdict(grant: GrantSeen, grants: Sequence[GrantSeen]) -> str:
    """A sentence on what wins if the privilege is both allowed and denied on this lineage, else ""; DENY wins."""
    rivals = [other for other in grants if other.privilege == grant.privilege and other.effect != grant.effect]
    rivals = [other for other in rivals if other.is_in_force]
    if not rivals or not grant.is_in_force:
        return ""
    own = [_place(rival.on) for rival in rivals if rival.role_id == grant.role_id]
    others = sorted({rival.role for rival in rivals if rival.role_id != grant.role_id})
    if grant.is_deny:
        if own and not others:
            return f"Wins over this role's own ALLOW on {_listed(own)}."
        both = f"Wins over ALLOW in {_listed(others)} for whoever holds both roles"
        return f"{both}, and over this role's own ALLOW on {_listed(own)}." if own else f"{both}."
    if own:
        return f"Gives nothing: this role's own DENY on {_listed(own)} wins."
    return f"Gives nothing to whoever also holds {_listed(others)}: DENY wins."


def _place(node: Node) -> str:
    return f"{node.kind} {node.name}"


def _listed(names: Sequence[str]) -> str:
    """ "a, b and 3 more"."""
    more = len(names) - SHOWN_RIVALS
    text = ", ".join(names[:SHOWN_RIVALS])
    return f"{text} and {more} more" if more > 0 else text
