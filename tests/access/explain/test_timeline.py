"""When access changed, by whom and how: between two moments nothing did; and two moments compared."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.utils import timezone

from access.explain.permissions import Redactor
from access.explain.queries import Place
from access.explain.reach import access_to
from access.explain.replay import Replay
from access.explain.timeline import EARLIEST, Moments, compared, moments
from access.explain.ways import ways_in
from access.history.past import Past
from authz.actor import Actor
from authz.models import Fact
from authz.services import grants, owners, people, roles
from catalogs.services import tables
from catalogs.table_stores import TableDraft
from metalake.errors import Forbidden, Invalid, MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.request_context import request_id
from tests.access.explain.test_reach import located_at
from tests.authz.history import FLIGHTS, History, now
from tests.authz.small_world import kind_at
from tests.iceberg_rest.world import COLUMNS
from tests.profiles import share

pytestmark = [pytest.mark.store, pytest.mark.django_db]

HISTORIES, STEPS = 3, 40
PLACES = ("lake", FLIGHTS, "lake.flights:raw")
PRIVILEGES = ("use_schema", "select_table", "select_table", "create_table")
USERS, GROUPS, ROLES = ("mia", "nils", "paul"), ("analysts", "pilots"), ("readers", "writers")
Access = dict[str, list[str]]


# Random histories


@pytest.fixture
def lively(past: History) -> History:
    """Everybody holds a role, two of them through a group, so that most changes change what somebody can use."""
    people.add_user(past.olga, "acme", "paul")
    people.add_group(past.olga, "acme", "analysts")
    people.set_group_users(past.olga, "acme", "analysts", ["mia", "nils"])
    roles.assign_roles(past.olga, "acme", "group", "analysts", ["readers"])
    roles.assign_roles(past.olga, "acme", "user", "paul", ["readers"])
    return past


def live(past: History, rng: random.Random) -> None:
    """One random change by olga, who owns the metalake; some are refused, since what they are about is not there."""
    who, group, role, where = (rng.choice(some) for some in (USERS, GROUPS, ROLES, PLACES))
    sort, name = rng.choice((("user", who), ("group", group)))
    kind = kind_at(where)
    effect = rng.choice(("allow", "deny", "deny"))
    revoked = [(privilege, effect) for privilege in PRIVILEGES]
    often: tuple[Any, ...] = (
        lambda: give(past, rng, role, where),
        lambda: give(past, rng, role, where),
        lambda: grants.revoke_privileges(past.olga, "acme", role, kind, where, revoked),
        lambda: grants.revoke_privileges(past.olga, "acme", role, kind, where, revoked),
        lambda: roles.assign_roles(past.olga, "acme", sort, name, [role]),
        lambda: roles.unassign_roles(past.olga, "acme", sort, name, [role]),
        lambda: people.set_group_users(past.olga, "acme", group, [who]),
        lambda: people.set_group_users(past.olga, "acme", group, [], [who]),
        lambda: people.add_user(past.olga, "acme", who, enabled=rng.random() < 0.8),
        lambda: people.add_group(past.olga, "acme", group),
        lambda: owners.set_owner(past.olga, "acme", kind, where, *rng.choice(((name, sort), ("olga", "user")))),
    )
    seldom: tuple[Any, ...] = (
        lambda: roles.drop_role(past.olga, "acme", role),
        lambda: people.remove_user(past.olga, "acme", who),
        lambda: people.remove_group(past.olga, "acme", group),
    )
    try:
        if role not in roles.list_roles(past.olga, "acme"):
            roles.create_role(past.olga, "acme", role)
            first = [(privilege, "allow") for privilege in ("use_catalog", "use_schema")]
            grants.grant_privileges(past.olga, "acme", role, Kind.CATALOG, "lake", first)
        rng.choice(often if rng.random() < 0.9 else seldom)()
    except MetalakeError:
        pass


def give(past: History, rng: random.Random, role: str, where: str) -> None:
    begins = timezone.now() + timedelta(hours=rng.randrange(1, 4))
    spans: tuple[tuple[datetime | None, datetime | None], ...] = (
        *((None, None),) * 3, (begins, None), (None, begins), (begins, begins + timedelta(hours=1)),
    )  # fmt: skip
    effect = "deny" if rng.random() < 0.2 else "allow"
    wanted = [(rng.choice(PRIVILEGES), effect, *rng.choice(spans))]
    grants.grant_privileges(past.olga, "acme", role, kind_at(where), where, wanted)


def state_of(top: Located, moment: datetime) -> Past:
    return Past(top, moment.timestamp(), Fact.objects.filter(at__lte=moment))


def access_at(target: Located, moment: datetime) -> Access:
    """Who reaches the object, in the past that ends at the moment."""
    past = state_of(target.top, moment)
    lineages = [row.lineage for row in past.walk(past.top) if row.id == target.id]
    if not lineages:
        return {}
    return {one.user: list(one.use.privileges) for one in access_to(past, located_at(past, lineages[0]), None, "")}


def found(past: History, where: str) -> Located:
    return past.at(None).locate(kind_at(where), where)


@pytest.mark.timeout(300)
def test_between_two_moments_who_reaches_an_object_stays_the_same(lively: History) -> None:
    """The moments of grants that begin or end later are among them, as if that time had come."""
    total = 0
    end = timezone.now() + timedelta(days=1)
    for seed in range(share(HISTORIES)):
        rng = random.Random(seed)
        begin = now()
        for _ in range(STEPS):
            live(lively, rng)
        where = PLACES[seed % len(PLACES)]
        target = found(lively, where)
        replay = Replay(Redactor(lively.olga, lively.at(None), target), begin, end, 1000)
        uses = [access_at(target, begin)]
        assert named(replay) == uses[0]
        times = [begin]
        for change in replay.changes():
            times.append(change.at)
            uses.append(named(replay))
            assert {user for user, _ in differing(*uses[-2:])} == {replay.names.users[user] for user in change.moved}
            assert change.says, change
        for number, (at, use) in enumerate(zip(times, uses, strict=True)):
            until = times[number + 1] if number + 1 < len(times) else end
            moment = at + (until - at) * rng.choice((0, rng.random()))
            assert access_at(target, moment) == use, (seed, where, number, moment)
        total += sum(before != after for before, after in pairwise(uses))
    assert total >= share(8)


def named(replay: Replay) -> Access:
    return {replay.names.users[user]: [*use] for user, use in sorted(replay.uses.items(), key=lambda one: one[0])}


def differing(before: Access, after: Access) -> set[tuple[str, bool]]:
    return {(user, True) for user in before.keys() | after.keys() if before.get(user) != after.get(user)}


@pytest.mark.timeout(300)
def test_what_was_gained_and_lost_is_what_who_reaches_says(lively: History) -> None:
    total = 0
    for seed in range(share(HISTORIES - 1)):
        rng = random.Random(f"compared {seed}")
        marks = [now()]
        for step in range(STEPS):
            live(lively, rng)
            if step % 10 == 9:
                marks.append(now())
        target = found(lively, FLIGHTS)
        for before, after in ((marks[0], marks[-1]), (marks[1], marks[2]), (marks[2], None)):
            answer = compared(lively.olga, "acme", Place(Kind.SCHEMA, FLIGHTS), before, after)
            then, later = access_at(target, before), access_at(target, after or now())
            wanted = {
                user: (
                    sorted(set(later.get(user, ())) - set(then.get(user, ()))),
                    sorted(set(then.get(user, ())) - set(later.get(user, ()))),
                )
                for user, _ in differing(then, later)
            }
            assert {one.user: (sorted(one.gained), sorted(one.lost)) for one in answer.moved} == wanted
            assert [one.user for one in answer.moved] == sorted(wanted)
            for one in answer.moved:
                assert access_at(target, one.by.at).get(one.user) == later.get(one.user)
            total += len(wanted)
    assert total >= share(3)


@pytest.mark.timeout(300)
def test_the_ways_of_the_past_say_who_reached_it(lively: History) -> None:
    """The same as who_reaches at moments of a random history; tests/access/explain/test_ways.py has the present."""
    for seed in range(share(HISTORIES - 1)):
        rng = random.Random(f"ways {seed}")
        for _ in range(STEPS // 2):
            live(lively, rng)
        moment = now()
        for where in PLACES:
            target = found(lively, where)
            access = access_at(target, moment)
            for as_of in (moment, None):
                page = ways_in(lively.olga, "acme", Place(target.kind, where), as_of, limit=1000)
                effective = [way for way in page.ways if way.verdict == "effective" and not way.is_deny and way.user]
                assert {way.user.name for way in effective if way.owner or target.kind is not Kind.METALAKE} >= set(
                    access
                )
                for user, privileges in access.items():
                    own = {way.privilege for way in effective if way.user.name == user}
                    assert None in own or own >= set(privileges)
                for way in effective:
                    if way.privilege and way.privilege != "use_catalog":
                        assert way.privilege in access[way.user.name], (where, way)


# Sentences


def asked(past: History, where: str = FLIGHTS, actor: Actor | None = None, **how: Any) -> Moments:
    return moments(actor or past.olga, "acme", Place(kind_at(where), where), **how)


def lines(answer: Moments) -> list[tuple[str, str, str, int]]:
    return [(one.event, one.actor, one.says, one.member_count) for one in answer.moments]


def test_each_moment_says_who_did_what(past: History) -> None:
    begin = now()
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    people.add_group(past.olga, "acme", "analysts")
    roles.assign_roles(past.olga, "acme", "group", "analysts", ["readers"])
    people.set_group_users(past.olga, "acme", "analysts", add=["nils"])
    past.grant("acme", "use_catalog", "deny")
    past.revoke("acme", "use_catalog", "deny")
    past.grant(FLIGHTS, "select_table")
    past.grant("lake.flights:raw", "select_table")  # below it
    owners.set_owner(past.olga, "acme", Kind.SCHEMA, FLIGHTS, "mia", "user")
    people.remove_user(past.olga, "acme", "mia")
    roles.drop_role(past.olga, "acme", "readers")
    answer = asked(past, since=begin)
    assert lines(answer)[::-1] == [
        ("role.assigned", "olga", "mia holds role readers.", 1),
        ("role.assigned", "olga", "Group analysts holds role readers.", 0),
        ("group.users_changed", "olga", "nils is in group analysts.", 1),
        ("privileges.granted", "olga", "Role readers denies use_catalog on metalake acme.", 2),
        ("privileges.revoked", "olga", "Role readers no longer denies use_catalog on metalake acme.", 2),
        ("privileges.granted", "olga", "Role readers allows select_table on schema lake.flights.", 2),
        ("owner.set", "olga", "mia owns schema lake.flights.", 1),
        (
            "user.removed",
            "olga",
            "olga owns schema lake.flights. mia no longer holds role readers. mia is no longer a member.",
            1,
        ),
        (
            "role.dropped",
            "olga",
            "Role readers was dropped.",
            1,
        ),
    ]
    assert answer.since == begin
    assert [one.at for one in answer.moments] == sorted((one.at for one in answer.moments), reverse=True)
    everything = asked(past).moments
    assert everything[: len(answer.moments)] == answer.moments
    assert everything[-1].says == "It was made."


def test_what_one_request_changes_is_one_moment(past: History) -> None:
    begin = now()
    mark = request_id.set("one request")
    for privilege in ("create_schema", "create_table", "create_view", "select_table"):
        past.grant("lake", privilege)
    request_id.reset(mark)
    past.revoke("lake", "create_view")
    (after, moment) = asked(past, since=begin).moments
    assert after.says == "Role readers no longer allows create_view on catalog lake."
    assert moment.says.endswith("allows create_view on catalog lake. And 1 more.")


def test_a_table_that_is_moved_has_the_access_of_its_new_place(past: History) -> None:
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    past.grant("lake", "select_table")
    home = Address(metalake="acme", catalog="lake", schema="flights", leaf="t")
    tables.create_table(past.olga, home, TableDraft(COLUMNS, None, None, {}))
    made = now()
    past.grant("lake.flights:raw", "select_table", "deny")
    tables.rename_table(past.olga, home, Address(metalake="acme", catalog="lake", schema="flights:raw", leaf="t"))
    (moved,) = asked(past, "lake.flights:raw.t", since=made).moments
    assert (moved.says, moved.member_count) == ("It was moved.", 1)
    (one,) = compared(past.olga, "acme", Place(Kind.TABLE, "lake.flights:raw.t"), made).moved
    assert (one.user, one.gained, one.lost, one.by) == ("mia", (), ("select_table",), moved)


def test_there_is_a_bound_and_the_moments_before_can_be_asked_for(past: History, monkeypatch: Any) -> None:
    begin = now()
    for _ in range(4):
        past.grant(FLIGHTS, "select_table")
        past.revoke(FLIGHTS, "select_table")
    whole = asked(past, since=begin).moments
    assert len(whole) == 8
    some = asked(past, since=begin, limit=3)
    assert some.moments == whole[:3] and some.since == whole[3].at
    assert asked(past, since=begin, until=some.since).moments == whole[3:]
    monkeypatch.setattr("access.explain.timeline.FACTS_A_MOMENT", 1)
    bounded = asked(past, since=begin, limit=5)
    assert bounded.moments == whole[:5] and bounded.since == whole[5].at
    monkeypatch.setattr("access.explain.timeline.MOST_READ", 5)
    with pytest.raises(Invalid, match="choose closer ones"):
        compared(past.olga, "acme", Place(Kind.SCHEMA, FLIGHTS), begin)


def test_only_who_may_read_access_there_asks(past: History) -> None:
    roles.assign_roles(past.olga, "acme", "user", "mia", ["readers"])
    mia, nils = (past.at(None).actor(name, past.olga.policy) for name in ("mia", "nils"))
    on = Place(Kind.SCHEMA, FLIGHTS)
    for ask in (lambda actor: asked(past, actor=actor), lambda actor: compared(actor, "acme", on, EARLIEST)):
        with pytest.raises(Forbidden):
            ask(mia)
        with pytest.raises(NotFound):
            ask(nils)
        assert ask(past.olga)
    for since, until in ((now(), EARLIEST), (timezone.now() + timedelta(days=1), None)):
        with pytest.raises(Invalid, match="has to come before"):
            asked(past, since=since, until=until)
        with pytest.raises(Invalid):
            compared(past.olga, "acme", on, since, until)


def test_an_object_above_that_the_reader_may_not_see_is_not_named(past: History) -> None:
    roles.create_role(past.olga, "acme", "stewards")
    for where, privilege in (("lake", "use_catalog"), ("lake.flights:raw", "manage_grants")):
        grants.grant_privileges(past.olga, "acme", "stewards", kind_at(where), where, [(privilege, "allow")])
    roles.assign_roles(past.olga, "acme", "user", "mia", ["stewards"])
    begin = now()
    past.grant(FLIGHTS, "select_table")
    mia = past.at(None).actor("mia", past.olga.policy)
    (moment,) = asked(past, "lake.flights:raw", mia, since=begin).moments
    assert moment.says == "Role readers allows select_table on an object you may not see."
