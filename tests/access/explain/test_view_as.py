"""What a person sees below an object, as the single check decides it for each child, and who may ask."""

from __future__ import annotations

import pytest

from access.explain import view_as
from access.explain.permissions import Place, open_on
from authz import policy
from metalake.errors import Forbidden, NotFound
from metalake.kinds import CONTAINERS, Kind
from tests.access.explain.test_reach import lines_of, stored_worlds
from tests.authz.small_world import Wire, World
from tests.profiles import share

LAKE = Place(Kind.CATALOG, "lake")

pytestmark = [pytest.mark.store, pytest.mark.django_db]


@pytest.mark.timeout(600)
def test_everybody_sees_the_children_that_the_single_check_shows() -> None:
    shown = hidden = 0
    for stored, place, world in stored_worlds(share(60), every=4):
        lines = lines_of(stored, place, world)
        for parent in (line for line in lines if line.kind in CONTAINERS):
            children = [line for line in lines if line.nodes[:-1] == parent.nodes]
            for user in world.users:
                person = stored.actor(place, user)
                wanted = {child.id for child in children if policy.sees(person, child)}
                assert view_as.seen_among(person, parent, [child.id for child in children]) == wanted
                shown, hidden = shown + len(wanted), hidden + len(children) - len(wanted)
    assert min(shown, hidden) > share(60)


@pytest.fixture
def readers(world: World) -> World:
    """mia reads lake.flights and sees the way to A:B, nils may grant in lake.A."""
    for name in ("flights", "weather"):
        world.table("t.1", world.schema(name))
    world.give("mia", "use_catalog@lake", "use_schema@lake.flights", "select_table@lake.flights", "use_schema@lake.A:B")
    world.give("nils", "use_catalog@lake", "manage_grants@lake.A")
    return world


def test_the_wire_lists_what_a_user_sees(readers: World, wire: Wire) -> None:
    path = "metalakes/acme/access/users/mia/children"
    assert wire("GET", path)[1]["objects"] == [{"type": "catalog", "fullName": "lake"}]
    status, first = wire("GET", f"{path}?type=catalog&fullName=lake&limit=1")
    assert (status, first["objects"]) == (200, [{"type": "schema", "fullName": "lake.A"}])
    _, rest = wire("GET", f"{path}?type=catalog&fullName=lake&limit=1&pageToken={first['nextPageToken']}")
    assert rest["objects"] == [{"type": "schema", "fullName": "lake.flights"}] and "nextPageToken" not in rest
    _, tables = wire("GET", f"{path}?type=schema&fullName=lake.flights")
    assert tables["objects"] == [{"type": "table", "fullName": "lake.flights.t%2E1"}]
    assert wire("GET", f"{path}?type=schema&fullName=lake.A:B")[1]["objects"] == [], "they may not select there"


def test_others_are_asked_about_by_who_may_grant_there(readers: World) -> None:
    a, flights = Place(Kind.SCHEMA, "lake.A"), Place(Kind.SCHEMA, "lake.flights")
    assert [child.name for child in view_as.children_seen(readers.actor("nils"), "acme", "mia", a, "", 10)] == ["B"]
    with pytest.raises(NotFound):
        view_as.children_seen(readers.actor("nils"), "acme", "mia", flights, "", 10)
    with pytest.raises(Forbidden):
        view_as.children_seen(readers.mia, "acme", "nils", flights, "", 10)
    assert view_as.children_seen(readers.mia, "acme", "mia", flights, "", 10), "everybody asks about themselves"
    with pytest.raises(NotFound, match="User nobody does not exist"):
        view_as.children_seen(readers.olga, "acme", "nobody", a, "", 10)


def test_a_level_costs_as_many_statements_however_many_it_has(readers: World, django_assert_max_num_queries) -> None:
    ids = [readers.schema(f"s{number}").pk for number in range(30)] + [readers.a.pk]
    _, lake = open_on(readers.olga, "acme", LAKE)
    person = readers.mia
    with django_assert_max_num_queries(3):
        assert view_as.seen_among(person, lake, ids) == {readers.a.pk}
