"""Who reaches what: as the single check decides it, on random worlds and in the past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.utils import timezone

from access.explain import reach
from access.history.current import Now, State
from access.history.past import Past
from authz import policy, snapshot
from authz.actor import Actor
from authz.models import User
from authz.objects import find_object
from authz.operations import load_of
from authz.services import grants, owners, people, roles
from catalogs.models import Schema
from metalake.kinds import Kind, family
from metalake.lineage import Located
from metalake.privileges import Privilege
from tests.authz.history import History, now
from tests.authz.small_world import World, at, node_of
from tests.authz.stored import Stored, batches
from tests.profiles import share

pytestmark = [pytest.mark.store, pytest.mark.django_db]

WORLDS = 100  # a right that is lost, or counted where it is not, shows within 30

Answer = dict[str, tuple[bool, list[str]]]
"""By lineage: whether it is owned, and the privileges."""


def located(stored: Stored, place: int, obj: int) -> Located:
    return Located(nodes=stored.line(place, obj).nodes)


def found_by(rows: Iterator[reach.Reached]) -> Answer:
    rows_ = list(rows)
    assert [row.lineage for row in rows_] == sorted({row.lineage for row in rows_})
    return {row.lineage: (row.use.owner, [p.value for p in row.use.privileges]) for row in rows_}


def single(
    actor: Actor, lines: Sequence[Located], privilege: Privilege | None = None, holds: str | None = None
) -> Answer:
    """The same, asked object by object; `holds` is what the catalogs hold."""
    answer: Answer = {}
    for line in lines:
        held = policy.rights_on(actor, line)
        usable = policy.usable(held, line.kind)
        if len(line.nodes) > 1:
            usable = [p for p in usable if holds is None or family(p) in (None, holds)]
        if privilege in usable if privilege else usable or policy.decide(load_of(line.kind), held, line.kind):
            answer[line.lineage] = ("self" in held.owned, [p.value for p in usable])
    return answer


def stored_worlds(count: int, every: int = 1) -> Iterator[tuple[Stored, int, Any]]:
    for _, stored in batches(count, every):
        for place, world in enumerate(stored.worlds):
            yield stored, place, world


def lines_of(stored: Stored, place: int, world: Any) -> list[Located]:
    return [located(stored, place, obj.id) for obj in world.objects.values() if obj.kind != "role"]


@pytest.mark.timeout(600)
def test_everybody_reaches_what_the_single_check_allows() -> None:
    total = 0
    # So that pieces end everywhere.
    with patch.object(reach, "FEWEST", 2), patch.object(reach, "OWNED_AT_ONCE", 1):
        for stored, place, world in stored_worlds(share(WORLDS)):
            lines = lines_of(stored, place, world)
            for user in world.users:
                actor = stored.actor(place, user)
                for top in (line for line in lines if line.kind is Kind.METALAKE):
                    here = [line for line in lines if line.nodes[0].id == top.id]
                    found = found_by(reach.reach(Now(top), actor, top))
                    assert found == single(actor, here), (place, user)
                    total += len(found)
    assert total > share(3_300)


def test_subtrees_single_privileges_and_narrowed_roles_agree_too() -> None:
    shown = {True: 0, False: 0}
    for stored, place, world in stored_worlds(share(WORLDS), every=6):
        lines = lines_of(stored, place, world)
        for user in world.users:
            whole = stored.actor(place, user)
            for actor in (whole, replace(whole, active=whole.roles[:1])):
                for below in lines[:: len(lines) // 3]:
                    here = [line for line in lines if line.nodes[: len(below.nodes)] == below.nodes]
                    for privilege in (None, Privilege.SELECT_TABLE, Privilege.USE_SCHEMA):
                        found = found_by(reach.reach(Now(Located(nodes=below.nodes[:1])), actor, below, privilege))
                        assert found == single(actor, here, privilege), (place, user, below.full_name)
                        shown[privilege is None] += len(found)
    assert min(shown.values()) > share(160)


def test_a_page_begins_behind_any_object() -> None:
    for stored, place, world in stored_worlds(share(10)):
        top = next(line for line in lines_of(stored, place, world) if line.kind is Kind.METALAKE)
        for user in world.users:
            actor = stored.actor(place, user)
            every = list(reach.reach(Now(top), actor, top))
            for number, row in enumerate(every):
                rest = list(reach.reach(Now(top), actor, top, None, row.lineage))
                assert found_by(iter(rest)) == found_by(iter(every[number + 1 :]))
                assert [row.full_name for row in rest] == [row.full_name for row in every[number + 1 :]]


def test_who_reaches_an_object_is_who_reaches_it() -> None:
    total = 0
    for stored, place, world in stored_worlds(share(WORLDS), every=3):
        User.objects.bulk_update(
            [User(id=stored.id(place, u.id), username=u.name) for u in world.users.values()], ["username"]
        )
        for line in lines_of(stored, place, world)[::5]:
            state = Now(Located(nodes=line.nodes[:1]))
            with patch.object(snapshot, "latest", return_value=stored.policy):
                found = {a.user: a.use for a in reach.access_to(state, line, None, "")}
            wanted = {}
            for user in world.users.values():
                one = single(stored.actor(place, user.id), [line]).get(line.lineage)
                if one and one[1]:
                    wanted[user.name] = one
            assert {name: (use.owner, [p.value for p in use.privileges]) for name, use in found.items()} == wanted
            total += len(wanted)
        User.objects.bulk_update(
            [User(id=stored.id(place, u.id), username=f"{place}-{u.id}") for u in world.users.values()], ["username"]
        )
    assert total > share(160)


def test_a_group_or_a_role_alone_is_a_member_who_holds_just_that() -> None:
    """Compared with a new member to whom exactly that is given."""
    total = 0
    for stored, place, world in stored_worlds(share(WORLDS), every=5):
        lines = lines_of(stored, place, world)
        held = stored.policy
        for top in (line for line in lines if line.kind is Kind.METALAKE):
            here = [line for line in lines if line.nodes[0].id == top.id]
            joined = held.after(held.epoch, held.stamp, [snapshot.member_change(top.id, 999, True)])
            for group in world.groups.values():
                id = stored.id(place, group.id)
                twin = Actor(999, "new", joined, claimed=(id,))
                found = found_by(reach.reach(Now(top), reach.group_alone(id, "g", held, None), top))
                assert found == single(twin, here)
                total += len(found)
            for role in (obj for obj in world.objects.values() if obj.kind == "role"):
                id = stored.id(place, role.id)
                twin = Actor(999, "new", joined.after(0, "", [snapshot.roles_change("user", 999, [id])]))
                found = found_by(reach.reach(Now(top), reach.role_alone(id, "r", held, None), top))
                assert found == single(twin, here)
                total += len(found)
    assert total > share(100)


def test_what_cannot_be_reached_is_not_read(world: World) -> None:
    for name in ("B", "C", "D"):
        schema = world.schema(name)
        for number in range(30):
            world.table(f"t{number}", schema)
    world.give("mia", "use_catalog@lake", "use_schema@lake.C", "select_table@lake.C")
    read: list[str] = []
    walk = Now.walk

    def seen(self: Now, below: Located, start: str = "", size: int = 10_000) -> Any:
        rows = walk(self, below, start, size)
        read.extend(row.name for row in rows)
        return rows

    with patch.object(Now, "walk", seen), patch.object(reach, "FEWEST", 2):
        names = [row.full_name for row in reach.reach(Now(Located(nodes=(node_of(world.acme),))), world.mia, at(world))]
    assert names == ["acme", "lake", "lake.C", *(f"lake.C.t{number}" for number in range(30))]
    assert len(read) < 60  # of 96
    world.own("mia", world.t)  # in lake.A:B, where she uses no schema
    assert "lake.A:B.t" not in [row.full_name for row in reach.reach(Now(at(world)), world.mia, at(world))]
    world.give("mia", "use_schema@lake.A")
    assert "lake.A:B.t" in [row.full_name for row in reach.reach(Now(at(world)), world.mia, at(world))]


def test_what_is_owned_far_down_is_found_again_and_again(world: World) -> None:
    world.give("mia", "use_catalog@lake")
    for name in ("B", "C", "D"):
        world.own("mia", world.schema("raw", world.schema(name)))
    with patch.object(reach, "OWNED_AT_ONCE", 1):
        names = [row.full_name for row in reach.reach(Now(at(world)), world.mia, at(world))]
    assert names == ["acme", "lake", "lake.B:raw", "lake.C:raw", "lake.D:raw"]


def test_a_namesake_of_ids_is_not_passed_over(world: World) -> None:
    """Object 70 is not below object 7."""
    for id in (7, 70):
        row = Schema(id=id, kind=Kind.SCHEMA, name=f"s{id}", in_catalog=world.lake, physical_name=f"s{id}")
        world._save(row, world.lake)
    world.give("mia", "use_catalog@lake", "use_schema@lake.s70")
    assert [row.full_name for row in reach.reach(Now(at(world)), world.mia, at(world))] == ["acme", "lake", "lake.s70"]


def test_grants_in_time_count_while_they_are_in_force(world: World) -> None:
    role, soon = world.give("mia", "use_catalog@lake"), timezone.now() + timedelta(hours=1)
    for privilege, starts, ends in (("use_schema", None, soon), ("create_table", soon, None)):
        given = [(privilege, "allow", starts, ends)]
        grants.grant_privileges(world.olga, "acme", role, Kind.SCHEMA, "lake.A", given)
    (schema,) = (row for row in reach.reach(Now(at(world)), world.mia, at(world)) if row.full_name == "lake.A")
    assert schema.use.privileges == (Privilege.USE_SCHEMA,)
    later = replace(world.mia, at=soon.timestamp() + 1)
    assert "lake.A" not in [row.full_name for row in reach.reach(Now(at(world)), later, at(world))]


# The past


def test_the_past_agrees_with_the_single_check(past: History) -> None:
    moments = [now()]
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    moments.append(now())
    people.add_group(past.olga, "acme", "analysts")
    roles.assign_roles(past.olga, "acme", "group", "analysts", ["readers"])
    moments.append(now())
    past.grant("lake.flights:raw", "select_table", "deny")
    past.grant("lake", "select_table")
    moments.append(now())
    past.revoke("lake.flights", "use_schema")
    moments.append(now())
    past.revoke("lake.flights:raw", "select_table", "deny")
    owners.set_owner(past.olga, "acme", Kind.SCHEMA, "lake.flights:raw", "mia", "user")
    moments.append(now())
    seen, of_groups = [], []
    for moment in moments:
        state = past.at(moment)
        assert isinstance(state, Past)
        held = state.policy_on()
        lines = [located_at(state, row.lineage) for row in state.walk(state.top)]
        for name in ("olga", "mia", "nils"):
            actor = state.actor(name, held)
            found = found_by(reach.reach(state, actor, state.top))
            assert found == single(actor, lines, holds="relational")
            for line in lines:
                access = {a.user: [p.value for p in a.use.privileges] for a in reach.access_to(state, line, None, "")}
                assert access.get(name, []) == found.get(line.lineage, (False, []))[1]
            seen.append(len(found))
        for id in state.groups():
            bearer = reach.group_alone(id, "analysts", held, state.at)
            found = found_by(reach.reach(state, bearer, state.top))
            assert found == single(bearer, lines, holds="relational")
            of_groups.append(len(found))
    assert of_groups == [4, 4, 2, 2]
    assert seen == [4, 1, 1, 4, 4, 1, 4, 4, 1, 4, 4, 1, 4, 2, 1, 4, 3, 1]


def located_at(state: State, lineage: str) -> Located:
    rows = {row.id: row for row in state.walk(state.top)}
    return Located(nodes=tuple(node_of(rows[int(step)]) for step in lineage[1:].split("/")))


def test_the_standing_is_what_the_evaluator_says(world: World) -> None:
    world.give("mia", "use_catalog@lake", "select_table@lake", "modify_table@lake", "deny modify_table@lake.A")
    where = find_object("acme", Kind.TABLE, "lake.A:B.t")
    assert reach.standing(world.mia, where) == reach.Standing(None, (Privilege.SELECT_TABLE,))
    assert reach.standing(world.actor("sam"), where) == reach.Standing(None, ())
    owns = reach.standing(world.olga, where).owns
    assert owns is not None
    assert owns.name == "acme", "the topmost"
