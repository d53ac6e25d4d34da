"""Sequences in which a database, whose objects carry no marker, must not be misunderstood."""

from __future__ import annotations

import pytest

from authz.callers.identity import actor_of
from authz.models import User
from authz.services import roles
from catalogs.lookup import by_id
from catalogs.models import Intent
from catalogs.services import schemas, tables
from catalogs.services.provider_of import provider_at
from metalake.errors import AlreadyExists, Conflict, ProviderBusy, ProviderUnavailable
from metalake.lineage import Address
from metalake.models import Securable
from outside import recovery, steps
from providers import outcomes, remote
from providers.base import Provider
from providers.outcomes import Outcome
from tests.outside.crashes import killed_at, lapse, leave_no_call, settle_all
from tests.outside.databases import Database
from tests.outside.writes import IN_POSTGRES, Bench, Write

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

BY_NAME = {write.name: write for write in IN_POSTGRES}  # they say nothing of their catalog
CREATE, ALTER, RENAME, DROP = (BY_NAME[f"{verb} a table"] for verb in ("create", "alter", "rename", "drop"))
PLACED = BY_NAME["create a table and its schema's place"]
LIKE_OURS = "CREATE TABLE flights.delays (delay INT, carrier TEXT)"


@pytest.fixture(params=["postgres_bench", "maria_bench"])
def bench(request: pytest.FixtureRequest) -> Bench:
    made: Bench = request.getfixturevalue(request.param)
    return made


def database(bench: Bench) -> Database:
    assert isinstance(bench.outside, Database)
    return bench.outside


def provider_of(intent: Intent) -> Provider:
    catalog = by_id(intent.in_catalog_id)
    assert catalog is not None
    return provider_at(catalog)


def row() -> Securable:
    return Securable.objects.get(name="delays")


def is_there(bench: Bench) -> bool:
    return any(name.endswith("delays") for name in bench.outside.objects())


def test_a_creation_begins_only_where_its_name_is_free(bench: Bench) -> None:
    CREATE.prepare(bench)
    database(bench).execute(LIKE_OURS)
    database(bench).execute("CREATE SCHEMA sales")
    with pytest.raises(AlreadyExists, match=r"already exists: flights\.delays"):
        CREATE.act(bench)
    with pytest.raises(AlreadyExists, match="has it as sales"):
        bench.make_schema("sales")
    assert not Intent.objects.filter(verb="create_table").exists(), "nothing was promised"
    assert row().owner_user_id != bench.actor.id, "it was met, as what others made"
    assert Securable.objects.filter(name="sales").exists()


