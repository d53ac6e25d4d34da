"""What an access review says of grants, as its job delivers it: for who may read everybody's access."""

from __future__ import annotations

from typing import Any

import pytest

from authz.models import AccessReview, Role
from tests.authz.small_world import Wire, World

pytestmark = pytest.mark.store
DELIVER, READ = "bulk/metalakes/acme/access/review", "metalakes/acme/access/review"
THEN = "2026-03-01T00:00:00Z"


def role_of(world: World) -> int:
    """A role of mia's that may select from a table."""
    world.give("mia", "select_table@lake.A:B.t")
    return int(Role.objects.latest("pk").pk)


def report(world: World, role: int, **parts: Any) -> dict[str, Any]:
    unused = {"role": role, "on": world.t.pk, "privilege": "select_table", "effect": "allow", "unused": True}
    shadowed = unused | {"unused": False, "verdict": "shadowed", "by": world.ab.pk, "last": THEN}
    gone = unused | {"privilege": "modify_table"}
    counts = {"unusedCount": 1, "redundantCount": 0, "shadowedCount": 1}
    about = {"asOf": THEN, "place": 5, "days": 90, "completeUntil": THEN}
    return about | counts | {"findings": [unused, gone, shadowed]} | parts


def test_it_is_delivered_and_read(world: World, wire: Wire) -> None:
    empty: dict[str, Any] = {"code": 0, "findings": []}
    assert wire("GET", READ) == (200, empty)
    role = role_of(world)
    for _ in range(2):
        assert wire("PUT", DELIVER, report(world, role))[0] == 200
    status, answer = wire("GET", READ)
    assert status == 200 and answer["review"]["unusedCount"] == 1 and answer["review"]["by"] == "olga"
    unused, shadowed = answer["findings"]  # without the grant that is not there
    assert (unused["on"], unused["unused"], unused["verdict"]) == (
        {"type": "table", "fullName": "lake.A:B.t"}, True, None,
    )  # fmt: skip
    assert shadowed["by"] == {"type": "schema", "fullName": "lake.A:B"} and shadowed["last"].startswith("2026-03-01")
    first = wire("GET", f"{READ}?limit=2")[1]
    second = wire("GET", f"{READ}?limit=2&pageToken={first['nextPageToken']}")[1]
    assert first["findings"] + second["findings"] == answer["findings"]
    assert wire("DELETE", f"metalakes/acme/roles/{Role.objects.get(pk=role).name}")[0] == 200
    assert wire("GET", READ)[1]["findings"] == []


def test_an_older_report_changes_nothing(world: World, wire: Wire) -> None:
    role = role_of(world)
    wire("PUT", DELIVER, report(world, role))
    assert wire("PUT", DELIVER, report(world, role, place=4, days=3))[0] == 200
    assert AccessReview.objects.get().days == 90
    wire("PUT", DELIVER, report(world, role, place=6, days=3))
    assert AccessReview.objects.get().days == 3


def test_it_takes_the_right_to_read_everybodys_access(world: World, wire: Wire) -> None:
    body = report(world, role_of(world))
    for method, path, given in (("PUT", DELIVER, body), ("GET", READ, None)):
        assert wire(method, path, given, user="mia")[0] == 403
        assert wire(method, path, given, user="sam")[0] == 404
    world.give("mia", "manage_grants@acme")
    assert wire("PUT", DELIVER, body, user="mia")[0] == 200
    assert wire("GET", READ, user="mia")[1]["review"]["by"] == "mia"


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"asOf": "2999-01-01T00:00:00Z"}, "asOf"),
        ({"completeUntil": "then"}, "completeUntil"),
        ({"days": -1}, "days"),
        ({"findings": [{"role": 1}]}, "findings[0]"),
        ({"findings": [{"role": 1, "on": 1, "privilege": "fly", "effect": "allow", "unused": True}]}, "privilege"),
    ],
)
def test_bad_reports_are_refused(world: World, wire: Wire, parts: dict[str, Any], says: str) -> None:
    status, answer = wire("PUT", DELIVER, report(world, 1, **parts))
    assert status == 400 and says in answer["message"], answer
    assert not AccessReview.objects.exists()
