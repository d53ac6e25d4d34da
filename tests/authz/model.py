"""Who may do what: the authorization rules as a small executable reference.

Plain data and plain Python, to be read as the specification and compared at random with the real evaluator.
The whole of it rests on five sentences:

- A privilege is effective on an object when a role of the actor, held directly or through a group, ALLOWs it on the
  object or anything above it, and none of them DENYs it on the object or anything above it.
- The owner of an object owns what is below it too. DENY does not cut ownership.
- Acting on an object takes loading its gate first: the schema of a table, the catalog of a schema at any depth, the
  metalake of a catalog. Members alone load a metalake.
- Past the gate, an operation takes ownership or one of the privileges it names.
- A grant counts from its start until before its end, and a group of the request's token as one that the actor is stored
  in; a request may narrow the roles whose ALLOWs count, and never a DENY, ownership or membership.

One more is about change: leaving ends the roles and groups of a member that carry no DENY to them. Those that do are
kept, count for nothing while the user is no member, and again from when they are added, as far as they carry one then.
"""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

ALLOW, DENY = "allow", "deny"

NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("set_owner", "alter_metalake", "drop_metalake", "enable_metalake"), ()),
    "create_system_catalog": (),
    **dict.fromkeys(("alter_catalog", "drop_catalog", "enable_catalog", "refresh_catalog", "choose_places"), ()),
    **dict.fromkeys(("alter_schema", "drop_schema"), ()),
    "load_catalog": ("use_catalog",),
    "load_schema": ("use_schema",),
    **dict.fromkeys(("create_table", "register_table"), ("create_table",)),  # in a schema that is loaded
    "load_table": ("select_table", "modify_table"),
    **dict.fromkeys(("alter_table", "commit_table"), ("modify_table",)),
    # A move to another schema; its target is asked with create_table. Choice: a rename in place is an alter_table.
    **dict.fromkeys(("drop_table", "rename_table", "release_places"), ()),
    "vend_credentials": ("select_table",),  # readable ones, for a table's files
    "load_view": ("select_view", "alter_view"),  # choice: ALTER_VIEW loads a view as MODIFY_TABLE loads a table
    **{name: (name,) for name in ("create_catalog", "create_role", "manage_users", "manage_groups")},
    **{name: (name,) for name in ("create_view", "alter_view", "drop_view")},
    "register_view": ("create_view",),
    **{name: (name,) for name in ("register_job_template", "run_job")},
    **dict.fromkeys(("load_job_template", "load_built_in_templates"), ("use_job_template",)),
    **dict.fromkeys(("alter_job_template", "drop_job_template", "manage_jobs"), ()),
}
"""Operations that take the gate, and then ownership or any one of these privileges."""


class Party(NamedTuple):
    kind: str  # "user" or "group"
    id: int


@dataclass(frozen=True)
class User:
    id: int
    name: str
    service_admin: bool = False


@dataclass(frozen=True)
class Group:
    id: int
    name: str
    metalake: int
    members: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Securable:
    """A metalake, catalog, schema, table, view, role or job template; the parent of these two is their metalake."""

    id: int
    kind: str
    name: str
    parent: int | None
    owner: Party


class Grant(NamedTuple):
    role: int
    privilege: str
    effect: str
    obj: int
    starts: int | None = None  # its first moment
    ends: int | None = None  # the first moment after it

    def has_ended(self, now: int) -> bool:
        return self.ends is not None and self.ends <= now

    def is_in_force(self, now: int) -> bool:
        return (self.starts is None or self.starts <= now) and not self.has_ended(now)


class Request(NamedTuple):
    """How a question is asked: when, with which roles' ALLOWs (None: all), in which groups of a token besides."""

    now: int = 0
    active: Set[int] | None = None
    claimed: Set[int] = frozenset()


BARE = Request()


