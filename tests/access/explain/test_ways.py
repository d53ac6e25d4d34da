"""The ways to an object: complete, in order, and effective just where the evaluator says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from access.explain.permissions import Redactor
from access.explain.queries import Place, Whom
from access.explain.reach import access_to
from access.explain.verdicts import Verdict
from access.explain.ways import ALL, AccessPath, AccessPathsPage, Narrowed, Row, Rows, every_way, holders_in, ways_in
from access.history.current import Now
from authz import policy
from authz.actor import Actor
from authz.services import grants, people, roles
from metalake.errors import Invalid, NotFound
from metalake.kinds import Kind, grantable_on
from metalake.levels import Level
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege
from tests.access.explain.test_reach import lines_of, stored_worlds
from tests.authz import model
from tests.authz.history import FLIGHTS, History, now
from tests.authz.small_world import World, at, kind_at
from tests.authz.stored import Stored
from tests.authz.worlds import LAST_MOMENT
from tests.profiles import share

pytestmark = [pytest.mark.store, pytest.mark.django_db]

WORLDS = 60
TABLE = "lake.A:B.t"


# Random worlds


def rows_of(stored: Stored, line: Located, moment: float, narrowed: Narrowed = ALL) -> Rows:
    top = Located(nodes=line.nodes[:1])
    asker = Actor(0, "nobody", stored.policy)
    return Rows(Redactor(asker, Now(top), line), stored.policy, moment, narrowed, None)


def is_yes(row: Row, privilege: Privilege) -> bool:
    return row.grant is None or (row.grant.effect is Effect.ALLOW and row.grant.privilege is privilege)


def usable_at(who: Actor, line: Located) -> set[Privilege]:
    return set(policy.usable(policy.rights_on(who, line), line.kind))


def cases(every: int) -> Iterator[tuple[Stored, int, Any, Located, float]]:
    """Objects of random worlds, at the moment 0 and at a later one."""
    for stored, place, world in stored_worlds(share(WORLDS), every=every):
        for number, line in enumerate(lines_of(stored, place, world)[::3]):
            for moment in {0, number % (LAST_MOMENT + 1)}:
                yield stored, place, world, line, stored.at(moment)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("by", ["user", "group", "role"])
def test_a_privilege_can_be_used_if_and_only_if_a_way_is_effective(by: str) -> None:
    """A group or a role counts as a member who holds just that."""
    yes = no = 0
    for stored, place, _, line, moment in cases(5 if by == "user" else 10):
        rows = rows_of(stored, line, moment, Narrowed(by=by))
        judged = list(rows.judged(None))
        for who in rows.listed:
            own = [(row, judgement.verdict) for row, judgement in judged if row.who.name == who.name]
            effective = {row for row, verdict in own if verdict is Verdict.EFFECTIVE}
            usable = usable_at(who, line)
            for privilege in Privilege:
                if line.kind in grantable_on(privilege):
                    by_ways = any(is_yes(row, privilege) for row in effective)
                    assert by_ways == (privilege in usable), (place, line.full_name, who.name, privilege)
                    yes, no = yes + by_ways, no + (not by_ways)
    assert min(yes, no) > share(150)


def expected(stored: Stored, place: int, world: model.World, line: Located, moment: int) -> set[tuple]:
    """The ways of members by ids, as the model has them: privilege, effect, user, group, role, on."""
    ids = {stored.id(place, obj): obj for obj in world.objects}
    scopes, top = [ids[node.id] for node in line.nodes], ids[line.nodes[0].id]
    members = {user for metalake, user in world.members if metalake == top}
    ways: set[tuple] = set()
    for grant in world.grants:
        reaches = line.kind in grantable_on(Privilege(grant.privilege)) or grant.privilege in (
            "use_catalog",
            "use_schema",
        )
        if grant.obj not in scopes or not reaches or grant.has_ended(moment):
            continue
        for holder in (holder for role, holder in world.assignments if role == grant.role):
            inside = {holder.id} if holder.kind == "user" else world.groups[holder.id].members
            for user in inside & members:
                group = holder.id if holder.kind == "group" else None
                ways.add((grant.privilege, grant.effect, user, group, grant.role, grant.obj))
    for scope in scopes:
        owner = world.objects[scope].owner
        group = owner.id if owner.kind == "group" else None
        for user in ({owner.id} if group is None else world.groups[group].members) & members:
            ways.add((None, "allow", user, group, None, scope))
    return ways


def test_the_ways_are_all_there_are_in_their_order() -> None:
    total = 0
    for stored, place, world in stored_worlds(share(WORLDS), every=5):
        for number, line in enumerate(lines_of(stored, place, world)[::4]):
            moment = number % (LAST_MOMENT + 1)
            rows = [row for row, _ in rows_of(stored, line, stored.at(moment)).judged(None)]
            local = {stored.id(place, id): id for id in (*world.objects, *world.groups, *world.users)}
            listed = {
                (
                    row.grant.privilege.value if row.grant else None,
                    row.grant.effect.value if row.grant else "allow",
                    local[row.who.id],
                    row.group_id and local[row.group_id],
                    row.grant and local[row.grant.role_id],
                    local[line.nodes[row.depth].id],
                )
                for row in rows
            }
            assert listed == expected(stored, place, world, line, moment), (place, line.full_name)
            assert [row.key for row in rows] == sorted({row.key for row in rows})
            total += len(rows)
    assert total > share(300)


# A small world


@pytest.fixture
def crowd(world: World) -> World:
    """mia may select in a schema that she may not use; nils is denied it through a group, and group analysts too."""
    world.group("analysts", "nils", "mia")
    for role, where, *pairs in (
        ("reading", "lake", ("use_catalog", "allow"), ("select_table", "allow")),
        ("using", "lake.A", ("use_schema", "allow")),
        ("refused", TABLE, ("select_table", "deny")),
        ("nobodys", TABLE, ("modify_table", "allow")),
    ):
        roles.create_role(world.olga, "acme", role)
        grants.grant_privileges(world.olga, "acme", role, kind_at(where), where, pairs)
    for holder, name, role in (
        ("user", "mia", "reading"),
        ("group", "analysts", "reading"),
        ("user", "nils", "using"),
        ("user", "nils", "refused"),
    ):
        roles.assign_roles(world.olga, "acme", holder, name, [role])
    return world


def seen(actor: Actor, where: str = TABLE, **narrowed: Any) -> AccessPathsPage:
    return ways_in(actor, "acme", Place(kind_at(where), where), narrowed=Narrowed(**narrowed))


def line(way: AccessPath) -> tuple[Any, ...]:
    who, through, role = (named and named.name for named in (way.user, way.group, way.role))
    return (
        who,
        through,
        role,
        way.effect.value,
        way.privilege and way.privilege.value,
        way.on and way.on.name,
        way.verdict.value,
    )


def test_denies_come_first_then_owners_and_what_is_in_the_way_is_named(crowd: World) -> None:
    page = seen(crowd.olga)
    assert [line(way) for way in page.ways] == [
        ("nils", None, "refused", "deny", "select_table", "t", "effective"),
        *(("olga", None, None, "allow", None, name, "effective") for name in ("t", "B", "A", "lake", "acme")),
        ("mia", None, "reading", "allow", "select_table", "lake", "broken"),
        ("mia", "analysts", "reading", "allow", "select_table", "lake", "broken"),
        ("nils", "analysts", "reading", "allow", "select_table", "lake", "beaten"),
        ("mia", None, "reading", "allow", "use_catalog", "lake", "effective"),
        ("mia", "analysts", "reading", "allow", "use_catalog", "lake", "effective"),
        ("nils", "analysts", "reading", "allow", "use_catalog", "lake", "effective"),
        ("nils", None, "using", "allow", "use_schema", "A", "effective"),
    ]
    assert (page.total, page.at_least, page.next, page.is_complete) == (13, False, "", True)
    broken, beaten = page.ways[6], page.ways[8]
    assert broken.says == "select_table, but no use_schema on schema lake.A:B"
    assert [(one.privilege, one.on and one.on.name, one.is_denied) for one in broken.missing] == [
        (Privilege.USE_SCHEMA, "B", False)
    ]
    assert beaten.says == f"Beaten: role refused denies select_table on table {TABLE}."
    granted = page.ways[0]
    assert granted.grantor == "olga" and granted.granted_at and granted.is_deny and granted.is_direct
    assert page.ways[1].owner and not page.ways[1].grantor


def test_a_denied_traversal_breaks_the_chain_where_it_is_denied(crowd: World) -> None:
    crowd.give("nils", "deny use_schema@lake")
    crowd.give("nils", "modify_table@lake")
    (way,) = seen(crowd.olga, whom=Whom("user", "nils"), privilege=Privilege.MODIFY_TABLE).ways
    assert way.says == "modify_table, but role r1 denies use_schema on catalog lake"
    assert [(one.privilege, one.on and one.on.name, one.is_denied) for one in way.missing] == [
        (Privilege.USE_SCHEMA, "lake", True)
    ]
    crowd.own("nils", crowd.t)
    (owned,) = [way for way in seen(crowd.olga, whom=Whom("user", "nils")).ways if way.owner]
    assert owned.verdict is Verdict.BROKEN
    assert owned.says == f"owner of table {TABLE}, but role r1 denies use_schema on catalog lake"


def test_a_list_is_narrowed(crowd: World) -> None:
    whole = seen(crowd.olga).ways

    def narrowed(**how: Any) -> list[AccessPath]:
        return seen(crowd.olga, **how).ways

    assert narrowed(effect=Effect.DENY) == whole[:1]
    assert narrowed(effect=Effect.ALLOW) == whole[1:]
    assert narrowed(privilege=Privilege.SELECT_TABLE) == [
        way for way in whole if way.privilege in (None, "select_table")
    ]
    assert narrowed(show="direct") == [way for way in whole if way.on and way.on.name == "t"]
    assert narrowed(show="inherited") == [way for way in whole if way.on and way.on.name != "t"]
    assert narrowed(show="effective") == [way for way in whole if way.verdict == "effective"]
    assert narrowed(whom=Whom("user", "mia")) == [way for way in whole if way.user and way.user.name == "mia"]
    assert narrowed(whom=Whom("group", "analysts")) == [way for way in whole if way.group]
    assert narrowed(whom=Whom("role", "using")) == whole[-1:]
    assert narrowed(q="NALY") == [way for way in whole if way.group]
    assert narrowed(whom=Whom("user", "no one")) == []


def test_groups_and_roles_are_listed_once_with_how_many_have_it(crowd: World) -> None:
    by_group = seen(crowd.olga, by="group")
    assert [(line(way)[1:5], way.verdict, way.member_count) for way in by_group.ways] == [
        (("analysts", "reading", "allow", "select_table"), "broken", 2),
        (("analysts", "reading", "allow", "use_catalog"), "effective", 2),
    ]
    assert by_group.ways[0].says == "held alone: select_table, but no use_schema on schema lake.A:B"
    by_role = seen(crowd.olga, by="role")
    assert [(line(way)[2:5], way.member_count) for way in by_role.ways] == [
        (("refused", "deny", "select_table"), 1),
        (("nobodys", "allow", "modify_table"), 0),
        (("reading", "allow", "select_table"), 2),
        (("reading", "allow", "use_catalog"), 2),
        (("using", "allow", "use_schema"), 1),
    ]


def test_pages_of_any_size_make_the_list(crowd: World) -> None:
    whole = seen(crowd.olga).ways
    assert list(every_way(crowd.olga, "acme", Place(Kind.TABLE, TABLE))) == whole
    for limit in (1, 2, 5, 12, 13):
        pieces, after = [], ""
        while True:
            page = ways_in(crowd.olga, "acme", Place(Kind.TABLE, TABLE), after=after, limit=limit)
            assert page.total == len(whole) and len(page.ways) <= limit
            pieces += page.ways
            after = page.next
            if not after:
                break
        assert pieces == whole


def test_others_are_shown_their_own_ways_alone(crowd: World) -> None:
    crowd.give("mia", "use_schema@lake")
    page = seen(crowd.mia)
    assert not page.is_complete
    assert {way.user and way.user.name for way in page.ways} == {"mia"}
    assert page.ways == [way for way in seen(crowd.olga).ways if way.user and way.user.name == "mia"]
    assert [line(way)[1] for way in seen(crowd.mia, by="group").ways] == ["analysts", "analysts"]
    by_role = seen(crowd.mia, by="role")
    assert {line(way)[2] for way in by_role.ways} == {"reading", "r1"}
    assert {way.member_count for way in by_role.ways} == {None}
    for actor in (crowd.actor("sam"), crowd.actor("nils")):  # one is no member, one may not load the table
        with pytest.raises(NotFound):
            seen(actor)
        with pytest.raises(NotFound):
            every_way(actor, "acme", Place(Kind.TABLE, TABLE))


def test_who_may_grant_or_owns_is_shown_everybody_s_from_there_down(crowd: World) -> None:
    crowd.give("mia", "use_schema@lake", "manage_grants@lake.A:B")
    crowd.give("nils", "use_schema@lake")
    crowd.own("nils", crowd.a)
    for actor, complete in ((crowd.mia, {"lake.A:B", TABLE}), (crowd.actor("nils"), {"lake.A", "lake.A:B", TABLE})):
        for where in ("acme", "lake", "lake.A", "lake.A:B", TABLE):
            assert seen(actor, where).is_complete == (where in complete), where


def test_the_caller_s_narrowed_roles_narrow_their_own_allows(crowd: World) -> None:
    crowd.give("mia", "use_schema@lake")
    roles_by_name = {name: id for id, name in Now(at(crowd)).roles().items()}
    narrowed = replace(crowd.mia, active=(roles_by_name["reading"],))
    assert {line(way)[2] for way in seen(crowd.mia, "lake").ways} == {"reading", "r1"}
    assert {line(way)[2] for way in seen(narrowed, "lake").ways} == {"reading"}


def test_an_ancestor_that_the_reader_may_not_see_is_not_named(crowd: World) -> None:
    """Who grants on a schema without using one sees the catalog, and neither the schema above nor what is in it."""
    crowd.give("mia", "manage_grants@lake.A:B")
    page = seen(crowd.mia, "lake.A:B")
    assert page.is_complete
    on = {line(way)[:3]: way.on and way.on.name for way in page.ways if way.role}
    assert on["nils", None, "using"] is None
    assert on["mia", None, "reading"] == "lake"
    assert on["mia", None, "r1"] == "B"


def test_grants_that_begin_later_are_ways_of_later(crowd: World) -> None:
    soon = timezone.now() + timedelta(days=1)
    roles.create_role(crowd.olga, "acme", "soon")
    grants.grant_privileges(crowd.olga, "acme", "soon", Kind.TABLE, TABLE, [("modify_table", "allow", soon, None)])
    roles.assign_roles(crowd.olga, "acme", "user", "mia", ["soon"])
    (way,) = seen(crowd.olga, privilege=Privilege.MODIFY_TABLE, whom=Whom("user", "mia")).ways
    assert (way.verdict, way.starts_at) == (Verdict.LATER, soon)
    assert way.says == f"Begins on {soon:%Y-%m-%d %H:%M} UTC."


def test_what_is_asked_badly_is_refused(crowd: World) -> None:
    for how, says in (
        ({"by": "planet"}, "Ways are listed by user, group, role, not by planet."),
        ({"show": "all"}, "Ways are narrowed to effective, direct, inherited, not to all."),
        ({"by": "role", "whom": Whom("group", "analysts")}, "list by group"),
    ):
        with pytest.raises(Invalid, match=says):
            seen(crowd.olga, **how)
    for after in ("x", "[1]", "{}", '[9,"a","b","c","d",1]', '[1,"a","b","c",4,1]', "1", '[1,"a","b","c","d","e"]'):
        with pytest.raises(Invalid, match="begin again"):
            ways_in(crowd.olga, "acme", Place(Kind.TABLE, TABLE), after=after)
    with pytest.raises(Invalid):
        ways_in(crowd.olga, "acme", Place(Kind.ROLE, "using"))


def test_many_ways_are_counted_up_to_a_bound(crowd: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("access.explain.ways.MOST_COUNTED", 4)
    page = ways_in(crowd.olga, "acme", Place(Kind.TABLE, TABLE), limit=3)
    assert (page.total, page.at_least, len(page.ways)) == (4, True, 3)


# The past


def test_the_past_has_its_ways(past: History) -> None:
    people.add_group(past.olga, "acme", "analysts")
    people.set_group_users(past.olga, "acme", "analysts", add=["nils"])
    roles.assign_roles(past.olga, "acme", "group", "analysts", ["readers"])
    moment = now()
    past.revoke(FLIGHTS, "use_schema")
    people.remove_group(past.olga, "acme", "analysts")
    past.grant("acme", "use_schema", "deny")
    on = Place(Kind.SCHEMA, FLIGHTS)
    then = ways_in(past.olga, "acme", on, moment)
    assert [line(way)[:5] for way in then.ways if not way.owner] == [
        ("nils", "analysts", "readers", "allow", "use_catalog"),
        ("nils", "analysts", "readers", "allow", "use_schema"),
    ]
    assert {way.grantor for way in then.ways if not way.owner} == {"olga"}
    today = ways_in(past.olga, "acme", on)
    assert [line(way)[0] for way in today.ways] == ["olga"] * 3
    access = {one.user for one in access_to(past.at(moment), past.at(moment).locate(*on), None, "")}
    assert access == {"olga", "nils"}


# By whom


@pytest.mark.parametrize("by", ["user", "group", "role"])
def test_the_ways_of_each_are_all_ways(world: World, by: str) -> None:
    """In pages of one, however they are narrowed."""
    world.give("mia", "select_table@lake", "deny select_table@lake.A")
    world.give("nils", "use_catalog@lake", "use_schema@lake", "select_table@lake", "manage_grants@lake.A")
    world.group("crew", "mia", "nils")
    roles.assign_roles(world.olga, "acme", "group", "crew", ["r2"])
    table = Place(Kind.TABLE, TABLE)
    for narrowed in (ALL, Narrowed(show="effective"), Narrowed(privilege=Privilege.SELECT_TABLE), Narrowed(q="MI")):
        narrowed = narrowed._replace(by=by)
        every = list(every_way(world.olga, "acme", table, narrowed=narrowed))
        after, seen = "", list[AccessPath]()
        while True:
            page = holders_in(world.olga, "acme", table, narrowed=narrowed, after=after, limit=1)
            seen += [way for holder in page.holders for way in holder.ways]
            assert all(holder.way_count == len(holder.ways) for holder in page.holders)
            if not page.next:
                break
            after = page.next
        key = lambda way: repr(way)  # noqa: E731
        assert sorted(map(key, seen)) == sorted(map(key, every)), narrowed
        assert page.total == len({getattr(way, by) for way in every})
    few = holders_in(world.olga, "acme", table, narrowed=Narrowed(by=by), most_ways=1)
    assert all(len(holder.ways) == 1 for holder in few.holders) and any(one.way_count > 1 for one in few.holders)


def test_who_can_read_change_and_grant(world: World) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake", "select_table@lake")
    world.give("nils", "use_catalog@lake", "use_schema@lake", "modify_table@lake", "manage_grants@lake.A")
    world.group("crew", "mia")
    roles.assign_roles(world.olga, "acme", "group", "crew", ["r1"])

    def names(level: Level, by: str = "user") -> list[str]:
        page = holders_in(world.olga, "acme", Place(Kind.TABLE, TABLE), narrowed=Narrowed(by=by, level=level))
        return [holder.whom.name for holder in page.holders]

    assert names(Level.READER) == ["mia", "nils", "olga"], "whoever modifies a table may load it"
    assert names(Level.WRITER) == names(Level.MANAGER) == ["nils", "olga"]
    assert (names(Level.READER, "group"), names(Level.READER, "role")) == (["crew"], ["r1", "r2"])
    world.give("mia", "deny use_schema@lake.A")
    assert names(Level.READER) == ["nils", "olga"]
    mia = holders_in(world.mia, "acme", Place(Kind.CATALOG, "lake"))
    assert [holder.whom.name for holder in mia.holders] == ["mia"] and not mia.is_complete
