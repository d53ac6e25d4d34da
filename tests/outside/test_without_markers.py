"""A system that carries no mark of ours: a lost answer is told otherwise, or somebody decides; it is never guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from authz.actor import Actor
from catalogs.models import Intent, Reservation
from catalogs.services import catalogs
from metalake.errors import AlreadyExists, OutcomeUnknown, ProviderUnavailable
from metalake.models import Securable
from outside import recovery
from providers import registry
from tests.outside.crashes import killed_at, settle_all
from tests.outside.outside import Memory
from tests.outside.writes import BY_NAME, Bench
from tests.providers.world import World

pytestmark = pytest.mark.django_db(transaction=True)

CREATE, ALTER, DROP = (BY_NAME[f"{verb} a table"] for verb in ("create", "alter", "drop"))


@pytest.fixture
def bare(benches: dict[str, Bench], actor: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A provider that one line of the registry adds, and a catalog of it with a schema."""
    monkeypatch.setitem(registry.PROVIDERS, "bare", "tests.providers.bare:BareProvider")
    world = World(tmp_path / "bare.json")
    catalogs.create_catalog(actor, "demo", "bare", "relational", "bare", None, {"world": str(world.path)})
    return Bench("bare", Memory(world), benches["flat"].actor)


def state() -> str:
    return str(Intent.objects.latest("created_at").state)


def test_a_creation_whose_answer_is_lost_waits_for_a_decision(bare: Bench) -> None:
    CREATE.prepare(bare)
    bare.world.fail("create_table", "lost")
    with pytest.raises(OutcomeUnknown, match="its system cannot tell"):
        CREATE.act(bare)
    stuck = Intent.objects.latest("created_at")
    assert (stuck.state, stuck.attempts) == (Intent.State.STUCK, 0), "nothing is learnt by asking again"
    assert "does not say who made table delays" in stuck.last_failure
    settle_all()
    assert state() == Intent.State.STUCK and Reservation.objects.exists()
    assert bare.world.tables() >= {"flights.delays"}, "nobody knows whether it is ours to take back"
    assert not Securable.objects.filter(name="delays").exists()
    recovery.retry(stuck)
    recovery.sweep()
    assert state() == Intent.State.STUCK
    recovery.give_up_by_operator(Intent.objects.get(pk=stuck.pk), "otto")
    assert state() == Intent.State.RESIDUE and not Reservation.objects.exists()
    assert bare.world.tables() >= {"flights.delays"}


def test_a_creation_that_left_nothing_failed(bare: Bench) -> None:
    CREATE.prepare(bare)
    bare.world.fail("create_table", "dropped")
    with pytest.raises(ProviderUnavailable, match="not done"):
        CREATE.act(bare)
    settle_all()
    assert state() == Intent.State.ABORTED
    CREATE.act(bare)
    assert state() == Intent.State.COMMITTED


def test_what_arrives_after_that_is_not_taken_back(bare: Bench) -> None:
    CREATE.prepare(bare)
    bare.world.fail("create_table", "dropped")
    with pytest.raises(ProviderUnavailable):
        CREATE.act(bare)
    bare.world.put_table("flights", "delays")
    Intent.objects.update(lease_until="2000-01-01T00:00:00Z")
    recovery.sweep()
    assert bare.world.tables() >= {"flights.delays"}
    waiting = recovery.undecided().get()
    recovery.give_up_by_operator(waiting, "otto")
    assert not recovery.undecided().exists()


def test_a_refusal_is_believed(bare: Bench) -> None:
    CREATE.prepare(bare)
    bare.world.put_table("flights", "delays")
    with pytest.raises(AlreadyExists):
        CREATE.act(bare)
    assert state() == Intent.State.ABORTED


@pytest.mark.parametrize("fault", ["lost", ""])
def test_an_alteration_is_told_by_what_it_comes_to(bare: Bench, fault: str) -> None:
    ALTER.prepare(bare)
    if fault:
        bare.world.fail("alter_table", fault)
        ALTER.act(bare)
    else:
        killed_at("after 0", lambda: ALTER.act(bare))
        settle_all()
    assert state() == Intent.State.COMMITTED


def test_an_alteration_that_others_wrote_over_waits_for_a_decision(bare: Bench) -> None:
    ALTER.prepare(bare)
    killed_at("after 0", lambda: ALTER.act(bare))
    with bare.world.open() as world:
        world["tables"]["flights\x1fdelays"]["definition"]["comment"] = "by others"
    settle_all()
    assert state() == Intent.State.STUCK


def test_a_drop_is_told_by_the_identity(bare: Bench) -> None:
    DROP.prepare(bare)
    bare.world.fail("drop_table", "lost")
    DROP.act(bare)
    assert state() == Intent.State.COMMITTED
