"""What an intent made is undone where the right to it was lost, but for what others use or what may still arrive."""

from __future__ import annotations

import pytest

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import AuditEntry, Grant, User
from authz.services import roles
from catalogs.models import Intent, Schema
from catalogs.services import schemas
from metalake.errors import Forbidden, NotFound, OutcomeUnknown
from metalake.kinds import Kind
from metalake.models import Securable
from outside import intents, recovery
from tests.demo import give
from tests.outside.crashes import Killed, killed_at, lapse, settle_all, stopping
from tests.outside.writes import BY_NAME, Bench

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("clean_audit"),
]


def revoke(actor: Actor) -> None:
    roles.unassign_roles(actor, "demo", "user", "mia", ["makers"])


# Rights that were lost meanwhile


def test_rights_are_asked_before_the_first_call(bench: Bench) -> None:
    intent = killed_at("promised", lambda: bench.make_schema("sales"))
    give("mia", Kind.METALAKE, "demo", "deny create_schema")
    intents.settle(intent.pk, intent.fence)
    intent.refresh_from_db()
    assert (intent.state, intent.error["class"]) == (Intent.State.ABORTED, "Forbidden")
    assert bench.world.calls("create_schema") == 0


def test_who_lost_the_right_makes_nothing(bench: Bench) -> None:
    intent = killed_at("applied", lambda: bench.make_schema("sales:emea"))
    assert bench.world.schemas() == {"hr", "sales", "sales.emea"}
    AuditEntry.objects.all().delete()
    give("mia", Kind.METALAKE, "demo", "deny create_schema")
    settle_all()
    intent.refresh_from_db()
    assert (intent.state, intent.error["class"]) == (Intent.State.ABORTED, "Forbidden")
    assert bench.world.schemas() == {"hr"}
    entry = AuditEntry.objects.get(event="intent.aborted")
    assert (entry.actor, entry.full_name) == ("mia", "deep.sales:emea")
    assert entry.details["reason"] == "Forbidden"
    assert entry.details["verb"] == "create_schema"


def test_a_drop_that_was_made_is_published_whoever_lost_the_right(bench: Bench, actor: Actor) -> None:
    bench.make_schema("sales")
    killed_at("applied", lambda: schemas.drop_schema(bench.actor, bench.ident("sales")))
    Securable.objects.filter(name="sales").update(owner_user_id=actor.id)
    settle_all()
    assert not Schema.objects.filter(name="sales").exists()
    assert Intent.objects.latest("created_at").state == Intent.State.COMMITTED


def test_an_account_that_is_gone_makes_nothing(bench: Bench) -> None:
    killed_at("applied", lambda: bench.make_schema("sales"))
    Grant.rows.all().delete()
    Intent.objects.update(actor_id=10**15)
    settle_all()
    assert Intent.objects.get().state == Intent.State.ABORTED
    assert bench.there() == set()


def test_forbidden_makes_no_intent(bench: Bench, actor: Actor) -> None:
    revoke(actor)
    with pytest.raises((Forbidden, NotFound)):
        schemas.create_schema(actor_of(User.objects.get(username="mia")), bench.ident("sales"), None, {})
    assert not Intent.objects.exists()


# What is theirs to undo


def test_a_parent_of_others_keeps_its_owner(bench: Bench, actor: Actor) -> None:
    bench.world.put_schema("sales", team="others")
    bench.make_schema("sales:emea:q3")
    owners = {row.path.logical(): row.owner_user_id for row in Schema.objects.filter(in_catalog__name="deep")}
    assert owners == {"sales": actor.id, "sales:emea": bench.actor.id, "sales:emea:q3": bench.actor.id}


def test_a_parent_that_others_use_is_left(bench: Bench, actor: Actor) -> None:
    killed_at("applied", lambda: bench.make_schema("sales:emea"))
    bench.world.put_table("sales", "orders")
    AuditEntry.objects.all().delete()
    revoke(actor)
    settle_all()
    intent = Intent.objects.get()
    assert intent.state == Intent.State.RESIDUE
    assert [each["status"] for each in intent.steps] == ["left", "undone"]
    assert bench.world.schemas() == {"hr", "sales"}
    assert AuditEntry.objects.get(event="intent.aborted").details["leaves"] is True
    assert schemas.load_schema(actor, bench.ident("sales")).row.owner_user_id == actor.id


def test_a_table_that_others_wrote_to_is_left(bench: Bench, actor: Actor) -> None:
    bench.make_schema("flights")
    killed_at("applied", lambda: bench.make_table("flights", "delays"))
    with bench.world.open() as state:
        state["tables"]["flights\x1fdelays"]["definition"]["properties"]["numRows"] = "7"
    revoke(actor)
    settle_all()
    assert Intent.objects.latest("created_at").state == Intent.State.RESIDUE
    assert bench.world.tables() == {"hr.staff", "flights.delays"}


def test_that_something_is_left_survives_a_crash(bench: Bench, actor: Actor) -> None:
    killed_at("applied", lambda: bench.make_schema("sales:emea:q3"))
    bench.world.put_table("sales", "emea", "orders")
    revoke(actor)
    lapse()
    with pytest.raises(Killed), stopping(8):  # the second step is marked as left
        recovery.sweep()
    assert [each["status"] for each in Intent.objects.get().steps] == ["done", "left", "undone"]
    settle_all()
    assert Intent.objects.get().state == Intent.State.RESIDUE


def test_that_a_call_may_be_late_survives_a_crash(bench: Bench) -> None:
    bench.world.fail("create_schema", "", "dropped")
    killed_at("undoing 0", lambda: bench.make_schema("sales:emea"))
    assert [each["status"] for each in Intent.objects.get().steps] == ["done", "undone"]
    recovery.sweep()
    intent = Intent.objects.get()
    assert intent.state == Intent.State.ABORTED
    assert intent.lease_until is not None, "nobody looks for what arrives late"


def test_the_copy_is_kept_where_the_drop_may_still_arrive(benches: dict[str, Bench]) -> None:
    """A table is renamed by copying it: once its drop was sent, taking the copy back could leave nothing."""
    bench = benches["flat"]
    write = BY_NAME["rename a table by copying it"]
    write.prepare(bench)
    bench.world.fail("drop_table", "dropped", "down", "down")
    with pytest.raises(OutcomeUnknown):
        write.act(bench)
    for _ in range(2):
        lapse()
        recovery.sweep()
        assert "flights.late" in bench.world.tables()
    settle_all()
    assert bench.world.tables() == {"hr.staff", "flights.late"}
    assert Intent.objects.latest("created_at").state == Intent.State.COMMITTED
