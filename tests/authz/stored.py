"""Random worlds of the model as rows, many at once, and questions about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import Group as GuardianGroup
from django.contrib.auth.models import Permission
from django.db import connection, models, transaction

from authz import snapshot
from authz.actor import Actor
from authz.models import Grant, Group, Member, Role, User
from metalake.kinds import slot_of
from metalake.lineage import Node
from metalake.models import Metalake, Securable
from tests.authz import model
from tests.authz.worlds import random_world

BATCH = 100
STRIDE = 1_000  # ids of one world stay below this
HOUR = 3_600  # from one moment of a world to the next, in seconds
SINCE = 4_000_000_000  # their first moment is yet to come, so that nothing that ends has ended when it is loaded
SECURABLE = "id kind slot name parent_id lineage owner_user_id owner_group_id creator"


def insert(of: type[models.Model], columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert rows into the table of a model; columns that are not named get the model's default, its parents' none."""
    named = columns.split()
    others = [
        field for field in of._meta.local_concrete_fields if field.attname not in named and not is_numbered(field)
    ]
    same = tuple(field.get_db_prep_save(field.get_default(), connection) for field in others)
    every = ", ".join([*named, *(field.attname for field in others)])
    values = ", ".join(["%s"] * (len(named) + len(same)))
    with connection.cursor() as cursor:
        sql = f"INSERT INTO {of._meta.db_table} ({every}) VALUES ({values})"
        cursor.executemany(sql, [(*row, *same) for row in rows])


def is_numbered(field: models.Field[Any, Any]) -> bool:
    return isinstance(field, models.AutoField)


@dataclass(frozen=True)
class Line:
    nodes: tuple[Node, ...]

    @property
    def full_name(self) -> list[str]:
        return [node.name for node in self.nodes[1:]] or [self.nodes[0].name]


