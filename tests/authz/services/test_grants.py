"""Granting and revoking: what may be granted where, by whom, and what stands in the way."""

from __future__ import annotations

from typing import Any

import pytest

from authz import services, snapshot
from authz.actor import Actor
from authz.models import Grant, Group, Member, PolicyChange, Role
from authz.services import grants, roles
from authz.services.grant_entries import Given
from authz.transactions import write
from metalake.errors import Forbidden, Invalid, NotFound
from metalake.kinds import Kind, grantable_on
from metalake.privileges import Effect, Privilege
from tests.authz.small_world import Wire, World, ask, kind_at
from tests.cases import each


@pytest.fixture
def role(world: World) -> str:
    roles.create_role(world.olga, "acme", "role")
    return "role"


def grant(actor: Actor, role: str, *texts: str, act: Any = grants.grant_privileges) -> roles.RoleRecord:
    """grant(actor, "role", "allow use_schema@lake.A"); all on one object."""
    where = texts[0].partition("@")[2]
    pairs = [(text.partition("@")[0].partition(" ")[2], text.partition(" ")[0]) for text in texts]
    return act(actor, "acme", role, kind_at(where), where, pairs)


def revoke(actor: Actor, role: str, *texts: str) -> roles.RoleRecord:
    return grant(actor, role, *texts, act=grants.revoke_privileges)


def test_a_grant_is_kept_shown_and_audited(world: World, role: str) -> None:
    shown = grant(world.olga, role, "allow use_schema@lake.A", "deny create_table@lake.A")
    assert [(on.kind, on.full_name) for on in shown.grants] == [(Kind.SCHEMA, "lake.A")]
    assert world.role(role) == {"lake.A": ["allow use_schema", "deny create_table"]}
    (entry,) = world.events("privileges.granted")
    assert (entry.actor, entry.kind, entry.object_id, entry.full_name) == ("olga", "schema", world.a.id, "lake.A")
    assert entry.details == {"role": "role", "privileges": ["allow use_schema", "deny create_table"]}


def test_a_grant_works_from_the_next_request_and_ends_with_its_revocation(world: World, role: str) -> None:
    roles.assign_roles(world.olga, "acme", "user", "mia", [role])
    bit = Privilege.USE_SCHEMA.bit
    lineage = world.t.lineage_ids
    grant(world.olga, role, "allow use_schema@lake.A")
    assert world.mia.mask(lineage) == bit
    revoke(world.olga, role, "allow use_schema@lake.A")
    assert world.mia.mask(lineage) == 0
    assert not Grant.objects.exists()


def test_what_is_held_already_is_passed_over(world: World, role: str) -> None:
    grant(world.olga, role, "allow use_schema@lake.A")
    epochs = PolicyChange.objects.count()
    grant(world.olga, role, "allow use_schema@lake.A")
    assert PolicyChange.objects.count() == epochs and len(world.events("privileges.granted")) == 1
    grant(world.olga, role, "allow use_schema@lake.A", "allow create_table@lake.A")
    assert world.events("privileges.granted")[-1].details["privileges"] == ["allow create_table"]


def test_what_is_not_held_is_passed_over_when_revoking(world: World, role: str) -> None:
    grant(world.olga, role, "allow use_schema@lake.A")
    revoke(world.olga, role, "deny use_schema@lake.A", "allow create_table@lake.A")
    assert world.role(role) == {"lake.A": ["allow use_schema"]}
    assert world.events("privileges.revoked") == []


@pytest.mark.parametrize(("first", "then"), [("allow", "deny"), ("deny", "allow")])
def test_the_opposite_is_revoked_first(world: World, role: str, first: str, then: str) -> None:
    grant(world.olga, role, f"{first} use_schema@lake.A")
    with pytest.raises(Invalid) as refused:
        grant(world.olga, role, "allow create_table@lake.A", f"{then} use_schema@lake.A")
    assert refused.value.kind == "privilege" and "revoke" in refused.value.message
    assert world.role(role) == {"lake.A": [f"{first} use_schema"]}
    grant(world.olga, role, f"{then} use_schema@lake.A:B")
    revoke(world.olga, role, f"{first} use_schema@lake.A")
    grant(world.olga, role, f"{then} use_schema@lake.A")


