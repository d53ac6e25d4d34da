"""What people hold, place by place: a line for each change, as the evaluator decides, and only for whom may ask."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from access.explain import holdings as module
from access.explain.holdings import Holdings, Through, holding_by, holdings
from access.explain.queries import Whom
from access.explain.reach import type_of
from access.history.current import Now
from authz import policy
from authz.services import owners, people, roles
from metalake.errors import Forbidden, NotFound
from metalake.kinds import Kind
from metalake.levels import Level, privileges_of
from metalake.lineage import Located
from metalake.privileges import Privilege
from tests.access.explain.test_reach import lines_of, stored_worlds
from tests.authz.small_world import World
from tests.profiles import share

pytestmark = [pytest.mark.store, pytest.mark.django_db]
MIA, NILS = Whom("user", "mia"), Whom("user", "nils")
READER = [f"{each}@lake" for each in privileges_of(Level.READER, Kind.CATALOG, "relational")]


def lines(table: Holdings, place: int = 0) -> dict[str, str]:
    """By path: "owner", or the level and what is held beyond it."""
    said = {}
    for row in table.rows:
        one = row.holdings[place]
        said[row.path] = "owner" if one.is_owner else " ".join(map(str, filter(None, (one.level, *one.more))))
    return said


@pytest.mark.timeout(600)
def test_each_line_holds_for_what_is_below_it_up_to_the_next() -> None:
    checked = 0
    for stored, place, world in stored_worlds(share(20), every=4):
        everything = lines_of(stored, place, world)
        for user in world.users:
            person = stored.actor(place, user)
            top = everything[0].top
            table = module._Table(person, Now(top), [person], module._places(top, [person])[0])
            rows = {row.on.lineage: row.holdings[0] for row in table.rows()}
            for on in everything:
                if on.kind is Kind.SCHEMA:
                    above = [Located(nodes=on.nodes[:depth]) for depth in range(len(on.nodes), 0, -1)]
                    near = next((each for each in above if each.lineage in rows), None)
                    shown = rows[near.lineage] if near and near.kind is Kind.SCHEMA else None
                    if shown or near is None:
                        real = holding_by(policy.rights_on(person, on), on.kind, type_of(on))
                        assert real.may == (shown.may if shown else (False, None, ())), (on, near)
                        checked += 1
    assert checked > share(20)


def test_levels_and_what_is_beyond_them(world: World) -> None:
    world.give("mia", *READER, "create_table@lake", "deny select_table@lake.A:B")
    assert lines(holdings(world.olga, "acme", [MIA])) == {
        "lake": "reader create_table",
        "lake.A:B": "use_schema create_table select_view",
    }
    world.give("nils", "select_table@lake")
    assert lines(holdings(world.olga, "acme", [NILS])) == {}, "without use_catalog it reaches nothing"
    assert lines(holdings(world.olga, "acme", [Whom("user", "olga")])) == {"acme": "owner"}


def test_it_says_through_what_and_what_to_ask_why(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake")
    world.give("mia", "deny use_schema@lake.A")
    world.group("crew", "mia")
    roles.assign_roles(world.olga, "acme", "group", "crew", ["r1"])
    owners.set_owner(world.olga, "acme", Kind.SCHEMA, "lake.A:B", "crew", "group")
    lake, a, b = holdings(world.olga, "acme", [MIA]).rows
    assert lake.holdings[0].through == (Through("r1", ("crew",), True),)
    assert lake.holdings[0].asks is Privilege.USE_CATALOG
    assert (a.path, a.holdings[0].is_nothing, a.holdings[0].through) == (
        "lake.A",
        True,
        (Through("r2", (), True, True),),
    )
    assert b.holdings[0].is_owner and b.holdings[0].through[0] == Through("", ("crew",), False)
    group = holdings(world.olga, "acme", [Whom("group", "crew")])
    assert lines(group) == {"lake": "use_catalog use_schema", "lake.A:B": "owner"}


def test_two_are_compared_where_they_differ(world: World) -> None:
    world.give("mia", *READER)
    world.give("nils", *READER, "modify_table@lake.A:B.t")
    world.give("mia", "modify_table@lake.A:B.t", "create_schema@lake.A")
    table = holdings(world.olga, "acme", [MIA, NILS])
    assert lines(table) == {"lake.A": "reader create_schema", "lake.A:B.t": "writer"}
    assert lines(table, 1) == {"lake.A": "reader", "lake.A:B.t": "writer"}, "the same again, where it differs above"
    world.give("nils", "deny use_catalog@lake")
    table = holdings(world.olga, "acme", [NILS, MIA])
    assert lines(table) == {"lake": "", "lake.A": "", "lake.A:B.t": ""}


def test_others_are_asked_about_by_whom_reads_everybodys_access(world: World) -> None:
    world.give("mia", "use_catalog@lake", "deny use_catalog@files")
    assert lines(holdings(world.mia, "acme", [MIA])) == {"lake": "use_catalog"}
    with pytest.raises(Forbidden):
        holdings(world.mia, "acme", [NILS])
    world.group("crew", "mia")
    with pytest.raises(Forbidden):
        holdings(world.mia, "acme", [Whom("group", "crew")])
    world.give("nils", "manage_grants@acme")
    world.give("mia", "use_schema@lake.A")
    assert lines(holdings(world.actor("nils"), "acme", [MIA])) == {"lake": "use_catalog"}, "nils may not look into lake"
    for whom, says in ((Whom("user", "mai"), "Did you mean mia?"), (Whom("group", "crwe"), "Did you mean crew?")):
        with pytest.raises(NotFound, match="does not exist") as missing:
            holdings(world.olga, "acme", [whom])
        assert says in missing.value.message
    people.remove_user(world.olga, "acme", "mia")
    with pytest.raises(NotFound):
        holdings(world.olga, "acme", [MIA])


def test_what_is_cut_is_said(world: World) -> None:
    world.give("mia", *READER, "create_table@lake.A", "modify_table@lake.A:B")
    with patch.object(module, "MOST_ROWS", 2):
        table = holdings(world.olga, "acme", [MIA])
    assert (len(table.rows), table.is_cut) == (2, True)
