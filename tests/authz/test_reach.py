"""Who reaches what: as the single check decides it, on random worlds, in the past, and on the wire."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from django.utils import timezone

from authz import policy, reach, snapshot, wire_access
from authz.models import User
from authz.objects import Located
from authz.operations import load_of
from authz.policy import Actor
from authz.services import grants, owners, people, roles
from authz.state import Now, Past, State
from catalogs.models import Schema
from metalake.privileges import Kind, Privilege, family
from tests.authz.small_world import PASSWORD, Wire, World
from tests.authz.test_evaluator import Stored, clear
from tests.authz.test_history import History, now, past
from tests.authz.worlds import random_world

pytestmark = [pytest.mark.store, pytest.mark.django_db]

__all__ = ["past"]
WORLDS, BATCH = 300, 100

Answer = dict[str, tuple[bool, list[str]]]
"""By lineage: whether it is owned, and the privileges."""


def located(stored: Stored, place: int, obj: int) -> Located:
    return Located(stored.line(place, obj).nodes)


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
        held = policy.rights(actor, line)
        usable = policy.usable(held, line.kind)
        if len(line.nodes) > 1:
            usable = [p for p in usable if holds is None or family(p) in (None, holds)]
        if privilege in usable if privilege else usable or policy.decide(load_of(line.kind), held, line.kind):
            answer[line.lineage] = ("self" in held.owned, [p.value for p in usable])
    return answer


def stored_worlds() -> Iterator[tuple[Stored, int, Any]]:
    for first in range(0, WORLDS, BATCH):
        stored = Stored([random_world(seed) for seed in range(first, first + BATCH)])
        for place, world in enumerate(stored.worlds):
            yield stored, place, world
        clear()


def lines_of(stored: Stored, place: int, world: Any) -> list[Located]:
    return [located(stored, place, obj.id) for obj in world.objects.values() if obj.kind != "role"]


@pytest.mark.timeout(600)
def test_everybody_reaches_what_the_single_check_allows() -> None:
    total = 0
    # So that pieces end everywhere.
    with patch.object(reach, "FEWEST", 2), patch.object(reach, "OWNED_AT_ONCE", 1):
        for stored, place, world in stored_worlds():
            lines = lines_of(stored, place, world)
            for user in world.users:
                actor = stored.actor(place, user)
                for top in (line for line in lines if line.kind is Kind.METALAKE):
                    here = [line for line in lines if line.nodes[0].id == top.id]
                    found = found_by(reach.reach(Now(top), actor, top))
                    assert found == single(actor, here), (place, user)
                    total += len(found)
    assert total > 10_000


def test_subtrees_single_privileges_and_narrowed_roles_agree_too() -> None:
    shown = {True: 0, False: 0}
    for stored, place, world in stored_worlds():
        if place % 6:
            continue
        lines = lines_of(stored, place, world)
        for user in world.users:
            whole = stored.actor(place, user)
            for actor in (whole, replace(whole, active=whole.roles[:1])):
                for below in lines[:: len(lines) // 3]:
                    here = [line for line in lines if line.nodes[: len(below.nodes)] == below.nodes]
                    for privilege in (None, Privilege.SELECT_TABLE, Privilege.USE_SCHEMA):
                        found = found_by(reach.reach(Now(Located(below.nodes[:1])), actor, below, privilege))
                        assert found == single(actor, here, privilege), (place, user, below.full_name)
                        shown[privilege is None] += len(found)
    assert min(shown.values()) > 500


def test_a_page_begins_behind_any_object() -> None:
    for stored, place, world in stored_worlds():
        if place >= 25:
            break
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
    for stored, place, world in stored_worlds():
        if place % 3:
            continue
        User.objects.bulk_update(
            [User(id=stored.id(place, u.id), username=u.name) for u in world.users.values()], ["username"]
        )
        for line in lines_of(stored, place, world)[::5]:
            state = Now(Located(line.nodes[:1]))
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
    assert total > 500


def test_a_group_or_a_role_alone_is_a_member_who_holds_just_that() -> None:
    """Compared with a new member to whom exactly that is given."""
    total = 0
    for stored, place, world in stored_worlds():
        if place % 5:
            continue
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
    assert total > 300


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
        names = [row.full_name for row in reach.reach(Now(Located((node_of(world.acme),))), world.mia, at(world))]
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


def node_of(row: Any) -> policy.Node:
    return policy.Node(row.id, row.kind, row.name, row.owner_user_id, row.owner_group_id)


def at(world: World) -> Located:
    return Located((node_of(world.acme),))


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
    return Located(tuple(node_of(rows[int(step)]) for step in lineage[1:].split("/")))


# On the wire

ACCESS = "metalakes/acme/access"


@pytest.fixture
def readers(world: World) -> World:
    """mia reads lake.flights and lake.weather, nils may grant in lake.A."""
    for name in ("flights", "weather", "secret"):
        schema = world.schema(name)
        for number in range(4):
            world.table(f"t.{number}", schema)
    world.give("mia", "use_catalog@lake", "use_schema@lake.flights", "select_table@lake.flights")
    world.give("mia", "use_schema@lake.weather", "modify_table@lake.weather", "deny select_table@lake.weather")
    world.give("nils", "use_catalog@lake", "manage_grants@lake.A")
    return world


def test_paging_in_any_size_gives_the_same(readers: World, wire: Wire) -> None:
    status, whole = wire("GET", f"{ACCESS}/users/mia?limit=1000", user="mia")
    assert status == 200 and "nextPageToken" not in whole
    assert [(o["type"], o["fullName"]) for o in whole["objects"][:4]] == [
        ("metalake", "acme"), ("catalog", "lake"), ("schema", "lake.flights"), ("table", "lake.flights.t%2E0"),
    ]  # fmt: skip
    assert [o["privileges"] for o in whole["objects"][:4]] == [
        [],
        ["use_catalog"],
        ["use_schema", "select_table"],
        ["select_table"],
    ]
    assert len(whole["objects"]) == 12
    for size in (1, 2, 5, 16):
        objects, query = [], f"limit={size}"
        while True:
            status, page = wire("GET", f"{ACCESS}/users/mia?{query}", user="mia")
            assert status == 200 and len(page["objects"]) <= size
            objects += page["objects"]
            if "nextPageToken" not in page:
                break
            query = f"limit={size}&pageToken={page['nextPageToken']}"
        assert objects == whole["objects"]


def streamed(wire: Wire, path: str, user: str) -> tuple[Any, list[Any]]:
    credential = b64encode(f"{user}:{PASSWORD}".encode()).decode()
    answer = wire.client.get(
        f"/api/{path}", headers={"Authorization": f"Basic {credential}", "Accept": "application/x-ndjson"}
    )
    return answer, [orjson.loads(line) for line in b"".join(answer).splitlines()]


def test_a_stream_says_the_same_line_by_line(readers: World, wire: Wire) -> None:
    readers.own("mia", readers.t)
    whole = wire("GET", f"{ACCESS}/users/mia?limit=1000")[1]["objects"]
    with patch.object(wire_access, "LINES_AT_ONCE", 5):
        answer, lines = streamed(wire, f"{ACCESS}/users/mia", "mia")
    assert answer.streaming and answer["Content-Type"] == "application/x-ndjson"
    assert lines == whole
    answer, lines = streamed(wire, f"{ACCESS}/users/olga", "olga")
    assert {"type": "metalake", "fullName": "acme", "owner": True}.items() <= lines[0].items()
    answer, lines = streamed(wire, f"{ACCESS}/users/olga", "mia")
    assert (answer.status_code, lines[0]["code"]) == (403, 1008)
    answer, lines = streamed(wire, f"{ACCESS}/users/mia?limit=3", "mia")
    assert (answer.status_code, lines[0]["code"]) == (400, 1001)


def test_a_stream_that_fails_says_so_in_its_last_line(readers: World, wire: Wire) -> None:
    walk = Now.walk

    def failing(self: Now, below: Located, start: str = "", size: int = 10_000) -> Any:
        if start > below.lineage:
            raise RuntimeError("secret detail")
        return walk(self, below, start, size)

    with patch.object(Now, "walk", failing), patch.object(reach, "FEWEST", 5):
        answer, lines = streamed(wire, f"{ACCESS}/users/olga", "olga")
    assert answer.status_code == 200 and len(lines) > 1
    assert lines[-1].keys() == {"error"} and lines[-1]["error"]["code"] == 1002
    assert "secret" not in str(lines)


def test_who_reaches_an_object_on_the_wire(readers: World, wire: Wire) -> None:
    status, answer = wire("GET", f"{ACCESS}/objects/table/lake.flights.t%252E0")
    assert status == 200
    assert answer["object"] == {"type": "table", "fullName": "lake.flights.t%2E0"}
    assert [(a["user"], a["owner"]) for a in answer["access"]] == [("mia", False), ("olga", True)]
    assert answer["access"][0]["privileges"] == ["select_table"]
    assert answer["access"][1]["privileges"] == ["select_table", "modify_table", "manage_grants"]
    path = f"{ACCESS}/objects/schema/lake.weather?privilege=SELECT_TABLE"
    assert [a["user"] for a in wire("GET", path)[1]["access"]] == ["olga"]
    path = f"{ACCESS}/objects/metalake/acme?limit=1"
    assert [a["user"] for a in wire("GET", path)[1]["access"]] == ["olga"]
    path = f"{ACCESS}/objects/catalog/lake?limit=1"
    found = []
    for _ in range(3):
        page = wire("GET", path)[1]
        found += [a["user"] for a in page["access"]]
        if "nextPageToken" not in page:
            break
        path = f"{ACCESS}/objects/catalog/lake?limit=1&pageToken={page['nextPageToken']}"
    assert found == ["mia", "nils", "olga"] and "nextPageToken" not in page


def test_privileges_of_other_catalog_types_are_left_out(readers: World, wire: Wire) -> None:
    (lake,) = [o for o in wire("GET", f"{ACCESS}/users/olga")[1]["objects"] if o["fullName"] == "lake"]
    (files,) = [o for o in wire("GET", f"{ACCESS}/users/olga")[1]["objects"] if o["fullName"] == "files"]
    assert "select_table" in lake["privileges"] and "read_fileset" not in lake["privileges"]
    assert "read_fileset" in files["privileges"] and "select_table" not in files["privileges"]
    (access,) = wire("GET", f"{ACCESS}/objects/catalog/files")[1]["access"]
    assert access == {"user": "olga", "owner": True, "privileges": files["privileges"]}


def test_everybody_asks_about_themselves_and_readers_about_others(readers: World, wire: Wire) -> None:
    mine = wire("GET", f"{ACCESS}/users/mia", user="mia")
    assert mine == wire("GET", f"{ACCESS}/users/mia", user="olga")
    role, *_ = roles.list_roles(readers.mia, "acme")
    people.add_group(readers.olga, "acme", "analysts")
    roles.assign_roles(readers.olga, "acme", "group", "analysts", [role])
    by_role = wire("GET", f"{ACCESS}/roles/{role}")
    assert by_role == wire("GET", f"{ACCESS}/groups/analysts")
    assert [o["fullName"] for o in by_role[1]["objects"]][:3] == ["acme", "lake", "lake.flights"]
    for path in ("users/olga", "users/nobody", f"roles/{role}", "groups/analysts", "objects/catalog/lake"):
        assert wire("GET", f"{ACCESS}/{path}", user="mia")[0] == 403, path
    for path in ("users/nobody", "roles/nothing", "groups/nobody"):
        status, answer = wire("GET", f"{ACCESS}/{path}")
        assert (status, answer["code"]) == (404, 1003), path
    assert wire("GET", f"{ACCESS}/users/sam", user="sam")[0] == 404
    assert wire("GET", f"{ACCESS}/users/mia", user="sam")[0] == 404


def test_a_reader_of_a_subtree_asks_there_alone(readers: World, wire: Wire) -> None:
    readers.give("mia", "use_schema@lake.A", "select_table@lake.A")
    status, answer = wire("GET", f"{ACCESS}/users/mia?type=schema&fullName=lake.A", user="nils")
    assert (status, [o["fullName"] for o in answer["objects"]]) == (200, ["lake.A", "lake.A:B", "lake.A:B.t"])
    assert wire("GET", f"{ACCESS}/users/mia", user="nils")[0] == 403
    assert wire("GET", f"{ACCESS}/users/mia?type=catalog&fullName=lake", user="nils")[0] == 403
    # A schema that nils does not see is answered like one that is not there.
    hidden = wire("GET", f"{ACCESS}/users/mia?type=schema&fullName=lake.secret", user="nils")
    missing = wire("GET", f"{ACCESS}/users/mia?type=schema&fullName=lake.no-such", user="nils")
    assert hidden[0] == missing[0] == 404
    assert hidden[1]["message"].replace("secret", "no-such") == missing[1]["message"]
    assert wire("GET", f"{ACCESS}/users/nils?type=schema&fullName=lake.secret", user="nils") == hidden
    assert wire("GET", f"{ACCESS}/objects/schema/lake.secret", user="nils") == hidden


def test_what_is_hidden_does_not_show(readers: World, wire: Wire) -> None:
    for path in ("users/mia", "users/mia?limit=2", "users/mia?privilege=use_schema"):
        answer = wire("GET", f"{ACCESS}/{path}", user="mia")[1]
        assert "secret" not in str(answer) and "files" not in str(answer)
    readers.own("mia", readers.t)
    assert "lake.A:B.t" not in str(wire("GET", f"{ACCESS}/users/mia", user="mia")[1])


def test_bad_questions_are_refused(readers: World, wire: Wire) -> None:
    token = wire("GET", f"{ACCESS}/users/mia?limit=2")[1]["nextPageToken"]
    assert wire("GET", f"{ACCESS}/users/mia?limit=3&pageToken={token}")[0] == 200
    other = "The pageToken is not of this question; begin again without it."
    for path, user, says in (
        (f"users/mia?limit=2&pageToken={token}", "mia", other),
        (f"users/nils?limit=2&pageToken={token}", "olga", other),
        (f"roles/mia?limit=2&pageToken={token}", "olga", other),
        (f"users/mia?privilege=use_catalog&pageToken={token}", "olga", other),
        (f"users/mia?pageToken={token[:-3]}abc", "olga", other),
        ("users/mia?pageToken=%FF", "olga", other),
        ("users/mia?limit=0", "mia", "limit must be a whole number from 1 to 1000, not '0'."),
        ("users/mia?limit=1001", "mia", "limit must be"),
        ("users/mia?limit=many", "mia", "limit must be"),
        ("users/mia?privilege=fly", "mia", "'fly' is no privilege"),
        ("users/mia?type=table", "mia", "Name an object by type and fullName"),
        ("users/mia?type=airport&fullName=lake", "mia", "'airport' is no object type"),
        ("users/mia?type=role&fullName=r1", "mia", "Access is asked about on metalake, catalog"),
        ("users/mia?type=table&fullName=lake", "mia", "'lake' is not the full name of a table."),
        ("users/mia?asOf=yesterday", "mia", "asOf is 'yesterday'"),
        ("users/mia?asOf=2999-01-01", "mia", "2999-01-01T00:00:00"),
        ("objects/role/r1", "olga", "Access is asked about on metalake, catalog"),
    ):
        status, answer = wire("GET", f"{ACCESS}/{path}", user=user)
        assert status == 400, path
        assert says in answer["message"], path


def test_the_past_on_the_wire(past: History, wire: Wire) -> None:
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    user = User.objects.get(username="mia")
    user.set_password(PASSWORD)
    user.save()
    moment = now().isoformat().replace("+", "%2B")
    past.revoke("lake", "use_catalog")
    then = wire("GET", f"{ACCESS}/users/mia?asOf={moment}", user="mia")[1]["objects"]
    today = wire("GET", f"{ACCESS}/users/mia", user="mia")[1]["objects"]
    assert [o["fullName"] for o in then] == ["acme", "lake", "lake.flights", "lake.flights:raw"]
    assert [o["fullName"] for o in today] == ["acme"]
    # What one reached then is shown to oneself; others ask whoever may grant there today.
    path = f"{ACCESS}/objects/catalog/lake?asOf={moment}"
    assert wire("GET", path, user="mia")[0] == 404
    assert wire("GET", f"{ACCESS}/users/olga?asOf={moment}", user="mia")[0] == 403