@dataclass(frozen=True)
class World:
    """Everything that decides. Ids are unique across the whole world."""

    users: dict[int, User]
    groups: dict[int, Group]
    objects: dict[int, Securable]
    members: frozenset[tuple[int, int]] = frozenset()  # (metalake, user); a disabled user counts as none
    assignments: frozenset[tuple[int, Party]] = frozenset()  # (role, who holds it)
    grants: tuple[Grant, ...] = ()

    @cached_property
    def children(self) -> dict[int | None, list[int]]:
        children: dict[int | None, list[int]] = {}
        for obj in self.objects.values():
            children.setdefault(obj.parent, []).append(obj.id)
        return children

    def kind(self, obj: int) -> str:
        return self.objects[obj].kind

    def lineage(self, obj: int) -> list[int]:
        """The object and all above it, nearest first, the metalake last."""
        if obj not in self._lineages:
            parent = self.objects[obj].parent
            self._lineages[obj] = [obj] if parent is None else [obj, *self.lineage(parent)]
        return self._lineages[obj]

    @cached_property
    def _lineages(self) -> dict[int, list[int]]:
        return {}

    def carries_deny(self, role: int, now: int) -> bool:
        """A DENY that is still to come counts; one that has ended is as good as gone."""
        return any(g.role == role and g.effect == DENY and not g.has_ended(now) for g in self.grants)

    def without_free_links(self, metalake: int, user: int, now: int = 0) -> World:
        """Without the roles and groups of the metalake that carry no DENY to the user."""
        denying = {(role, holder) for role, holder in self.assignments if self.carries_deny(role, now)}
        inside = {holder.id for _, holder in denying if holder.kind == "group"}
        free = {g.id for g in self.groups.values() if g.metalake == metalake} - inside
        groups = {id: replace(g, members=g.members - {user}) if id in free else g for id, g in self.groups.items()}
        of_user = {(r, h) for r, h in self.assignments if h == Party("user", user) and self.lineage(r)[-1] == metalake}
        return replace(self, groups=groups, assignments=self.assignments - (of_user - denying))

    def roles_of(self, party: Party) -> set[int]:
        """The roles of a user, or of a group and everybody in it."""
        users = {party.id} if party.kind == "user" else self.groups[party.id].members
        held = {Party("user", user) for user in users} | {party}
        held |= {Party("group", group.id) for group in self.groups.values() if group.members & users}
        return {role for role, holder in self.assignments if holder in held}

    def gate(self, obj: int) -> int:
        """What must be loadable before the object can be acted on: the nearest ancestor of another kind."""
        return next(above for above in self.lineage(obj) if self.kind(above) != self.kind(obj))


