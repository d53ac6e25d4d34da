"""Grants that start and end: looked at with the clock wherever rights are decided, with no job that must run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from access.explain.queries import Place
from access.explain.ways import Narrowed, ways_in
from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.models import Grant
from authz.services import grants, roles
from authz.services.grant_entries import Ask
from catalogs.lookup import find
from metalake.errors import Forbidden, Invalid
from metalake.kinds import Kind, Slot
from metalake.lineage import Address
from metalake.models import Securable
from metalake.privileges import Privilege
from tests.authz.small_world import Wire, World, kind_at

pytestmark = pytest.mark.store

HOUR = timedelta(hours=1)
Moment = datetime | None


@pytest.fixture
def readers(world: World) -> str:
    return world.give("mia", "use_catalog@lake", "use_schema@lake.A")


def grant(
    world: World, role: str, where: str, privilege: str, effect: str = "allow", starts: Moment = None,
    ends: Moment = None, by: str = "olga",
) -> None:  # fmt: skip
    said = [(privilege, effect, starts, ends)]
    grants.grant_privileges(world.actor(by), "acme", role, kind_at(where), where, said)


def reads(world: World, moment: datetime) -> bool:
    """Whether mia reads the table at that moment; the list of tables must say the same."""
    mia = replace(world.mia, at=moment.timestamp())
    found = find(mia, Address(metalake="acme", catalog="lake", schema="A:B", leaf="t"))
    may = policy.permits(mia, operations.LOAD_TABLE, found)
    rows = Securable.objects.filter(parent_id=world.ab.pk, slot=Slot.TABULAR)
    assert policy.visible_leaves(mia, found.above(), rows, Kind.TABLE).exists() == may
    return may


def test_a_grant_lives_from_its_start_to_its_end(world: World, readers: str) -> None:
    now = timezone.now()
    grant(world, readers, "lake.A:B.t", "select_table", starts=now + HOUR, ends=now + 2 * HOUR)
    moments = [now, now + HOUR, now + 1.5 * HOUR, now + 2 * HOUR - timedelta(microseconds=10), now + 2 * HOUR]
    assert [reads(world, moment) for moment in moments] == [False, True, True, True, False]


def test_a_deny_for_a_time_denies_for_that_time(world: World, readers: str) -> None:
    now = timezone.now()
    grant(world, readers, "lake", "select_table")
    grant(world, readers, "lake.A:B", "select_table", "deny", starts=now + HOUR, ends=now + 2 * HOUR)
    assert [reads(world, now + n * HOUR) for n in (0, 1, 2)] == [True, False, True]


def test_following_equals_loading(world: World, readers: str) -> None:
    now = timezone.now()
    world.mia  # noqa: B018 (this process has a snapshot that follows)
    grant(world, readers, "lake.A:B.t", "select_table", ends=now + HOUR)
    grant(world, readers, "lake.A:B.t", "modify_table")
    grant(world, readers, "lake", "create_schema", "deny", starts=now + HOUR)
    followed = snapshot.latest()
    loaded = snapshot.load()
    assert followed.timed == loaded.timed != {}
    assert followed.grants == loaded.grants
    grants.revoke_privileges(world.olga, "acme", readers, Kind.CATALOG, "lake", [("create_schema", "deny")])
    roles.drop_role(world.olga, "acme", readers)
    assert not any(snapshot.latest().timed.values())


def test_a_grant_without_times_makes_one_with_times_lasting(world: World, readers: str) -> None:
    now = timezone.now()
    grant(world, readers, "lake.A:B.t", "select_table", ends=now + HOUR)
    grant(world, readers, "lake.A:B.t", "select_table")
    assert reads(world, now + 2 * HOUR)
    assert Grant.objects.filter(content_object=world.t.pk).count() == 1


def test_what_has_ended_is_as_good_as_gone(world: World, readers: str) -> None:
    grant(world, readers, "lake.A:B.t", "select_table", "deny")
    past = timezone.now() - HOUR
    Grant.rows.filter(content_object=world.t.pk).update(ends_at=past)
    snapshot.forget()
    assert "lake.A:B.t" not in world.role(readers)
    direct = ways_in(world.olga, "acme", Place(Kind.TABLE, "lake.A:B.t"), narrowed=Narrowed(show="direct")).ways
    assert [way.owner for way in direct] == [True]
    world.give("nils", "manage_grants@lake.A:B.t", "use_catalog@lake", "use_schema@lake")
    # The DENY that ended stands in nobody's way.
    grant(world, readers, "lake.A:B.t", "select_table", by="nils")
    assert reads(world, timezone.now())


def test_shortening_a_deny_is_lifting_it(world: World, readers: str) -> None:
    now = timezone.now()
    world.give("nils", "manage_grants@lake.A:B.t", "use_catalog@lake", "use_schema@lake")
    in_1, in_2, in_3, in_4 = (now + n * HOUR for n in (1, 2, 3, 4))
    narrower: dict[tuple[Moment, Moment], list[tuple[Moment, Moment]]] = {
        (None, None): [(None, in_1), (in_1, None)],
        (in_2, None): [(in_3, None), (in_2, in_4), (None, in_1)],
        (None, in_4): [(None, in_3), (in_1, in_4), (in_1, None)],
    }
    for (starts, ends), attempts in narrower.items():
        Grant.rows.filter(content_object=world.t.pk, permission__codename="select_table").delete()
        grant(world, readers, "lake.A:B.t", "select_table", "deny", starts, ends)
        for later, sooner in attempts:
            with pytest.raises(Forbidden, match="may not lift a DENY"):
                grant(world, readers, "lake.A:B.t", "select_table", "deny", later, sooner, by="nils")
        held = Grant.objects.get(content_object=world.t.pk, permission__codename="select_table")
        assert (held.starts_at, held.ends_at) == (starts, ends)
    # Longer is only more of it.
    grant(world, readers, "lake.A:B.t", "select_table", "deny", by="nils")
    grant(world, readers, "lake.A:B.t", "select_table", "deny", ends=now + HOUR, by="olga")


def test_a_deny_to_come_is_not_lost_by_taking_the_role(world: World, readers: str) -> None:
    grant(world, readers, "acme", "select_table", "deny", starts=timezone.now() + HOUR)
    world.give("nils", "manage_grants@acme")
    with pytest.raises(Forbidden, match="lift a DENY"):
        roles.unassign_roles(world.actor("nils"), "acme", "user", "mia", [readers])


@pytest.mark.parametrize(
    ("starts", "ends", "says"),
    [
        (-HOUR, None, "which is past: leave the start out"),
        (None, -HOUR, "not after now"),
        (2 * HOUR, HOUR, "not after its start"),
        (HOUR, HOUR, "not after its start"),
    ],
)
def test_spans_that_make_no_sense_are_refused(
    world: World, readers: str, starts: timedelta | None, ends: timedelta | None, says: str
) -> None:
    now = timezone.now()
    first, last = (now + after if after else None for after in (starts, ends))
    with pytest.raises(Invalid, match=says):
        grant(world, readers, "lake", "create_schema", "allow", first, last)
    said = Ask(Kind.CATALOG, "lake", [("create_schema", "allow", first, last)])
    with pytest.raises(Invalid, match=says):
        roles.create_role(world.olga, "acme", "soon", None, [said])
    with pytest.raises(Invalid, match=says):
        grants.override_role(world.olga, "acme", readers, [said])
    assert world.role(readers) == {"lake": ["allow use_catalog"], "lake.A": ["allow use_schema"]}


def test_overriding_keeps_what_has_begun(world: World, readers: str) -> None:
    now = timezone.now()
    grant(world, readers, "lake", "create_schema", ends=now + HOUR)
    Grant.rows.filter(permission__codename="create_schema").update(starts_at=now - HOUR)
    kept = Grant.objects.get(permission__codename="create_schema")
    said = Ask(Kind.CATALOG, "lake", [("create_schema", "allow", kept.starts_at, kept.ends_at)])
    grants.override_role(world.olga, "acme", readers, [said])
    assert Grant.objects.get(group__role__name=readers).pk == kept.pk


# Over the wire


def test_times_travel_in_utc(world: World, readers: str) -> None:
    wire, path = Wire(), f"metalakes/acme/permissions/roles/{readers}/table/lake.A:B.t"
    ends = (timezone.now() + HOUR).replace(microsecond=0)
    said: dict[str, Any] = {"name": "select_table", "condition": "allow", "endTime": ends.isoformat()}
    status, body = wire("PUT", f"{path}/grant", {"privileges": [said]})
    assert status == 200, body
    (shown,) = [on for on in body["role"]["securableObjects"] if on["type"] == "table"]
    written = ends.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert shown["privileges"] == [{"name": "select_table", "condition": "allow", "endTime": written}]
    status, body = wire("PUT", f"{path}/revoke", {"privileges": [said]})
    assert status == 400
    assert "name no times" in body["message"]
    del said["endTime"]
    status, body = wire("PUT", f"{path}/revoke", {"privileges": [said]})
    assert status == 200
    assert not [on for on in body["role"]["securableObjects"] if on["type"] == "table"]


@pytest.mark.parametrize("moment", ["yesterday", "2026-13-01T00:00:00Z", 7, "2020-01-01T00:00:00Z"])
def test_moments_that_are_none_or_past_are_refused_over_the_wire(world: World, readers: str, moment: Any) -> None:
    said = {"name": "select_table", "condition": "allow", "endTime": moment}
    path = f"metalakes/acme/permissions/roles/{readers}/table/lake.A:B.t/grant"
    status, body = Wire()("PUT", path, {"privileges": [said]})
    assert (status, body["code"]) == (400, 1001), body
    assert "endTime" in body["message"] or "end at" in body["message"]


def test_narrowed_roles_and_times_meet(world: World, readers: str) -> None:
    now = timezone.now()
    other = world.give("mia")
    grant(world, other, "lake.A:B.t", "select_table", ends=now + HOUR)
    found = find(world.mia, Address(metalake="acme", catalog="lake", schema="A:B", leaf="t"))
    role_ids = {name: pk for pk, name in _role_ids(world).items()}

    def may(actor: Actor) -> bool:
        return policy.permits(actor, operations.LOAD_TABLE, found)

    assert may(world.mia)
    assert not may(replace(world.mia, active=(role_ids[readers],)))
    assert may(replace(world.mia, active=(role_ids[readers], role_ids[other])))
    assert not may(replace(world.mia, active=(role_ids[readers], role_ids[other]), at=(now + HOUR).timestamp()))
    grant(world, other, "acme", "modify_table", "deny")
    narrowed = policy.rights_on(replace(world.mia, active=()), found)
    assert narrowed.denies(Privilege.MODIFY_TABLE)
    assert not narrowed.allows(Privilege.USE_CATALOG)


def _role_ids(world: World) -> dict[int, str]:
    return dict(Securable.objects.filter(kind=Kind.ROLE).values_list("pk", "name"))
