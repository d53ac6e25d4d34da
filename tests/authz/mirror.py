"""The model's world beside the rows it mirrors: what there is, what is expected of a step, how worlds change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from metalake.errors import AlreadyExists, Forbidden, Invalid, MetalakeError, NotEmpty, NotFound
from metalake.full_names import dotted
from metalake.lineage import Address
from tests.authz import model
from tests.authz.model import DENY, Party, World

T = TypeVar("T")
OK, FORBIDDEN, UNSEEN = "ok", "forbidden", "unseen"
WORDS = {Forbidden: FORBIDDEN, NotFound: UNSEEN, AlreadyExists: "exists", NotEmpty: "not empty", Invalid: "invalid"}
USERS = ("olga", "Olga", "mia", "mi", "nils")
FOUNDER = USERS[0]


class Mirror:
    """`world` has the ids of the database; a step that one side answers otherwise raises AssertionError."""

    def __init__(self) -> None:
        self.world = World({}, {}, {})
        self.disabled: frozenset[tuple[int, int]] = frozenset()  # (metalake, user)
        self.accounts: dict[int, User] = {}
        self.steps: list[str] = []
        for name in USERS:
            account = User.objects.create(username=name)
            self.accounts[account.pk] = account
        self.founder = next(iter(self.accounts))
        self.world = replace(self.world, users={id: model.User(id, a.username) for id, a in self.accounts.items()})

    # What there is.

    def all(self, kind: str, metalake: int | None = None) -> list[int]:
        return [
            obj.id
            for obj in self.world.objects.values()
            if obj.kind == kind and (metalake is None or self.metalake(obj.id) == metalake)
        ]

    def groups(self, metalake: int) -> list[int]:
        return [group.id for group in self.world.groups.values() if group.metalake == metalake]

    def belonging(self, metalake: int) -> list[int]:
        """Every user of a metalake, enabled or not."""
        return [user for user in self.accounts if (metalake, user) in self.world.members | self.disabled]

    def parties(self, metalake: int) -> list[Party]:
        users = [Party("user", user) for user in self.belonging(metalake)]
        return users + [Party("group", group) for group in self.groups(metalake)]

    def owner(self, metalake: int) -> int:
        """A user who owns the metalake, so that whatever is asked of it succeeds."""
        return next(user for user in self.belonging(metalake) if self.may(user).acts(metalake))

    def metalake(self, obj: int) -> int:
        return self.world.lineage(obj)[-1]

    def name(self, obj: int) -> str:
        return self.world.objects[obj].name

    def party_name(self, party: Party) -> str:
        return self.world.users[party.id].name if party.kind == "user" else self.world.groups[party.id].name

    def named(self, kind: str, parent: int | None, name: str) -> int | None:
        found = [o.id for o in self.world.objects.values() if (o.kind, o.parent, o.name) == (kind, parent, name)]
        return found[0] if found else None

    def ident(self, obj: int, *more: str) -> Address:
        """Where services find it; `more` are levels of a schema below it."""
        line = [self.world.objects[above] for above in reversed(self.world.lineage(obj))]
        levels = [o.name for o in line if o.kind == "schema"] + list(more)
        leaf = line[-1].name if line[-1].kind == "table" else None
        return Address(
            metalake=line[0].name, catalog=line[1].name if len(line) > 1 else None, schema=levels or None, leaf=leaf
        )

    def full_name(self, obj: int) -> str:
        if self.world.kind(obj) in ("metalake", "role"):
            return dotted([self.name(obj)])
        ident = self.ident(obj)
        parts = [ident.catalog, ":".join(ident.schema or ()) or None, ident.leaf]
        return dotted(part for part in parts if part)

    # What the model expects.

    def may(self, user: int) -> model.Actor:
        return model.Actor(self.world, user)

    def answer(self, user: int, operation: str, obj: int, **more: Any) -> str:
        return model.answer(self.world, user, operation, obj, **more)

    def told(self, user: int, obj: int, may: bool) -> str:
        if may:
            return OK
        return FORBIDDEN if self.may(user).sees(obj) else UNSEEN

    def lifts(self, user: int, of_roles: Iterable[int]) -> str:
        """Whether the user may lift every DENY in these roles."""
        denies = [grant.obj for grant in self.world.grants if grant.effect == DENY and grant.role in of_roles]
        return OK if all(map(self.may(user).lifts_deny, denies)) else FORBIDDEN

    def has_owner(self, metalake: int) -> str:
        owner = self.world.objects[metalake].owner
        users = {owner.id} if owner.kind == "user" else self.world.groups[owner.id].members
        return OK if any((metalake, user) in self.world.members for user in users) else "invalid"

    def after(self, change: Callable[[], World], then: Callable[[], str]) -> str:
        """What is told of the world that a change would lead to."""
        before, self.world = self.world, change()
        try:
            return then()
        finally:
            self.world = before

    # One step on both sides.

    def step(self, user: int, what: str, wanted: str, call: Callable[[Actor], T], change: Callable[[T], World]) -> None:
        try:
            result = call(actor_of(self.accounts[user]))
            found = UNSEEN if result is False else OK
        except MetalakeError as failure:
            found = next((word for error, word in WORDS.items() if isinstance(failure, error)), repr(failure))
        self.steps.append(f"{self.accounts[user].username} {what}: {found}")
        assert found == wanted, f"{self.steps[-1]}, where the model says {wanted}"
        if found == OK:
            self.world = change(result)

    # How worlds change.

    def _free(self, kind: str, parent: int, name: str) -> str:
        return OK if self.named(kind, parent, name) is None else "exists"

    def _born(self, id: int, kind: str, name: str, parent: int | None, owner: int, world: World | None = None) -> World:
        world = world or self.world
        assert id not in world.objects, "an id was given twice"
        obj = model.Securable(id, kind, name, parent, Party("user", owner))
        return replace(world, objects={**world.objects, id: obj})

    def _with(self, obj: model.Securable) -> World:
        return replace(self.world, objects={**self.world.objects, obj.id: obj})

    def _gone(self, obj: int) -> World:
        left = {id: other for id, other in self.world.objects.items() if obj not in self.world.lineage(id)}
        return replace(
            self.world,
            objects=left,
            grants=tuple(grant for grant in self.world.grants if grant.obj in left and grant.role in left),
            assignments=frozenset(pair for pair in self.world.assignments if pair[0] in left),
        )

    def _handed_over(self, metalake: int, party: Party) -> World:
        """What a party owns in a metalake is its owner's now."""
        to = self.world.objects[metalake].owner
        changed = {
            id: replace(obj, owner=to)
            for id, obj in self.world.objects.items()
            if obj.owner == party and id != metalake and self.metalake(id) == metalake
        }
        return replace(self.world, objects=self.world.objects | changed)


def first(*words: str) -> str:
    """What is told where several things are asked one after the other."""
    return next((word for word in words if word != OK), OK)