@pytest.mark.parametrize("at", ["promised", "before 0"])
def test_what_others_make_after_the_promise_stays_theirs(
    bench: Bench, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its process ends, so that nothing was sent; or just before the call, which is refused then."""
    CREATE.prepare(bench)
    if at == "promised":
        killed_at(at, lambda: CREATE.act(bench))
        database(bench).execute(LIKE_OURS)
    else:
        point = lambda name: database(bench).execute(LIKE_OURS) if name == at else None  # noqa: E731
        monkeypatch.setattr(steps, "point", point)
        with pytest.raises(AlreadyExists):
            CREATE.act(bench)
    settle_all()
    assert Intent.objects.latest("created_at").state == Intent.State.ABORTED
    assert is_there(bench) and not Securable.objects.filter(name="delays").exists()


def test_a_late_look_leaves_what_the_second_try_made(bench: Bench) -> None:
    CREATE.prepare(bench)
    killed_at("before 0", lambda: CREATE.act(bench))
    recovery.sweep()  # which gives it up, to look once more when all calls have ended
    CREATE.act(bench)
    settle_all()
    assert is_there(bench) and row().owner_user_id == bench.actor.id
    assert not recovery.undecided().exists(), "nobody needs to look"


def test_what_a_process_makes_that_slept_waits_for_a_person_or_is_met(bench: Bench) -> None:
    CREATE.prepare(bench)
    intent = killed_at("before 0", lambda: CREATE.act(bench))
    lapse()
    recovery.sweep()
    assert Intent.objects.get(pk=intent.pk).state == Intent.State.ABORTED
    call = intent.steps[0]
    remote.run(provider_of(intent), call["verb"], call["arguments"])
    lapse()
    recovery.sweep()
    assert recovery.undecided().get().pk == intent.pk and is_there(bench)
    tables.list_tables(bench.actor, bench.ident("flights"), refresh=True)
    settle_all()
    assert is_there(bench) and not recovery.undecided().exists()


def test_what_was_read_back_is_not_taken_back(bench: Bench) -> None:
    """Its publication is forbidden by now, and the call itself never said what it had made."""
    CREATE.prepare(bench)
    killed_at("after 0", lambda: CREATE.act(bench))
    roles.unassign_roles(actor_of(User.objects.get(username="admin")), "demo", "user", "mia", ["makers"])
    for _ in range(3):
        lapse()
        recovery.sweep()
    assert is_there(bench)
    assert Intent.objects.latest("created_at").state == Intent.State.STUCK


def test_the_place_of_others_is_adopted_and_never_dropped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made after the promise, as its very twin; then the table is refused."""
    PLACED.prepare(bench)
    point = lambda name: database(bench).execute("CREATE SCHEMA flights") if name == "before 0" else None  # noqa: E731
    monkeypatch.setattr(steps, "point", point)
    monkeypatch.setattr(type(database(bench).direct.tables), "create", _refused)
    with pytest.raises(Conflict):
        PLACED.act(bench)
    settle_all()
    assert "flights" in bench.outside.objects()
    assert Intent.objects.latest("created_at").state == Intent.State.ABORTED


def _refused(*_: object, **__: object) -> None:
    raise Conflict("Not now.", kind="table")


def test_a_call_under_way_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "RETRIES", 0)
    CREATE.prepare(bench)
    intent = killed_at("before 0", lambda: CREATE.act(bench))
    call, direct, marker = intent.steps[0], database(bench).direct, str(intent.pk)
    look = lambda: outcomes.outcome_of(provider_of(intent), call["verb"], call["arguments"], marker)  # noqa: E731
    session = direct.dialect.connect(direct.login, writes=True)
    statement = direct.dialect.ddl.create_table("flights", "delays", call["arguments"]["definition"])[0]

    def while_under_way(_: object) -> list[str]:
        with pytest.raises(ProviderBusy):
            look()
        return [statement]

    direct.dialect.write(session, direct.login, marker, while_under_way)
    session.close()
    assert look()[0] is Outcome.DONE


def test_an_alteration_behind_a_lock_is_refused_and_leaves_nothing(bench: Bench) -> None:
    ALTER.prepare(bench)
    direct = database(bench).direct
    session = direct.dialect.connect(direct.login, writes=True)
    direct.dialect.lock_table(session, "flights", "delays")
    with pytest.raises(ProviderUnavailable, match="locked by others"):
        ALTER.act(bench)
    session.close()
    leave_no_call()
    assert bench.loaded("flights", "delays").definition["comment"] is None
    ALTER.act(bench)


@pytest.mark.parametrize(("write", "left"), [(RENAME, ["late"]), (DROP, [])], ids=["rename", "drop"])
def test_a_rename_and_a_drop_are_read_back(bench: Bench, write: Write, left: list[str]) -> None:
    write.prepare(bench)
    killed_at("after 0", lambda: write.act(bench))
    settle_all()
    assert Intent.objects.latest("created_at").state == Intent.State.COMMITTED
    assert list(Securable.objects.filter(parent__name="flights").values_list("name", flat=True)) == left


def test_names_that_differ_in_case_are_two_schemas(bench: Bench) -> None:
    bench.make_schema("sales")
    bench.make_schema("Sales")
    listed = schemas.list_schemas(bench.actor, Address(metalake="demo", catalog=bench.catalog), refresh=True)
    assert {path.logical() for path in listed.paths} >= {"sales", "Sales"}