class Stored:
    """Many worlds in the database at once, each at its own range of ids; `since` is their moment 0."""

    def __init__(self, worlds: list[model.World], since: float = SINCE) -> None:
        self.worlds = worlds
        self.since = since
        with transaction.atomic():  # metalakes are owned by groups, which belong to metalakes
            self._insert()
        if connection.vendor == "postgresql":
            # Its own housekeeping sees nothing of a transaction that is not committed. Only our tables: what all
            # databases of a server share would stay locked until this test ends, and another worker waits for it.
            ours = connection.introspection.django_table_names(only_existing=True, include_views=False)
            connection.cursor().execute("ANALYZE " + ", ".join(ours))
        self.policy = snapshot.load()

    def id(self, place: int, local: int) -> int:
        return (place + 1) * STRIDE + local

    def _insert(self) -> None:
        """By statements: model by model, it took as long as all that is asked of the worlds."""
        bits = dict(Permission.objects.filter(content_type__app_label="metalake").values_list("codename", "pk"))
        worlds = list(enumerate(self.worlds))
        users = [(w, user.id) for w, world in worlds for user in world.users.values()]
        objects = [(w, world, obj) for w, world in worlds for obj in world.objects.values()]
        metalakes = [self.id(w, obj.id) for w, _, obj in objects if obj.kind == "metalake"]
        roles = [(w, self.id(w, obj.id)) for w, _, obj in objects if obj.kind == "role"]
        groups = [(w, group) for w, world in worlds for group in world.groups.values()]
        held = [(p.kind, self.id(w, p.id), self.id(w, r)) for w, world in worlds for r, p in world.assignments]

        insert(User, "id username", ((self.id(w, user), f"{w}-{user}") for w, user in users))
        insert(GuardianGroup, "id name", ((role, f"{w}-{role % STRIDE}") for w, role in roles))
        insert(Securable, SECURABLE, (self._row(w, world, obj) for w, world, obj in objects))
        insert(Metalake, "securable_ptr_id", ((id,) for id in metalakes))
        insert(Role, "securable_ptr_id group_id", ((role, role) for _, role in roles))
        named = ((self.id(w, g.id), self.id(w, g.metalake), f"{g.id}", "t") for w, g in groups)
        insert(Group, "id metalake_id name creator", named)
        members = ((self.id(w, m), self.id(w, u), "t") for w, world in worlds for m, u in world.members)
        insert(Member, "metalake_id user_id creator", members)
        in_groups = ((self.id(w, g.id), self.id(w, u)) for w, g in groups for u in g.members)
        insert(Group.users.through, "group_id user_id", in_groups)
        insert(User.groups.through, "user_id group_id", ((id, role) for kind, id, role in held if kind == "user"))
        insert(Group.roles.through, "group_id role_id", ((id, role) for kind, id, role in held if kind == "group"))
        grants = (
            (
                *(self.id(w, g.role), bits[g.privilege], self.id(w, g.obj), g.effect, "t"),
                *(self._stored(g.starts), self._stored(g.ends)),
            )
            for w, world in worlds
            for g in world.grants
        )
        insert(Grant, "group_id permission_id content_object_id effect grantor starts_at ends_at", grants)

    def _row(self, place: int, world: model.World, obj: model.Securable) -> tuple[Any, ...]:
        lineage = [self.id(place, above) for above in reversed(world.lineage(obj.id))]
        owner, by_user = self.id(place, obj.owner.id), obj.owner.kind == "user"
        return (
            *(lineage[-1], obj.kind, slot_of(obj.kind), f"{place}{obj.name}" if obj.kind == "metalake" else obj.name),
            *(lineage[-2] if len(lineage) > 1 else None, "".join(f"/{above}" for above in lineage)),
            *((owner, None) if by_user else (None, owner)),
            "t",
        )

    def at(self, moment: int) -> float:
        return self.since + moment * HOUR

    def moment(self, moment: int | None) -> datetime | None:
        return None if moment is None else datetime.fromtimestamp(self.at(moment), UTC)

    def _stored(self, moment: int | None) -> Any:
        return connection.ops.adapt_datetimefield_value(self.moment(moment))

    def actor(self, place: int, user: int, how: model.Request = model.BARE) -> Actor:
        return Actor(
            self.id(place, user),
            f"user{user}",
            self.policy,
            claimed=tuple(self.id(place, group) for group in how.claimed),
            active=None if how.active is None else tuple(self.id(place, role) for role in how.active),
            at=None if how == model.BARE else self.at(how.now),
        )

    def line(self, place: int, obj: int) -> Line:
        world = self.worlds[place]
        objects = [world.objects[above] for above in reversed(world.lineage(obj))]
        return Line(tuple(self._node(place, above) for above in objects))

    def _node(self, place: int, obj: model.Securable) -> Node:
        owner = self.id(place, obj.owner.id)
        by_user = obj.owner.kind == "user"
        return Node(self.id(place, obj.id), obj.kind, obj.name, owner if by_user else None, None if by_user else owner)


def batches(count: int, every: int = 1) -> Iterator[tuple[int, Stored]]:
    """The first seed and the worlds of each batch; to store them takes longer than most of what is asked of them."""
    for first in range(0, count, BATCH):
        yield first, Stored([random_world(seed) for seed in range(first, min(first + BATCH, count), every)])
        clear()


def clear() -> None:
    for table in (
        "authz_grant",
        "authz_user_groups",
        "authz_group_roles",
        "authz_group_users",
        "authz_member",
        "authz_role",
        "metalake_metalake",
    ):
        connection.cursor().execute(f"DELETE FROM {table}")
    # One statement each, so that references between the rows are gone when they are looked at.
    with connection.constraint_checks_disabled():
        Securable.objects.all()._raw_delete("default")
    Group.objects.all()._raw_delete("default")
    GuardianGroup.objects.all()._raw_delete("default")
    User.objects.all()._raw_delete("default")
