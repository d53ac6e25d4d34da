"""Search: all that somebody sees and nothing else, by names, words, paths; roles and people as the API tells them."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.explain import regions
from access.explain import search as searching
from access.explain.phrases import read_phrase
from access.explain.search import Results, objects_meant, search
from authz import policy
from authz.models import Remembered
from authz.services import people, roles
from metalake.errors import Invalid, NotFound, TooManyRequests
from metalake.kinds import Kind
from metalake.models import Securable
from tests.access.explain.test_reach import lines_of, stored_worlds
from tests.authz.small_world import Wire, World
from tests.profiles import share

pytestmark = [pytest.mark.store, pytest.mark.django_db]

WORLDS = 30


def names(results: Results) -> list[str]:
    return [".".join((*result.path[1:], result.name)) for result in results.objects]


@pytest.mark.parametrize(("small", "heads"), [(5000, 1000), (0, 1000), (3, 4)], ids=["read", "by index", "cut"])
def test_on_random_worlds_exactly_what_is_seen_comes(small: int, heads: int) -> None:
    """What can be loaded comes, and nothing that the evaluator hides; a search that is cut leaves out and says so."""
    total = 0
    with patch.object(searching, "SMALL", small), patch.object(regions, "MOST_HEADS", heads):
        for stored, place, world in stored_worlds(share(WORLDS), every=2):
            lines = lines_of(stored, place, world)
            for user in world.users:
                actor = stored.actor(place, user)
                for top in (line for line in lines if line.kind is Kind.METALAKE and actor.is_member(line.id)):
                    for text in ("A", "b"):
                        here = [line for line in lines if line.nodes[0].id == top.id and line.id != top.id]
                        like = [line for line in here if searching.fold(line.name).startswith(text.lower())]
                        matches = searching.by_name(actor, regions.seen_by(actor, top), text, 1000)
                        shown = {each.id for each in matches.objects} - {top.id}
                        loaded = {line.id for line in like if loads(actor, line)}
                        assert shown <= {line.id for line in here if policy.sees(actor, line)}
                        assert matches.is_cut or loaded <= shown, (place, user, text)
                        total += len(shown)
    assert total > share(100)


def loads(actor, line) -> bool:
    return policy.may_see_name(policy.rights_on(actor, line), line.kind)


def test_the_owner_searches_by_names_words_and_paths(world: World) -> None:
    table = world.table("nyc_Taxi_trips")
    assert names(search(world.olga, "acme", "TAXI")) == ["lake.A.B.nyc_Taxi_trips"]
    assert names(search(world.olga, None, "nyc"))[0] == "lake.A.B.nyc_Taxi_trips"
    assert names(search(world.olga, "acme", "xi_trips")) == [], "words are searched from their beginning"
    for path in ("lake.A:B.nyc", "A:B.nyc_taxi_TRIPS", "b.n", "acme.lake.a:b.nyc"):
        assert [each.id for each in search(world.olga, "acme", path).objects] == [table.pk], path
    assert names(search(world.olga, "acme", "lake.")) == ["lake.A"]
    assert names(search(world.olga, "acme", "lake.A:")) == ["lake.A.B"]
    assert names(search(world.olga, "acme", "lake.A:B.C.D.E")) == []


def test_a_path_leads_through_schemas_that_are_only_the_way(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake.A:B")
    assert names(search(world.mia, "acme", "a:b")) == ["lake.A.B"]
    assert names(search(world.mia, "acme", "lake.a:")) == ["lake.A.B"]
    assert "lake.A" in names(search(world.mia, "acme", "a")), "as in the tree"


def test_an_owner_below_a_schema_that_is_only_the_way_finds_it_by_every_path(world: World) -> None:
    """As `travel:nyc` and `lake.travel:nyc`, with what lies in it; of the schema above nothing but what leads there."""
    world.schema("hidden", world.a)
    inner = world.schema("inner", world.ab)
    world.table("t", inner)
    world.own("mia", world.ab)
    for path in ("A:B", "lake.A:B", "acme.lake.A:B"):
        assert names(search(world.mia, "acme", path)) == [], f"without use_catalog: {path}"
    world.give("mia", "use_catalog@lake")
    for path in ("A:B", "lake.A:B", "acme.lake.A:B", "a:b", "lake.A:"):
        assert names(search(world.mia, "acme", path)) == ["lake.A.B"], path
    assert names(search(world.mia, "acme", "lake.A:B:in")) == ["lake.A.B.inner"]
    assert search(world.mia, "acme", "lake.A:hidden") == search(world.mia, "acme", "lake.A:missing")


def test_who_sees_ten_objects_finds_them_and_no_other(world: World) -> None:
    world.give("mia", "use_catalog@lake")
    world.give("mia", "use_schema@lake.A:B")
    for n in range(20):
        world.table(f"trips_{n:02}")
    for n in range(8):
        world.give("mia", f"select_table@lake.A:B.trips_{n:02}")
    seen = [f"lake.A.B.trips_{n:02}" for n in range(8)]
    assert names(search(world.mia, "acme", "trips")) == seen
    for path in ("A:B.trips", "lake.A:B.trips_", "lake.A:B."):
        assert names(search(world.mia, "acme", path)) == seen, path
    assert names(search(world.mia, "acme", "lake.A:B.trips_19")) == []
    assert names(search(world.olga, "acme", "lake.A:B.trips_19")) == ["lake.A.B.trips_19"]


def test_the_whole_name_comes_first_and_a_cut_is_said(world: World) -> None:
    for name in ("t2", "t1", "x_t"):
        world.table(name)
    every = search(world.olga, "acme", "t")
    assert names(every) == [f"lake.A.B.{name}" for name in ("t", "t1", "t2", "x_t")]
    assert not every.is_cut
    few = search(world.olga, "acme", "t", 2)
    assert names(few) == ["lake.A.B.t", "lake.A.B.t1"]
    assert few.is_cut


def test_in_what_is_large_beginnings_alone_are_searched_and_that_is_said(world: World) -> None:
    world.table("nyc_taxi")
    with patch.object(searching, "SMALL", 2):
        assert names(search(world.olga, "acme", "nyc")) == ["lake.A.B.nyc_taxi"]
        by_word = search(world.olga, "acme", "taxi")
    assert names(by_word) == [] and by_word.beginnings_only


def test_what_is_hidden_changes_nothing(world: World) -> None:
    """Neither what comes, nor what is said of it, nor what is asked of the store."""
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "select_table@lake.A:B.t")
    before, mia = search(world.mia, "acme", "t"), world.mia
    assert names(before) == ["lake.A.B.t"]
    with CaptureQueriesContext(connection) as asked:
        search(mia, "acme", "t")
    hidden = world.schema("tax")
    for n in range(30):
        world.table(f"t{n}", hidden)
    assert search(world.mia, "acme", "t") == before
    with CaptureQueriesContext(connection) as asked_again:
        search(mia, "acme", "t")
    assert len(asked_again) == len(asked)
    assert search(world.mia, "acme", "lake.t") == search(world.mia, "acme", "lake.nothing")
    world.give("mia", "use_schema@lake")
    assert names(search(world.mia, "acme", "ta")) == ["lake.tax"]
    with patch.object(searching, "SMALL", 10):
        assert not search(world.mia, "acme", "ta").beginnings_only, "of the hidden tables none is counted"
    world.give("mia", "deny select_table@lake.A:B.t")
    assert names(search(world.mia, "acme", "t")) == ["lake.tax"]


def test_strangers_and_texts_that_cannot_be(world: World) -> None:
    with pytest.raises(NotFound):
        search(world.actor("sam"), "acme", "t")
    assert not search(world.actor("sam"), None, "t")
    assert not search(world.olga, "acme", "  ")
    for text in ("x" * 513, "a\x00b"):
        with pytest.raises(Invalid):
            search(world.olga, "acme", text)
    for text in ("%", "_", "'", "..", ":", "a.b:c.%2E", "\u202e"):
        search(world.olga, "acme", text)


# Roles and people


def listed(results: Results) -> dict[str, list[str]]:
    return {sort: [each.name for each in getattr(results, sort)] for sort in ("users", "groups", "roles")}


def test_who_manages_people_searches_them_and_others_themselves(world: World) -> None:
    world.group("miners", "nils")
    role = world.give("nils", "use_catalog@lake")
    assert listed(search(world.olga, "acme", "mi")) == {"users": ["mia"], "groups": ["miners"], "roles": []}
    assert listed(search(world.olga, "acme", role)) == {"users": [], "groups": [], "roles": [role]}
    assert listed(search(world.mia, "acme", "mi")) == {"users": ["mia"], "groups": [], "roles": []}
    assert listed(search(world.mia, "acme", "nils", exact=True)) == {"users": [], "groups": [], "roles": []}
    assert listed(search(world.actor("nils"), "acme", "mi")) == {"users": [], "groups": ["miners"], "roles": []}
    assert listed(search(world.actor("nils"), "acme", "r"))["roles"] == [role]


def test_who_may_grant_somewhere_is_told_the_roles_that_carry_grants_there(world: World) -> None:
    on_a, on_files = world.give("nils", "use_schema@lake.A:B"), world.give("nils", "use_catalog@files")
    world.give("mia", "use_catalog@lake", "manage_grants@lake.A")
    own = roles.list_roles(world.mia, "acme")
    shown = listed(search(world.mia, "acme", "r"))["roles"]
    assert sorted(shown) == sorted([*own, on_a])
    assert listed(search(world.mia, "acme", on_files))["roles"] == []
    assert listed(search(world.mia, "acme", on_files, exact=True))["roles"] == [on_files]
    assert listed(search(world.mia, "acme", "nils", exact=True))["users"] == ["nils"]
    assert listed(search(world.mia, "acme", "nil", exact=True))["users"] == []


def test_guessing_names_by_the_search_is_counted(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A")
    with patch("authz.callers.enumeration.MISSES", 2):
        for _ in range(2):
            assert not search(world.mia, "acme", "nobody-of-this-name", exact=True)
        with pytest.raises(TooManyRequests):
            search(world.mia, "acme", "nobody-of-this-name", exact=True)
        assert "lake.A" in names(search(world.mia, "acme", "A")), "searching what one sees goes on"
    assert Remembered.objects.count() == 1


def test_the_wire_answers_it(world: World, wire: Wire) -> None:
    people.add_group(world.olga, "acme", "tea")
    status, body = wire("GET", "metalakes/acme/search?q=t&limit=5")
    assert status == 200
    assert body["results"] == {
        "objects": [{"type": "table", "id": str(world.t.pk), "name": "t", "path": ["acme", "lake", "A", "B"]}],
        "roles": [],
        "users": [],
        "groups": [{"type": "group", "id": body["results"]["groups"][0]["id"], "name": "tea", "path": ["acme"]}],
        "isCut": False,
        "beginningsOnly": False,
    }
    for query in ("", "?q=a&limit=0", "?q=a&limit=101", "?q=a&exact=maybe", "?q=%00"):
        assert wire("GET", f"metalakes/acme/search{query}")[0] == 400, query
    assert wire("GET", "metalakes/acme/search?q=a", user="sam")[0] == 404


# Phrases


def meant(world: World, name: str, text: str) -> list[tuple[str, str, str | None]]:
    actor = world.actor(name)
    phrase = read_phrase(text, actor.moment)
    assert phrase
    return [(one.phrase.who, one.on.name, one.privilege) for one in objects_meant(actor, phrase)]


def test_the_owner_is_offered_what_is_named(world: World) -> None:
    assert meant(world, "olga", "mia reads A:B") == [("mia", "B", "select_table")]
    assert ("mia", "lake", "modify_table") in meant(world, "olga", "mia writes lake")
    assert meant(world, "olga", "mia reads nothing") == []


def test_only_what_one_may_grant_on_is_offered(world: World) -> None:
    assert meant(world, "mia", "nils reads lake") == []
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "select_table@lake.A")
    assert meant(world, "mia", "nils reads lake.A") == [], "she sees it, and may not grant there"
    world.give("mia", "manage_grants@lake.A:B")
    assert meant(world, "mia", "nils reads lake.A:B") == [("nils", "B", "select_table")]


def test_a_question_is_about_what_one_sees(world: World) -> None:
    for text in ("who reads lake", "why nils lake"):
        assert meant(world, "mia", text) == []
    world.give("mia", "use_catalog@lake")
    assert meant(world, "mia", "who manages lake") == [("", "lake", "manage_grants")]
    assert meant(world, "mia", "why nils lake") == [("nils", "lake", "select_table")]


# Comments


def test_a_word_of_a_comment_leads_to_what_one_may_load(world: World) -> None:
    trips = world.table("trips")
    world.table("payroll")
    Securable.objects.filter(name__in=["trips", "payroll"]).update(comment="Every Taxi-ride, monthly")

    def commented(name: str, text: str) -> list[str]:
        results = search(world.actor(name), "acme", text, comments=True)
        return [result.name for result in results.commented]

    assert commented("olga", "ride") == ["payroll", "trips"]
    assert commented("olga", "onthly") == commented("olga", "ri") == [], "inside a word, and too short"
    assert commented("mia", "ride") == []
    assert search(world.actor("olga"), "acme", "ride").commented == [], "the wires do not ask"
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", f"select_table@lake.A:B.{trips.name}")
    assert commented("mia", "ride") == ["trips"]
    with patch.object(searching, "SMALL", 0):
        assert commented("olga", "ride") == [], "large regions are not read"


def test_what_is_hidden_pushes_out_no_comment(world: World) -> None:
    """Else whoever fills all places but one reads hidden comments, a word at a time."""
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "select_table@lake.A:B")
    tables = [world.table(f"a{number}") for number in range(8)]
    for table in tables:
        world.give("mia", f"deny select_table@lake.A:B.{table.name}")
    world.table("trips")
    Securable.objects.filter(name__in=["trips", *(table.name for table in tables)]).update(comment="a ride")
    found = search(world.mia, "acme", "ride", 1, comments=True).commented
    assert [result.name for result in found] == ["trips"]