@each(
    "texts",
    [
        ["allow fly@lake"],
        ["maybe use_catalog@lake"],
        ["allow use_catalog@lake", "allow use_catalog@lake"],
        ["allow use_catalog@lake", "deny USE_CATALOG@lake"],
        ["allow create_model@acme", "allow register_model@acme"],
        ["allow create_catalog@lake"],
        ["allow use_catalog@lake.A"],
        ["allow create_table@lake.A:B.t"],
        ["allow select_view@lake.A:B.t"],
        ["allow read_fileset@lake"],
        ["allow use_model@lake.A"],
        ["allow select_table@files"],
    ],
)
def test_privileges_that_make_no_sense_there(world: World, role: str, texts: list[str]) -> None:
    with pytest.raises(Invalid) as illegal:
        grant(world.olga, role, *texts)
    assert illegal.value.kind == "privilege"
    assert world.role(role) == {}


def test_nothing_is_granted_on_roles_and_columns(world: World, role: str) -> None:
    for kind, name in ((Kind.ROLE, "role"), (Kind.COLUMN, "lake.A:B.t.c"), (Kind.TABLE, "lake.A:B.t")):
        with pytest.raises(Invalid):
            grants.grant_privileges(world.olga, "acme", role, kind, name, [("use_catalog", "allow")])
    with pytest.raises(Invalid):
        grants.grant_privileges(world.olga, "acme", role, Kind.CATALOG, "lake", [])


def test_every_privilege_can_be_granted_where_it_binds(world: World, role: str) -> None:
    at = {Kind.METALAKE: "acme", Kind.CATALOG: "lake", Kind.SCHEMA: "lake.A", Kind.TABLE: "lake.A:B.t"}
    for kind, name in at.items():
        fitting = [p for p in Privilege if kind in grantable_on(p)]
        relational = [p for p in fitting if kind is Kind.METALAKE or not _is_foreign(p)]
        grants.grant_privileges(world.olga, "acme", role, kind, name, [(p, "allow") for p in relational])
        assert len(world.role(role)[name]) == len(relational) > 2


def _is_foreign(privilege: Privilege) -> bool:
    return bool({"topic", "fileset", "model"} & set(privilege.split("_")))


def test_a_missing_object_or_role_is_said_by_its_kind(world: World, role: str) -> None:
    for where in ("nothing", "lake.X", "lake.A:X", "lake.X.t", "lake.A:B.x", "lake.A.t"):
        with pytest.raises(NotFound) as miss:
            grant(world.olga, role, f"allow manage_grants@{where}")
        word = kind_at(where).capitalize()
        assert (miss.value.kind, miss.value.message) == ("object", f"{word} {where} does not exist.")
    with pytest.raises(NotFound) as miss:
        grants.grant_privileges(world.olga, "acme", role, Kind.TOPIC, "lake.A.t", [("consume_topic", "allow")])
    assert miss.value.kind == "object"
    with pytest.raises(NotFound) as norole:
        grant(world.olga, "nothing", "allow use_schema@lake.A")
    assert norole.value.kind == "role"
    for where in ("lake.A.t.c.d", "lake..t"):
        with pytest.raises(Invalid) as illegal:
            grants.grant_privileges(world.olga, "acme", role, Kind.TABLE, where, [("select_table", "allow")])
        assert illegal.value.kind == "object"


def test_granting_is_for_owners_and_holders_of_manage_grants_at_or_above(world: World, role: str) -> None:
    def may(*held: str) -> bool:
        mine = world.give("mia", *held) if held else None
        try:
            grant(world.mia, role, "allow select_table@lake.A:B.t")
            return True
        except (Forbidden, NotFound):
            return False
        finally:
            revoke(world.olga, role, "allow select_table@lake.A:B.t")
            if mine:
                roles.drop_role(world.olga, "acme", mine)

    path = ("use_catalog@lake", "use_schema@lake.A")
    assert not may()
    assert not may(*path, "select_table@lake.A:B.t")
    for where in ("acme", "lake", "lake.A", "lake.A:B", "lake.A:B.t"):
        assert may(*path, f"manage_grants@{where}"), where
    assert not may("manage_grants@lake.A:B.t")
    assert not may(*path, "manage_grants@lake", "deny manage_grants@lake.A")
    assert not may(*path, "manage_grants@lake.A", "deny manage_grants@acme")
    world.own("mia", world.a)
    assert not may()
    assert may("use_catalog@lake")
    assert may("use_catalog@lake", "deny manage_grants@lake.A")


def test_a_hidden_object_is_answered_like_a_missing_one(world: World, role: str) -> None:
    for act in (grant, revoke):
        refusals = []
        for where in ("lake.A:B", "lake.A:X"):
            with pytest.raises(NotFound) as miss:
                act(world.mia, role, f"allow use_schema@{where}")
            refusals.append((miss.value.kind, miss.value.message.replace(where, "*")))
        assert refusals[0] == refusals[1] == ("object", "Schema * does not exist.")
    world.give("mia", "use_catalog@lake", "use_schema@lake.A")
    with pytest.raises(Forbidden):
        grant(world.mia, role, "allow use_schema@lake.A:B")


