"""Findings: roles without people, grants that give nothing or end soon, owners who are gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from access.explain.findings import SHADOWED, findings
from authz import snapshot
from authz.models import Member, User
from authz.services import grants, people, roles
from metalake.errors import Forbidden, NotFound
from metalake.kinds import Kind
from tests.authz.small_world import World, kind_at

USE = ("use_catalog@lake", "use_schema@lake.A")


def idle(world: World, user: str = "olga") -> list[tuple[str, str, str, str]]:
    """Role, privilege, object and verdict of each grant that gives nothing."""
    some = findings(world.actor(user), "acme").grants.rows
    return [(one.role, one.privilege.value, ".".join(one.on.full_name), one.verdict) for one in some]


def grant(world: World, role: str, where: str, privilege: str, **span: Any) -> None:
    pair = (privilege, "allow", span.get("starts"), span.get("ends"))
    grants.grant_privileges(world.olga, "acme", role, kind_at(where), where, [pair])


@pytest.mark.store
def test_grants_that_give_nothing_are_listed_with_what_they_lack(world: World) -> None:
    good = world.give("mia", *USE, "select_table@lake.A:B.t")
    lonely = world.give("nils", "select_table@lake.A:B.t")
    shadowed = world.give("mia", "select_table@lake", "select_table@lake.A")
    beaten = world.give("mia", "modify_table@lake.A:B.t")
    world.give("mia", "deny modify_table@lake")
    assert idle(world) == [
        (good, "select_table", "lake.A:B.t", SHADOWED),
        (lonely, "select_table", "lake.A:B.t", "broken"),
        (shadowed, "select_table", "lake.A", SHADOWED),
        (beaten, "modify_table", "lake.A:B.t", "beaten"),
    ]
    rows = {one.role: one for one in findings(world.olga, "acme").grants.rows}
    assert rows[shadowed].says == f"role {shadowed} allows select_table on catalog lake"
    assert "denies modify_table on catalog lake" in rows[beaten].says
    assert [one.privilege.value for one in rows[lonely].missing] == ["use_catalog", "use_schema"]
    assert rows[lonely].holder == ("user", "nils")


def test_a_grant_that_helps_one_holder_is_none_of_them(world: World) -> None:
    """Also on a container that its holder opens only in part, and for a group."""
    both = world.give("nils", "select_table@lake.A")
    roles.assign_roles(world.olga, "acme", "user", "mia", [both])
    world.group("crew", "mia")
    assert idle(world) == [(both, "select_table", "lake.A", "broken")]
    opens = world.give("mia", "use_catalog@lake", "use_schema@lake.A:B")
    assert idle(world) == []
    grants.revoke_privileges(world.olga, "acme", opens, Kind.CATALOG, "lake", [("use_catalog", "allow")])
    grants.revoke_privileges(world.olga, "acme", opens, Kind.SCHEMA, "lake.A:B", [("use_schema", "allow")])
    roles.create_role(world.olga, "acme", "of_crew")
    for where, privilege in (("lake", "use_catalog"), ("lake", "use_schema")):
        grant(world, "of_crew", where, privilege)
    roles.assign_roles(world.olga, "acme", "group", "crew", ["of_crew"])
    assert idle(world) == []


def test_a_timed_grant_shadows_nothing_and_a_later_one_is_no_finding(world: World) -> None:
    role = world.give("mia", *USE, "select_table@lake.A:B.t")
    now = timezone.now()
    grant(world, role, "lake", "select_table", ends=now + timedelta(days=3))
    grant(world, role, "lake", "modify_table", starts=now + timedelta(days=1))
    assert idle(world) == []


def test_roles_without_people_owners_who_are_gone_and_what_ends_soon(world: World) -> None:
    roles.create_role(world.olga, "acme", "empty")
    roles.create_role(world.olga, "acme", "of_nobody")
    world.group("ghosts")
    roles.assign_roles(world.olga, "acme", "group", "ghosts", ["of_nobody"])
    role, now = world.give("mia", *USE), timezone.now()
    for days in (13, 15):
        grant(world, role, "lake.A:B", "select_table" if days == 13 else "modify_table", ends=now + timedelta(days))
    world.own("nils", world.ab)
    Member.objects.filter(user=world.users["nils"]).update(enabled=False)
    snapshot.forget()  # that row was no change of rights
    world.own("sam", world.t)
    seen = findings(world.olga, "acme")
    assert [(one.name, one.groups) for one in seen.roles.rows] == [("empty", ()), ("of_nobody", ("ghosts",))]
    assert [(one.of.role, one.of.privileges, one.of.on.id) for one in seen.ending.rows] == [
        (role, ("select_table",), world.ab.id)
    ]
    assert [(one.on.id, one.owner, one.sort) for one in seen.owners.rows] == [
        (world.ab.id, "nils", "user"),
        (world.t.id, "sam", "user"),
    ]
    assert seen.count == 5 and not seen.is_cut


def test_only_who_reads_everybodys_access_gets_them_and_not_of_what_is_taken_from_them(world: World) -> None:
    with pytest.raises(Forbidden):
        findings(world.mia, "acme")
    with pytest.raises(NotFound):
        findings(world.actor("sam"), "acme")
    world.give("mia", "manage_grants@acme", "deny manage_grants@lake.A")
    high, low = world.give("nils", "select_table@lake"), world.give("nils", "select_table@lake.A")
    assert {role for role, *_ in idle(world)} == {high, low}
    assert {role for role, *_ in idle(world, "mia")} == {high}


def test_statements_are_as_many_for_more_and_too_many_are_cut(
    world: World, django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(6):
        world.give("nils", "select_table@lake.A:B.t", f"{'modify' if n % 2 else 'select'}_table@lake.A")
        people.add_user(world.olga, "acme", User.objects.create_user(f"p{n}").username)
        olga = world.olga
        if n in (0, 5):
            with django_assert_num_queries(6):
                assert len(findings(olga, "acme").grants) == 2 * (n + 1)
    monkeypatch.setattr("access.explain.findings.MOST_READ", 3)
    cut = findings(world.olga, "acme")
    assert cut.is_cut and len(cut.grants) == 3
