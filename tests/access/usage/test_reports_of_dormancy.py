"""What had no use for long, as a job delivers it: replaced as a whole, and for who may read everybody's access."""

from __future__ import annotations

from typing import Any

import pytest

from authz.models import Dormancy
from tests.authz.small_world import Wire, World

pytestmark = pytest.mark.store
DELIVER, READ = "bulk/metalakes/acme/access/dormant", "metalakes/acme/access/dormant"
UNTIL = "2026-03-01T00:00:00Z"


def report(world: World, **parts: Any) -> dict[str, Any]:
    objects = [{"on": world.t.pk}, {"on": world.ab.pk, "last": "2025-01-01T05:00:00Z"}, {"on": 10**9}]
    people = [{"user": "nils"}, {"user": "mia", "last": "2025-02-03T00:00:00Z"}, {"user": "sam"}, {"user": "nobody"}]
    counts = {"objectCount": 7, "peopleCount": 3}
    return {"completeUntil": UNTIL, "days": 90, **counts, "objects": objects, "people": people} | parts


def test_it_is_delivered_and_read(world: World, wire: Wire) -> None:
    assert wire("GET", READ) == (200, {"code": 0, "objects": [], "people": []})
    for _ in range(2):
        assert wire("PUT", DELIVER, report(world))[0] == 200
    status, answer = wire("GET", READ)
    assert status == 200 and answer["report"]["objectCount"] == 7 and answer["report"]["by"] == "olga"
    assert answer["report"]["completeUntil"].startswith("2026-03-01T00:00:00") and "nextPageToken" not in answer
    assert answer["objects"] == [
        {"on": {"type": "table", "fullName": "lake.A:B.t"}, "last": None},
        {"on": {"type": "schema", "fullName": "lake.A:B"}, "last": "2025-01-01T05:00:00.000000Z"},
    ]
    assert answer["people"] == [{"user": "nils", "last": None}, {"user": "mia", "last": "2025-02-03T00:00:00.000000Z"}]
    first = wire("GET", f"{READ}?limit=1")[1]
    second = wire("GET", f"{READ}?limit=1&pageToken={first['nextPageToken']}")[1]
    assert first["objects"] + second["objects"] == answer["objects"]
    assert first["people"] + second["people"] == answer["people"]
    assert wire("DELETE", "metalakes/acme/users/mia")[0] == 200
    world.t.delete()
    left = wire("GET", READ)[1]
    assert (len(left["objects"]), len(left["people"])) == (1, 1)


def test_an_older_report_changes_nothing(world: World, wire: Wire) -> None:
    wire("PUT", DELIVER, report(world))
    assert wire("PUT", DELIVER, report(world, completeUntil="2026-02-01T00:00:00Z", days=3))[0] == 200
    assert Dormancy.objects.get().days == 90
    assert wire("PUT", DELIVER, report(world, completeUntil="2026-03-02T00:00:00Z", days=3))[0] == 200
    assert Dormancy.objects.get().days == 3


def test_it_takes_the_right_to_read_everybodys_access(world: World, wire: Wire) -> None:
    for method, path, body in (("PUT", DELIVER, report(world)), ("GET", READ, None)):
        assert wire(method, path, body, user="mia")[0] == 403
        assert wire(method, path, body, user="sam")[0] == 404
    world.give("mia", "manage_grants@acme")
    assert wire("PUT", DELIVER, report(world), user="mia")[0] == 200
    assert wire("GET", READ, user="mia")[1]["report"]["by"] == "mia"


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"completeUntil": "2999-01-01T00:00:00Z"}, "completeUntil"),
        ({"completeUntil": "then"}, "completeUntil"),
        ({"days": 0}, "days"),
        ({"objects": [{"on": "t"}]}, "objects[0].on"),
        ({"objects": [{"on": 1}] * 10_001}, "10000"),
        ({"people": [{"user": ""}]}, "people[0].user"),
    ],
)
def test_bad_reports_are_refused(world: World, wire: Wire, parts: dict[str, Any], says: str) -> None:
    status, answer = wire("PUT", DELIVER, report(world, **parts))
    assert status == 400 and says in answer["message"], answer
    assert not Dormancy.objects.exists()