def test_manage_grants_is_passed_on_by_owners_and_metalake_authority_only(world: World, role: str) -> None:
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A")
    grant(world.mia, role, "allow use_schema@lake.A")
    for text in ("allow manage_grants@lake.A", "deny manage_grants@lake.A:B"):
        with pytest.raises(Forbidden):
            grant(world.mia, role, text)
    world.own("mia", world.ab)
    grant(world.mia, role, "allow manage_grants@lake.A:B")
    world.give("nils", "manage_grants@acme", "use_catalog@lake")
    grant(world.actor("nils"), role, "allow manage_grants@lake.A")


def test_bootstrap_namespace_is_passed_on_by_owners_of_catalog_or_metalake_only(world: World, role: str) -> None:
    world.give("mia", "use_catalog@lake", "manage_grants@acme")
    for where in ("acme", "lake"):
        with pytest.raises(Forbidden):
            grant(world.mia, role, f"allow bootstrap_namespace@{where}")
    world.own("mia", world.lake)
    grant(world.mia, role, "allow bootstrap_namespace@lake")
    with pytest.raises(Forbidden):
        grant(world.mia, role, "allow bootstrap_namespace@acme")
    with pytest.raises(Forbidden):
        revoke(world.actor("mia"), role, "allow bootstrap_namespace@acme")


def test_a_deny_is_lifted_with_authority_above_the_object_that_carries_it(world: World, role: str) -> None:
    deny = "deny create_table@lake.A:B"
    grant(world.olga, role, deny)
    world.own("mia", world.ab)
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A:B")
    grant(world.mia, role, "deny use_schema@lake.A:B")
    for text in (deny, "deny use_schema@lake.A:B"):
        with pytest.raises(Forbidden):
            revoke(world.mia, role, text)
    revoke(world.mia, role, "allow create_table@lake.A:B")
    world.give("nils", "use_catalog@lake", "use_schema@lake.A", "manage_grants@lake.A", "deny manage_grants@lake.A:B")
    revoke(world.actor("nils"), role, deny)
    with pytest.raises(Forbidden):
        revoke(world.actor("nils"), role, "allow use_schema@lake.A:B")
    assert world.role(role) == {"lake.A:B": ["deny use_schema"]}


def test_who_may_not_read_the_role_sees_only_what_they_granted(world: World, role: str) -> None:
    grant(world.olga, role, "allow use_catalog@files")
    world.give("mia", "use_catalog@lake", "manage_grants@lake")
    shown = grant(world.mia, role, "allow create_schema@lake")
    assert (shown.row, [(on.full_name, on.entries) for on in shown.grants]) == (
        None,
        [("lake", {Privilege.CREATE_SCHEMA: Given(Effect.ALLOW)})],
    )
    assert revoke(world.mia, role, "allow create_schema@lake").grants == []
    assert [on.full_name for on in grant(world.olga, role, "allow create_schema@lake").grants] == ["files", "lake"]


def test_overriding_replaces_everything_and_keeps_what_stays(world: World, role: str) -> None:
    grant(world.olga, role, "allow use_schema@lake.A", "deny create_table@lake.A")
    grant(world.olga, role, "allow use_catalog@lake")
    kept = Grant.objects.get(permission__codename="use_schema").pk
    shown = grants.override_role(
        world.olga,
        "acme",
        role,
        [ask("lake.A", "allow use_schema", "allow create_table"), ask("acme", "allow run_job")],
    )
    now = {"acme": ["allow run_job"], "lake.A": ["allow create_table", "allow use_schema"]}
    assert world.role(role) == now and [on.full_name for on in shown.grants] == ["acme", "lake.A"]
    assert Grant.objects.get(permission__codename="use_schema").pk == kept
    (entry,) = world.events("role.overridden")
    assert entry.details == {
        "granted": {str(world.acme.id): ["allow run_job"], str(world.a.id): ["allow create_table"]},
        "revoked": {str(world.a.id): ["deny create_table"], str(world.lake.id): ["allow use_catalog"]},
    }
    same = [ask("acme", "allow run_job"), ask("lake.A", "allow use_schema", "allow create_table")]
    grants.override_role(world.olga, "acme", role, same)
    assert len(world.events("role.overridden")) == 1
    grants.override_role(world.olga, "acme", role, [])
    assert world.role(role) == {}


