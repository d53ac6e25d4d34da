"""The real evaluator against the reference model, on random worlds written to the database."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group as GuardianGroup
from django.contrib.auth.models import Permission
from django.db import connection

from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.models import Grant, Group, Member, Role, User
from authz.services import publishing
from catalogs.services.children import children_shown, schemas_shown
from metalake.errors import Forbidden, NotFound
from metalake.kinds import Kind, slot_of
from metalake.lineage import Located, Node
from metalake.models import Securable
from metalake.privileges import Effect, Privilege
from tests.authz import model
from tests.authz.worlds import Question, random_questions, random_request, random_world
from tests.profiles import share

pytestmark = [pytest.mark.store, pytest.mark.django_db]

WORLDS = 2_000
QUESTIONS = 50
BATCH = 100
STRIDE = 1_000  # ids of one world stay below this
HOUR = 3_600  # from one moment of a world to the next, in seconds
SINCE = 4_000_000_000  # their first moment is yet to come, so that nothing that ends has ended when it is loaded


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
        permissions = {p.codename: p for p in Permission.objects.filter(content_type__app_label="metalake")}
        worlds = list(enumerate(self.worlds))
        User.objects.bulk_create(
            User(id=self.id(w, user.id), username=f"{w}-{user.id}")
            for w, world in worlds
            for user in world.users.values()
        )
        roles = [(w, obj) for w, world in worlds for obj in world.objects.values() if obj.kind == "role"]
        GuardianGroup.objects.bulk_create(GuardianGroup(id=self.id(w, r.id), name=f"{w}-{r.id}") for w, r in roles)
        rows = [self._row(w, world, obj) for w, world in worlds for obj in world.objects.values()]
        held = [(row, row.owner_group_id) for row in rows if row.owner_group_id]
        for row, _ in held:  # groups come after metalakes, their owners after them
            row.owner_user_id, row.owner_group_id = row.id // STRIDE * STRIDE + 1, None
        Securable.objects.bulk_create(rows)
        self._children("metalake_metalake", "enabled", [(r.id, True) for r in rows if r.kind == "metalake"])
        self._children("authz_role", "group_id", [(self.id(w, r.id), self.id(w, r.id)) for w, r in roles])
        groups = [(w, group) for w, world in worlds for group in world.groups.values()]
        Group.objects.bulk_create(
            Group(id=self.id(w, g.id), metalake_id=self.id(w, g.metalake), name=f"{g.id}", creator="t")
            for w, g in groups
        )
        for row, group_id in held:
            row.owner_user_id, row.owner_group_id = None, group_id
        Securable.objects.bulk_update([row for row, _ in held], ["owner_user", "owner_group"])
        Member.objects.bulk_create(
            Member(metalake_id=self.id(w, m), user_id=self.id(w, u), creator="t")
            for w, world in worlds
            for m, u in world.members
        )
        Group.users.through.objects.bulk_create(
            Group.users.through(group_id=self.id(w, g.id), user_id=self.id(w, u)) for w, g in groups for u in g.members
        )
        assigned = [(w, *pair) for w, world in worlds for pair in world.assignments]
        User.groups.through.objects.bulk_create(
            User.groups.through(user_id=self.id(w, p.id), group_id=self.id(w, r))
            for w, r, p in assigned
            if p.kind == "user"
        )
        Group.roles.through.objects.bulk_create(
            Group.roles.through(group_id=self.id(w, p.id), role_id=self.id(w, r))
            for w, r, p in assigned
            if p.kind == "group"
        )
        Grant.rows.bulk_create(
            Grant(
                group_id=self.id(w, g.role),
                permission=permissions[g.privilege],
                content_object_id=self.id(w, g.obj),
                effect=g.effect,
                grantor="t",
                starts_at=self.moment(g.starts),
                ends_at=self.moment(g.ends),
            )
            for w, world in worlds
            for g in world.grants
        )

    def _row(self, place: int, world: model.World, obj: model.Securable) -> Securable:
        lineage = [self.id(place, above) for above in reversed(world.lineage(obj.id))]
        return Securable(
            id=self.id(place, obj.id),
            kind=obj.kind,
            slot=slot_of(obj.kind),
            name=f"{place}{obj.name}" if obj.kind == "metalake" else obj.name,
            parent_id=lineage[-2] if len(lineage) > 1 else None,
            lineage="".join(f"/{above}" for above in lineage),
            owner_user_id=self.id(place, obj.owner.id) if obj.owner.kind == "user" else None,
            owner_group_id=self.id(place, obj.owner.id) if obj.owner.kind == "group" else None,
            creator="t",
        )

    @staticmethod
    def _children(table: str, column: str, rows: list[tuple[Any, ...]]) -> None:
        with connection.cursor() as cursor:
            sql = f"INSERT INTO {table} (securable_ptr_id, {column}) VALUES (%s, %s)"
            cursor.executemany(sql, rows)

    def at(self, moment: int) -> float:
        return self.since + moment * HOUR

    def moment(self, moment: int | None) -> datetime | None:
        return None if moment is None else datetime.fromtimestamp(self.at(moment), UTC)

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


def ask(stored: Stored, place: int, question: Question) -> str | None:
    """The evaluator's answer in the model's words; None for what a later feature or a service decides."""
    assert question.obj is not None
    actor, line = stored.actor(place, question.user, question.how), stored.line(place, question.obj)
    kind = line.nodes[-1].kind
    try:
        match question.operation:
            case "list_catalogs" | "list_schemas" | "list_tables" | "list_views":
                return "ok" if policy.sees(actor, line) else "unseen"
            case "create_schema":
                return create_schema(actor, line, question.missing)
            case "load_owner":
                policy.require(actor, operations.load_of(kind), line)
            case "set_owner":
                policy.require(actor, operations.own(kind), line)
            case "rename_table":
                policy.require(actor, operations.MOVE_TABLE, line)
            case name if name.upper() in vars(operations) and "role" not in name:
                policy.require(actor, getattr(operations, name.upper()), line)
            case _:
                return None
    except Forbidden:
        return "forbidden"
    except NotFound:
        return "unseen"
    return "ok"


def create_schema(actor: Actor, line: Line, missing: int) -> str:
    """As services.schemas does: a hidden catalog is a miss, everything else without the right is forbidden."""
    if not policy.sees(actor, Line(line.nodes[:2])):
        return "unseen"
    if policy.permits(actor, operations.CREATE_SCHEMA, line):
        return "ok"
    bootstraps = missing and policy.may_bootstrap(policy.rights_on(actor, line), line.nodes[-1].kind)
    return "ok" if bootstraps else "forbidden"


def supported(world: model.World, question: Question) -> bool:
    return question.obj is not None and world.kind(question.obj) != "role"


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


@pytest.mark.timeout(600)
def test_agrees_with_the_reference_model_on_2000_worlds() -> None:
    assert agreed(share(WORLDS)) > share(40_000)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_agrees_with_the_reference_model_on_20000_worlds() -> None:
    assert agreed(share(WORLDS)) > share(40_000)


def agreed(worlds: int) -> int:
    """How many questions both answered, all of them alike."""
    asked: dict[str, set[str]] = {}
    disagreements = []
    total = 0
    for first, stored in batches(worlds):
        for place, world in enumerate(stored.worlds):
            for question in random_questions(world, first + place, QUESTIONS):
                if not supported(world, question):
                    continue
                found = ask(stored, place, question)
                if found is None:
                    continue
                wanted = model.answer(world, *question)
                asked.setdefault(question.operation, set()).add(found)
                total += 1
                if found != wanted:
                    disagreements.append((first + place, question, wanted, found))
    assert disagreements == []
    assert all({"ok"} < answers for answers in asked.values()), asked
    return total


LISTS: dict[str, tuple[str, Any]] = {
    "catalog": ("metalake", policy.visible_catalogs),
    "table": ("schema", partial(policy.visible_leaves, kind=Kind.TABLE)),
    "view": ("schema", partial(policy.visible_leaves, kind=Kind.VIEW)),
    "schema": ("catalog schema", policy.visible_schemas),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("most", [snapshot.MOST_NAMED, -1], ids=["grants named", "grants asked for"])
def test_lists_show_what_the_model_shows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_NAMED", most)
    shown: dict[str, int] = {}
    for first, stored in batches(share(200)):
        for place, world in enumerate(stored.worlds):
            rng = random.Random(first + place)
            for user in list(world.users)[:4]:
                for kind, (containers, visible) in LISTS.items():
                    for obj in telling(world, [o for o in world.objects.values() if o.kind in containers.split()])[:3]:
                        how = random_request(rng, world, 1 / 3)
                        line = stored.line(place, obj)
                        rows = Securable.objects.filter(parent_id=line.nodes[-1].id, slot=slot_of(kind), kind=kind)
                        actor = stored.actor(place, user, how)
                        found = set(visible(actor, line, rows).values_list("pk", flat=True))
                        if kind != "catalog":
                            assert by_statement(actor, line, Kind(kind)) == found, (first + place, user, kind, obj, how)
                        if not policy.sees(actor, line):
                            found = set()
                        wanted = {stored.id(place, child) for child in model.visible(world, user, obj, kind, how)}
                        assert found == wanted, (first + place, user, kind, obj, how)
                        shown[kind] = shown.get(kind, 0) + len(wanted)
    assert min(shown.values()) > share(200), shown


def by_statement(actor: Actor, line: Line, kind: Kind) -> set[int]:
    """The ids that the statement of hot reads lists."""
    container = Located(nodes=line.nodes)
    if kind is Kind.SCHEMA:
        rows = schemas_shown(actor, container, None, None)
    else:
        rows = children_shown(actor, container, kind, policy.shows_leaves(actor, line, kind), None, None)
    assert [name for _, name in rows] == sorted((name for _, name in rows), key=str.encode)
    return {id for id, _ in rows}


def telling(world: model.World, containers: list[model.Securable]) -> list[int]:
    """Those first whose children are not all alike, for the grants they carry or for their owners."""
    on = {grant.obj for grant in world.grants}

    def odd(container: model.Securable) -> int:
        children = [world.objects[child] for child in world.children.get(container.id, ())]
        return sum(child.id in on or child.owner != container.owner for child in children)

    return [container.id for container in sorted(containers, key=odd, reverse=True)]


def test_what_has_ended_is_as_good_as_gone() -> None:
    """Asked now, by the clock, in the middle of the third hour of the worlds."""
    worlds = [world for world in map(random_world, range(100)) if any(g.starts or g.ends for g in world.grants)]
    stored = Stored(worlds, since=time.time() - 2.5 * HOUR)
    kept = [grant for of_role in stored.policy.timed.values() for grants in of_role.values() for grant in grants]
    grants = [grant for world in worlds for grant in world.grants if grant.starts or grant.ends]
    assert len(kept) == sum(not grant.has_ended(2) for grant in grants) < len(grants)
    for place, world in enumerate(worlds):
        for question in random_questions(world, place, QUESTIONS):
            if supported(world, question) and (found := ask(stored, place, question._replace(how=model.BARE))):
                assert found == model.answer(world, *question._replace(how=model.Request(2))), (place, question)


def test_following_all_grants_equals_loading_them() -> None:
    stored = Stored([random_world(seed) for seed in range(40)])
    nothing = replace(stored.policy, grants={}, timed={})
    assert grants_in(stored.policy)["timed"]
    assert grants_in(followed(nothing)) == grants_in(stored.policy)
    Grant.rows.filter(id__in=list(Grant.objects.values_list("id", flat=True))[::3]).delete()
    Grant.rows.filter(starts_at=stored.moment(1)).update(starts_at=None)
    Grant.rows.filter(ends_at=stored.moment(5)).update(starts_at=stored.moment(4), ends_at=None)
    changed = grants_in(snapshot.load())
    assert grants_in(followed(stored.policy)) == changed != grants_in(stored.policy)
    assert changed["timed"]


def followed(policy: snapshot.Snapshot) -> snapshot.Snapshot:
    """Told of every role on every object, and of what is gone besides, as it is published."""
    told = []
    for role in Role.objects.all():
        on = Grant.objects.filter(group=role.group_id).values_list("content_object_id", flat=True)
        told += publishing.grants_of(role, {*on, *policy.grants.get(role.pk, ()), *policy.timed.get(role.pk, ())})
    return policy.after(policy.epoch + 1, "x", json.loads(json.dumps(told)))


def grants_in(policy: snapshot.Snapshot) -> dict[str, Any]:
    """Their order says nothing."""
    timed = {r: {on: sorted(grants) for on, grants in of_role.items()} for r, of_role in policy.timed.items()}
    return {"lasting": {r: of_role for r, of_role in policy.grants.items() if of_role}, "timed": timed}


def test_a_snapshot_brought_up_to_date_equals_one_loaded_anew() -> None:
    stored = Stored([random_world(seed) for seed in range(20)])
    base = stored.policy
    role = next(iter(base.grants))
    securable, mask = next(iter(base.grants[role].items()))
    held = [
        {"privilege": privilege.value, "effect": effect.value}
        for privilege in Privilege
        for effect in Effect
        if mask & snapshot.mask_of(privilege, effect)
    ]
    told = [snapshot.grants_change(role, securable, []), snapshot.grants_change(role, securable, held)]
    changed = base.after(base.epoch + 1, "x", told)
    assert changed.grants[role] == base.grants[role]
    emptied = base.after(base.epoch + 1, "x", [snapshot.role_gone(role)])
    assert emptied.grants[role] == {}
    assert base.grants[role], "the older snapshot is untouched"
