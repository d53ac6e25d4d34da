"""Who reaches what, on the wire: pages, streams, and who may ask about whom."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import orjson
import pytest

from access.explain import reach
from access.history.current import Now
from access.wire import access as wire_access
from authz.models import User
from authz.services import people, roles
from metalake.lineage import Located
from tests.authz.history import History, now
from tests.authz.small_world import PASSWORD, Wire, World

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
        objects = []
        for page in wire.pages(f"{ACCESS}/users/mia", size, user="mia"):
            assert len(page["objects"]) <= size
            objects += page["objects"]
        assert objects == whole["objects"]


def streamed(wire: Wire, path: str, user: str) -> tuple[Any, list[Any]]:
    headers = {"Authorization": wire.basic(user), "Accept": "application/x-ndjson"}
    answer = wire.client.get(f"/api/{path}", headers=headers)
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
    pages = [[a["user"] for a in page["access"]] for page in wire.pages(f"{ACCESS}/objects/catalog/lake", 1)]
    assert pages == [["mia"], ["nils"], ["olga"]]


def test_privileges_of_other_catalog_types_are_left_out(readers: World, wire: Wire) -> None:
    (lake,) = [o for o in wire("GET", f"{ACCESS}/users/olga")[1]["objects"] if o["fullName"] == "lake"]
    (files,) = [o for o in wire("GET", f"{ACCESS}/users/olga")[1]["objects"] if o["fullName"] == "files"]
    assert "select_table" in lake["privileges"] and "read_fileset" not in lake["privileges"]
    assert "read_fileset" in files["privileges"] and "select_table" not in files["privileges"]
    (access,) = wire("GET", f"{ACCESS}/objects/catalog/files")[1]["access"]
    assert access == {"user": "olga", "owner": True, "privileges": files["privileges"]}


@pytest.mark.store
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
    other = "The pageToken belongs to another request; start again without it."
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