def test_overriding_asks_to_assign_roles_to_grant_what_is_new_and_to_lift_each_deny(world: World, role: str) -> None:
    grant(world.olga, role, "deny use_schema@lake.A", "allow create_table@lake.A")
    with pytest.raises(Forbidden):
        grants.override_role(world.mia, "acme", role, [])
    world.give("mia", "manage_grants@acme")
    blocker = world.give("mia", "deny manage_grants@lake")
    with pytest.raises(Forbidden):
        grants.override_role(world.mia, "acme", role, [])
    kept = ask("lake.A", "deny use_schema")
    grants.override_role(world.mia, "acme", role, [kept])
    assert world.role(role) == {"lake.A": ["deny use_schema"]}
    with pytest.raises(Forbidden):
        grants.override_role(world.mia, "acme", role, [kept, ask("acme", "allow bootstrap_namespace")])
    roles.unassign_roles(world.olga, "acme", "user", "mia", [blocker])
    grants.override_role(world.mia, "acme", role, [])
    assert world.role(role) == {}


def test_grants_on_a_dropped_object_and_below_are_forgotten(world: World, role: str) -> None:
    sibling = world.schema("AB")
    for where in ("lake", "lake.A", "lake.A:B", "lake.AB"):
        grant(world.olga, role, f"allow create_table@{where}")
    grant(world.olga, role, "allow select_table@lake.A:B.t")
    write(world.olga, lambda actor: services.forget_grants_under(world.a.lineage), holds=None)
    assert set(world.role(role)) == {"lake", "lake.AB"}
    assert sibling.name == "AB"


@pytest.mark.store
def test_a_metalake_is_left_by_everybody_when_it_is_dropped(world: World, role: str) -> None:
    other = world.metalake("other", "mia")
    roles.create_role(world.mia, "other", "kept")
    roles.assign_roles(world.mia, "other", "user", "mia", ["kept"])
    world.group("team", "mia")
    roles.assign_roles(world.olga, "acme", "group", "team", [role])
    world.give("mia", "use_catalog@lake")

    def drop(actor: Actor) -> None:
        services.forget_grants_under(world.acme.lineage)
        services.drop_people_of(world.acme.id)

    write(world.olga, drop, holds=None)
    assert not Grant.objects.exists() and not Group.objects.exists()
    assert [row.name for row in Role.objects.all()] == ["kept"]
    assert [member.metalake for member in Member.objects.all()] == [other]
    assert len(world.mia.roles) == 1 and not world.olga.is_member(world.acme.id)


def test_a_change_that_fails_leaves_no_trace(world: World, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(changes: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(snapshot, "publish", broken)
    with pytest.raises(RuntimeError):
        grant(world.olga, role, "allow use_catalog@lake")
    assert not Grant.objects.exists() and world.events("privileges.granted") == []


def test_on_the_wire(world: World, wire: Wire, role: str) -> None:
    at = "metalakes/acme/permissions/roles/role"
    body = {"privileges": [{"name": "SELECT_TABLE", "condition": "ALLOW"}]}
    table = {"fullName": "lake.A:B.t", "type": "table", "privileges": [{"name": "select_table", "condition": "allow"}]}
    status, answer = wire("PUT", f"{at}/TABLE/lake.A%3AB.t/grant", body)
    assert (status, answer["role"]["securableObjects"]) == (200, [table])
    status, answer = wire("PUT", f"{at}/table/lake.A:B.t/revoke/", body)
    assert (status, answer["role"]["securableObjects"]) == (200, [])
    status, answer = wire("PUT", f"{at}/", {"overrides": [table]})
    assert (status, answer["role"]["securableObjects"]) == (200, [table])
    status, answer = wire("PUT", at, {"overrides": []})
    assert (status, answer["role"]["securableObjects"]) == (200, [])


def test_failures_on_the_wire(world: World, wire: Wire, role: str) -> None:
    def failure(path: str, name: str, condition: str = "allow") -> tuple[int, int, str]:
        body = {"privileges": [{"name": name, "condition": condition}]}
        status, answer = wire("PUT", f"metalakes/acme/permissions/roles/{path}/grant", body)
        return status, answer["code"], answer["type"]

    assert failure("role/catalog/lake", "create_role") == (400, 1001, "IllegalPrivilegeException")
    assert failure("role/catalog/none", "use_catalog") == (404, 1003, "NoSuchMetadataObjectException")
    assert failure("none/catalog/lake", "use_catalog") == (404, 1003, "NoSuchRoleException")
    assert failure("role/thing/lake", "use_catalog") == (400, 1001, "IllegalMetadataObjectException")
    assert failure("role/schema/lake", "use_schema") == (400, 1001, "IllegalMetadataObjectException")
    assert failure("role/catalog/lake", "use_catalog", "perhaps")[:2] == (400, 1001)