class Actor:
    """One user in one world, as of one request; each method is a rule."""

    def __init__(self, world: World, user: int, how: Request = BARE) -> None:
        self.world, self.user = world, user
        self.now, self.active, self.claimed = how
        self._loaded: dict[int, bool] = {}  # what was worked out, since one question asks for the same again and again

    def is_party(self, party: Party) -> bool:
        if party.kind == "user":
            return party.id == self.user
        return party.id in self.claimed or self.user in self.world.groups[party.id].members

    def roles(self) -> set[int]:
        return {role for role, holder in self.world.assignments if self.is_party(holder)}

    def scopes(self, obj: int) -> list[int]:
        """Where a grant reaches the object from."""
        return self.world.lineage(obj)

    def counts(self, grant: Grant) -> bool:
        narrowed = grant.effect == ALLOW and self.active is not None and grant.role not in self.active
        return grant.is_in_force(self.now) and not narrowed and grant.role in self.roles()

    def granted(self, privilege: str, effect: str, obj: int) -> bool:
        scopes = self.scopes(obj)
        found = (g for g in self.world.grants if g.privilege == privilege and g.effect == effect)
        return any(g.obj in scopes and self.counts(g) for g in found)

    def denied(self, privilege: str, obj: int) -> bool:
        return self.granted(privilege, DENY, obj)

    def holds(self, privilege: str, obj: int) -> bool:
        return self.granted(privilege, ALLOW, obj) and not self.denied(privilege, obj)

    def owns(self, obj: int) -> bool:
        return any(self.is_party(self.world.objects[scope].owner) for scope in self.world.lineage(obj))

    def is_member(self, metalake: int) -> bool:
        # Choice: membership comes first, so an owner or role holder who is no member has nothing.
        return (metalake, self.user) in self.world.members

    def reaches(self, obj: int) -> bool:
        return self.is_member(obj) if self.world.kind(obj) == "metalake" else self.loads(self.world.gate(obj))

    def acts(self, obj: int, *privileges: str) -> bool:
        return self.reaches(obj) and (self.owns(obj) or any(self.holds(p, obj) for p in privileges))

    def loads(self, obj: int) -> bool:
        if obj not in self._loaded:
            self._loaded[obj] = self.may(f"load_{self.world.kind(obj)}", obj)
        return self._loaded[obj]

    def sees(self, obj: int) -> bool:
        """Loads it, or sees something below it and so its name."""
        # Choice: a view that the actor may drop but not load is listed by name, like a path.
        named = self.world.kind(obj) == "view" and self.may("drop_view", obj)
        return self.loads(obj) or named or any(self.sees(child) for child in self.world.children.get(obj, ()))

    def creates_schema(self, container: int, missing: int) -> bool:
        """`container` is the nearest ancestor that exists; `missing` parents have to be made below it."""
        catalog = container if self.world.kind(container) == "catalog" else self.world.gate(container)
        if not self.loads(catalog):
            return False
        if self.owns(container):
            return True
        # Choice: with no parent schema yet, a DENY of USE_SCHEMA on the catalog or metalake has nothing to block.
        blocked = self.world.kind(container) == "schema" and self.denied("use_schema", container)
        if blocked or self.denied("create_schema", container):
            return False
        return self.holds("create_schema", container) or (missing > 0 and self.holds("bootstrap_namespace", container))

    def grants(self, obj: int, privilege: str) -> bool:
        # Choice: taking back an ALLOW, or adding a DENY, asks what giving the privilege asks.
        if privilege == "bootstrap_namespace":
            return self.acts(obj)
        if privilege == "manage_grants" and not self.owns(obj):
            return self.acts(obj, "manage_grants") and self.holds("manage_grants", self.world.lineage(obj)[-1])
        return self.acts(obj, "manage_grants")

    def lifts_deny(self, obj: int) -> bool:
        parent = self.world.objects[obj].parent
        # Choice: nothing is above a metalake, so only its owner lifts a DENY that it carries.
        return self.acts(obj) if parent is None else self.acts(parent, "manage_grants")

    def hands_to(self, metalake: int, party: Party) -> bool:
        # Choice: a group that owns is changed by who assigns roles, so others make only groups that they are in owners.
        return party.kind == "user" or self.is_party(party) or self.acts(metalake, "manage_grants")

    def hands_over(self, obj: int, party: Party) -> bool:
        above = {self.world.objects[scope].owner for scope in self.world.lineage(obj)[1:]}
        theirs = {Party("group", g.id) for g in self.world.groups.values() if party.id in g.members}
        owns_already = party in above or (party.kind == "user" and bool(above & theirs))
        return owns_already or self.makes_owner(self.world.roles_of(party), [obj])

    def makes_owner(self, roles: Set[int], owned: Collection[int]) -> bool:
        """DENY does not cut ownership, so making an owner lifts those of the new owner on, above and below it."""

        def is_near(obj: int) -> bool:
            return any(obj in self.world.lineage(mine) or mine in self.world.lineage(obj) for mine in owned)

        denies = [g for g in self.world.grants if g.role in roles and g.effect == DENY and not g.has_ended(self.now)]
        return all(self.lifts_deny(deny.obj) for deny in denies if is_near(deny.obj))

    def drops_role(self, role: int) -> bool:
        # Choice: a DENY that is still to come has to be lifted too.
        denies = [g for g in self.world.grants if g.role == role and g.effect == DENY and not g.has_ended(self.now)]
        return self.acts(role) and all(self.lifts_deny(deny.obj) for deny in denies)

    def may(self, operation: str, obj: int | None, missing: int = 0, privilege: str = "") -> bool:
        if obj is None:  # create_metalake: all that a service administrator may do for being one
            return self.world.users[self.user].service_admin
        match operation:
            case "load_metalake":
                return self.reaches(obj)
            case "list_catalogs" | "list_schemas" | "list_tables" | "list_views":
                return self.sees(obj)
            case "create_schema":
                return self.creates_schema(obj, missing)
            case "create_table" | "register_table" | "create_view" | "register_view":
                return self.loads(obj) and self.acts(obj, *NEEDS[operation])
            case "load_owner":
                return self.loads(obj)
            case "grant_privilege" | "revoke_privilege":
                return self.grants(obj, privilege)
            case "lift_deny":  # what revoking a DENY asks
                return self.lifts_deny(obj)
            case "load_role":  # choice: its holder loads it also while it is not active
                return self.acts(obj, "manage_grants") or (self.reaches(obj) and obj in self.roles())
            case "assign_role" | "override_role":  # whatever lifts a DENY on the way asks lift_deny besides
                return self.acts(self.world.gate(obj), "manage_grants")
            case "drop_role":
                return self.drops_role(obj)
        return self.acts(obj, *NEEDS[operation])


def allowed(
    world: World, user: int, operation: str, obj: int | None, missing: int = 0, privilege: str = "", how: Request = BARE
) -> bool:
    """`obj` is what is acted on, the container of what is created, or None for create_metalake."""
    return Actor(world, user, how).may(operation, obj, missing, privilege)


def visible(world: World, user: int, container: int | None, kind: str, how: Request = BARE) -> dict[int, str]:
    """What a list shows: the id of each child that can be loaded ("full") or only leads to one that can ("path")."""
    actor = Actor(world, user, how)
    children = [child for child in world.children.get(container, ()) if world.kind(child) == kind]
    return {child: "full" if actor.loads(child) else "path" for child in children if actor.sees(child)}


def answer(
    world: World, user: int, operation: str, obj: int | None, missing: int = 0, privilege: str = "", how: Request = BARE
) -> str:
    """Either "ok", or "forbidden" (403) for what is seen, or "unseen" (404) for what must look like a real miss."""
    actor = Actor(world, user, how)
    if actor.may(operation, obj, missing, privilege):
        return "ok"
    # Hidden parents of a new schema do not matter; choice: a hidden catalog does, for a missing one is a miss too.
    shown = world.gate(obj) if obj and operation == "create_schema" and world.kind(obj) == "schema" else obj
    return "forbidden" if shown is None or actor.sees(shown) else "unseen"
