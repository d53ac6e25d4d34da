"""Reading the grants on an object: which rows, for whom, with which verdict, at what cost."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from authz.access import inspect
from authz.access.inspect import GrantsSeen, grants_on
from authz.actor import Actor
from authz.objects import find_object
from authz.services import roles
from metalake.kinds import Kind
from metalake.privileges import Privilege
from tests.authz.small_world import World, kind_at


def seen(actor: Actor, where: str) -> GrantsSeen:
    kind = kind_at(where)
    return grants_on(actor, find_object("acme", kind, where))


def lines(actor: Actor, where: str) -> list[tuple[str, str, str, str]]:
    return [(grant.effect, grant.privilege, grant.role, grant.on.name) for grant in seen(actor, where).grants]


def verdicts(actor: Actor, where: str) -> dict[tuple[str, str], str]:
    return {(grant.role, grant.effect): grant.verdict for grant in seen(actor, where).grants if grant.verdict}


def test_an_object_has_its_own_grants_and_those_from_above(world: World) -> None:
    role = world.give("mia", "use_catalog@lake", "select_table@lake.A:B", "select_table@lake.A:B.t")
    assert lines(world.olga, "lake.A:B.t") == [
        ("allow", "select_table", role, "t"),
        ("allow", "select_table", role, "B"),
        ("allow", "use_catalog", role, "lake"),
    ]
    assert lines(world.olga, "lake.A") == [("allow", "use_catalog", role, "lake")], "nothing from below"
    assert seen(world.olga, "lake.A:B").direct_count == 1


@pytest.mark.store
def test_who_may_grant_or_owns_reads_all_and_others_their_own_roles(world: World) -> None:
    mine = world.give("mia", "use_catalog@lake", "use_schema@lake.A")
    others = world.give("nils", "use_catalog@lake", "use_schema@lake.A")
    for actor, is_complete, expected in [
        (world.olga, True, {mine, others}),
        (world.mia, False, {mine}),
        (world.actor("sam"), False, set()),
    ]:
        found = seen(actor, "lake.A")
        assert found.is_complete is is_complete
        assert {grant.role for grant in found.grants} == expected
        assert all((grant.holders is not None) == is_complete for grant in found.grants)
    world.give("mia", "manage_grants@lake.A")
    assert seen(world.mia, "lake.A").is_complete
    assert seen(world.mia, "lake.A:B").is_complete
    assert not seen(world.mia, "lake").is_complete
    world.own("nils", world.ab)
    assert seen(world.actor("nils"), "lake.A:B").is_complete
    assert not seen(world.actor("nils"), "lake.A").is_complete


def test_holders_are_counted_and_the_first_few_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "SHOWN_HOLDERS", 1)
    role = world.give("mia", "use_catalog@lake")
    nobody = "nobody"
    roles.create_role(world.olga, "acme", nobody)
    roles.assign_roles(world.olga, "acme", "user", "nils", [role])
    for group, members in (("g1", ["mia", "nils"]), ("g2", [])):
        world.group(group, *members)
        roles.assign_roles(world.olga, "acme", "group", group, [role])
    (grant,) = seen(world.olga, "lake").grants
    assert grant.holders == inspect.Holders(("mia",), 2, (("g1", 2),), 2)
    assert (grant.holders.more_users, grant.holders.more_groups) == (1, 1)


def test_a_verdict_only_where_both_effects_meet(world: World) -> None:
    allowed = world.give("mia", "select_table@lake.A:B")
    assert verdicts(world.olga, "lake.A:B.t") == {}
    denied = world.give("mia", "deny select_table@lake", "deny modify_table@lake")
    assert verdicts(world.olga, "lake.A:B.t") == {
        (allowed, "allow"): f"Gives nothing to whoever also holds {denied}: DENY wins.",
        (denied, "deny"): f"Wins over ALLOW in {allowed} for whoever holds both roles.",
    }
    assert verdicts(world.olga, "lake.A") == {}, "the ALLOW stands below"


def test_a_role_can_deny_itself(world: World) -> None:
    both = world.give("mia", "deny select_table@lake", "select_table@lake.A")
    assert verdicts(world.olga, "lake.A") == {
        (both, "allow"): "Gives nothing: this role's own DENY on catalog lake wins.",
        (both, "deny"): "Wins over this role's own ALLOW on schema A.",
    }


def test_what_is_cut_off_is_never_a_deny(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        world.give("mia", "use_catalog@lake")
    denied = world.give("mia", "deny use_catalog@lake")
    monkeypatch.setattr(inspect, "MAX_GRANTS", 2)
    found = seen(world.olga, "lake")
    assert found.is_cut
    assert [grant.role for grant in found.grants if grant.is_deny] == [denied]
    assert all(grant.verdict for grant in found.grants)


def test_the_standing_is_what_the_evaluator_says(world: World) -> None:
    world.give("mia", "use_catalog@lake", "select_table@lake", "modify_table@lake", "deny modify_table@lake.A")
    where = find_object("acme", Kind.TABLE, "lake.A:B.t")
    assert inspect.standing(world.mia, where) == inspect.Standing(None, (Privilege.SELECT_TABLE,))
    assert inspect.standing(world.actor("sam"), where) == inspect.Standing(None, ())
    owns = inspect.standing(world.olga, where).owns
    assert owns is not None
    assert owns.name == "acme", "the topmost"


def test_it_costs_three_statements_however_much_there_is(world: World) -> None:
    for name in ("mia", "nils") * 5:
        world.give(name, "use_catalog@lake", "use_schema@lake.A", "select_table@lake.A:B.t")
    where, olga = find_object("acme", Kind.TABLE, "lake.A:B.t"), world.olga
    with CaptureQueriesContext(connection) as statements:
        assert len(grants_on(olga, where).grants) == 30
    assert len(statements) == 3
    with CaptureQueriesContext(connection) as statements:
        assert len(grants_on(world.mia, where).grants) == 15
    assert len(statements) <= 2, "the policy's epoch and the grants"
