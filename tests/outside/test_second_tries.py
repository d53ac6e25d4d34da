"""A system that repeats its own work refuses the second try: what the first one made is found, and kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from authz.actor import Actor
from catalogs.models import Intent, Reservation
from catalogs.services import catalogs, commits, schemas, tables
from catalogs.services.alterations import Alteration
from formats.iceberg import builder, files, metadata_json, storage
from formats.native.tables import AddColumn
from metalake.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    MetalakeError,
    NotFound,
    OutcomeUnknown,
    ProviderUnavailable,
)
from metalake.kinds import Kind
from outside import intents, steps
from providers.remote_objects import Remote
from providers.verbs import VERBS
from tests.demo import give
from tests.outside.crashes import Cell, ended, perform, prepared, settle_all, undisturbed
from tests.outside.writes import OF_VIEWS, Bench, Write
from tests.providers.memory import MemorySchemas, MemoryTables
from tests.providers.pointers import MemoryPointers
from tests.providers.viewing import MemoryViews
from views_mgmt.models import ViewVersion

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

PLACE = "flights\x1fdelays"
POINTER = "metadata_location"
ADDED = AddColumn.model_validate({"@type": "addColumn", "fieldName": ["gate"], "type": "string"})


def pointer_of(bench: Bench) -> str:
    with bench.world.open() as state:
        return str(state["tables"][PLACE]["definition"]["properties"][POINTER])


def point_to(bench: Bench, location: str) -> None:
    with bench.world.open() as state:
        state["tables"][PLACE]["definition"]["properties"][POINTER] = location


def metadata_at(location: str) -> dict[str, Any]:
    return dict(metadata_json.parse_metadata(Path(location.removeprefix("file://")).read_bytes()))


def is_there(location: str) -> bool:
    return Path(location.removeprefix("file://")).exists()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def iceberg_table(bench: Bench, root: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """`flights.delays` of others, whose pointer the memory keeps."""

    monkeypatch.setattr(MemoryPointers, "folder", root)
    monkeypatch.setattr(MemoryTables, "pointers", MemoryPointers)
    metadata = builder.new_table_metadata(
        table_uuid="7d3e2f60-5a1b-4c8d-9e0f-1a2b3c4d5e6f",
        location=f"{root.as_uri()}/delays",
        schema={"type": "struct", "fields": [{"id": 1, "name": "carrier", "required": False, "type": "string"}]},
        partition_spec=None,
        sort_order=None,
        properties={},
        now_ms=1_700_000_000_000,
    )
    pointer, _ = files.write_metadata(storage.file_io({}), metadata, version=0)
    give("mia", Kind.METALAKE, "demo", "modify_table")
    bench.make_schema("flights")
    bench.world.put_table("flights", "delays", metadata_location=pointer, location=f"{root.as_uri()}/delays")
    return bench


def commit(bench: Bench, **properties: str) -> None:
    update = {"action": "set-properties", "updates": properties}
    commits.commit_table(bench.actor, bench.ident("flights", "delays"), [], [update])


def said(bench: Bench) -> dict[str, str]:
    """The table's properties as the file says that it points to."""
    properties = metadata_at(pointer_of(bench))["properties"]
    return {key: properties[key] for key in ("team", "by") if key in properties}


def test_a_commit_that_was_tried_twice(iceberg_table: Bench) -> None:
    """The second try is refused for what the first one did: the file that it named is the table."""
    iceberg_table.world.fail("commit_table", "twice")
    commit(iceberg_table, team="ops")
    assert is_there(pointer_of(iceberg_table))
    assert said(iceberg_table) == {"team": "ops"}
    assert Intent.objects.latest("created_at").state == Intent.State.COMMITTED
    assert iceberg_table.world.calls("commit_table") == 1


@pytest.mark.parametrize("refusal", [Conflict, AlreadyExists, NotFound, Invalid])
def test_no_refusal_of_a_commit_is_believed(
    iceberg_table: Bench, refusal: type[MetalakeError], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = MemoryPointers.commit

    def refused(
        self: MemoryPointers, schema: list[str], table: str, location: str, previous: str, by_owner: bool = False
    ) -> Remote:
        real(self, schema, table, location, previous)
        raise refusal("Refused, the second time.", kind="table")

    monkeypatch.setattr(MemoryPointers, "commit", refused)
    commit(iceberg_table, team="ops")
    assert is_there(pointer_of(iceberg_table))
    assert said(iceberg_table) == {"team": "ops"}


def test_others_committed_on_top_of_a_commit_that_was_tried_twice(
    iceberg_table: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = MemoryPointers.commit

    def refused(
        self: MemoryPointers, schema: list[str], table: str, location: str, previous: str, by_owner: bool = False
    ) -> Remote:
        real(self, schema, table, location, previous)
        ours = metadata_at(location)
        update = {"action": "set-properties", "updates": {"by": "others"}}
        theirs = builder.apply_updates(ours, [update], now_ms=1_800_000_000_000, previous_location=location)
        point_to(iceberg_table, files.write_metadata(storage.file_io({}), theirs, version=2)[0])
        raise Conflict("The table has been modified.", kind="table")

    monkeypatch.setattr(MemoryPointers, "commit", refused)
    commit(iceberg_table, team="ops")
    assert said(iceberg_table) == {"team": "ops", "by": "others"}
    log = Intent.objects.get(verb="commit_table").steps[0]["arguments"]["location"]
    assert is_there(log), "the history of the table names it"


def test_a_lost_race_is_run_again_and_leaves_no_file(
    iceberg_table: Bench, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, raced = MemoryPointers.commit, list[str]()

    def racing(
        self: MemoryPointers, schema: list[str], table: str, location: str, previous: str, by_owner: bool = False
    ) -> Remote:
        if not raced:
            raced.append(location)
            base = metadata_at(previous)
            update = {"action": "set-properties", "updates": {"by": "others"}}
            theirs = builder.apply_updates(base, [update], now_ms=1_800_000_000_000, previous_location=previous)
            point_to(iceberg_table, files.write_metadata(storage.file_io({}), theirs, version=1)[0])
        return real(self, schema, table, location, previous)

    monkeypatch.setattr(MemoryPointers, "commit", racing)
    commit(iceberg_table, team="ops")
    assert said(iceberg_table) == {"team": "ops", "by": "others"}
    assert not is_there(raced[0])
    assert iceberg_table.world.calls("commit_table") == 2


def test_where_it_cannot_be_looked_the_file_stays(iceberg_table: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody is told that nothing was done."""

    def deny(name: str) -> None:
        if name == "before 0":
            iceberg_table.world.fail("load_table", *["denied"] * 9)

    iceberg_table.world.fail("commit_table", "twice")
    monkeypatch.setattr(steps, "point", deny)
    with pytest.raises(OutcomeUnknown):
        commit(iceberg_table, team="ops")
    assert is_there(pointer_of(iceberg_table))
    iceberg_table.world.heal()
    settle_all()
    assert Intent.objects.get(verb="commit_table").state == Intent.State.COMMITTED
    assert not Reservation.objects.exists()
    assert said(iceberg_table) == {"team": "ops"}


def test_a_catalog_dropped_after_a_commit_takes_no_file(
    iceberg_table: Bench, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outside table points to it by then."""

    def drop_when_published(name: str) -> None:
        if name == "published":
            catalogs.drop_catalog(actor, "demo", "deep", force=True)

    monkeypatch.setattr(steps, "point", drop_when_published)
    with pytest.raises(NotFound):
        commit(iceberg_table, team="ops")
    assert is_there(pointer_of(iceberg_table))


def alter_a_table(bench: Bench) -> None:
    tables.alter_native_table(bench.actor, bench.ident("flights", "delays"), [ADDED])


def alter_a_schema(bench: Bench) -> None:
    schemas.alter_schema(bench.actor, bench.ident("flights"), Alteration(properties=(("team", "ops"),)))


@pytest.mark.parametrize(("act", "verb"), [(alter_a_table, "alter_table"), (alter_a_schema, "alter_schema")])
def test_an_alteration_that_was_tried_twice(bench: Bench, act: Callable[[Bench], None], verb: str) -> None:
    """Made again, it would be refused: the column is there."""
    bench.make_schema("flights")
    bench.make_table("flights", "delays")
    bench.world.fail(verb, "twice")
    act(bench)
    assert bench.world.calls(verb) == 1
    assert Intent.objects.latest("created_at").state == Intent.State.COMMITTED


def test_an_alteration_of_others_is_still_a_conflict(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is made again on the new state."""
    bench.make_schema("flights")
    bench.make_table("flights", "delays")
    real = intents.carry

    def changed_before(actor: Any, decide: Any, **how: Any) -> Intent:
        monkeypatch.setattr(intents, "carry", real)
        with bench.world.open() as state:
            state["tables"][PLACE]["definition"]["comment"] = "by others"
        return real(actor, decide, **how)

    monkeypatch.setattr(intents, "carry", changed_before)
    alter_a_table(bench)
    assert bench.world.calls("alter_table") == 2
    with bench.world.open() as state:
        there = state["tables"][PLACE]["definition"]
    assert there["comment"] == "by others"
    assert [one["name"] for one in there["columns"]] == ["delay", "carrier", "gate"]


def test_an_alteration_is_refused_at_once_where_nobody_can_say_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves nothing to take back, so its table is not held for an answer."""
    bench.make_schema("flights")

    def refused(*_: object, **__: object) -> Remote:
        bench.world.fail("load_schema", *["denied"] * 9)
        raise Conflict("Schema flights was changed meanwhile.", kind=Kind.SCHEMA)

    monkeypatch.setattr(MemorySchemas, "alter", refused)
    with pytest.raises(ProviderUnavailable):  # the Conflict led to one more try, which asks for the schema
        alter_a_schema(bench)
    assert Intent.objects.latest("created_at").state == Intent.State.ABORTED
    assert not Reservation.objects.exists()


# Views


@pytest.mark.parametrize("write", OF_VIEWS, ids=str)
def test_a_write_of_a_view_that_was_tried_twice(views_bench: Bench, write: Write) -> None:
    """The second try is refused: there is such a view, it has changed, or it is gone."""
    after, _ = undisturbed(views_bench, write)
    before = prepared(views_bench, write)
    (verb,) = write.calls
    views_bench.world.fail(verb, "twice")
    assert perform(views_bench, write, Cell()).error is None
    assert ended(views_bench, write, before, after).state == Intent.State.COMMITTED
    assert views_bench.world.calls(verb) == 1


@pytest.mark.parametrize("refusal", [AlreadyExists, Conflict, NotFound])
@pytest.mark.parametrize("write", OF_VIEWS, ids=str)
def test_a_refusal_that_a_second_try_may_get_is_looked_into(
    views_bench: Bench, write: Write, refusal: type[MetalakeError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing was done, it is the answer, and all is as before; but for what is made again on a new state."""
    write.prepare(views_bench)
    before = views_bench.there()
    (verb,) = write.calls

    def refused(*_: object, **__: object) -> Remote:
        raise refusal("Refused at once.", kind=Kind.VIEW)

    monkeypatch.setattr(MemoryViews, VERBS[verb].method, refused)
    with pytest.raises(refusal, match="Refused at once"):
        write.act(views_bench)
    assert Intent.objects.latest("created_at").state == Intent.State.ABORTED
    assert not Reservation.objects.exists() and views_bench.there() == before


def test_a_view_that_others_alter_meanwhile_keeps_both_changes(
    views_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    alteration = next(write for write in OF_VIEWS if write.name == "alter a view")
    alteration.prepare(views_bench)
    real = intents.carry

    def changed_before(actor: Any, decide: Any, **how: Any) -> Intent:
        monkeypatch.setattr(intents, "carry", real)
        with views_bench.world.open() as state:
            state["tables"][PLACE]["definition"]["comment"] = "by others"
        return real(actor, decide, **how)

    monkeypatch.setattr(intents, "carry", changed_before)
    alteration.act(views_bench)
    assert views_bench.world.calls("alter_view") == 2
    with views_bench.world.open() as state:
        there = state["tables"][PLACE]["definition"]
    assert (there["comment"], there["properties"]["team"]) == ("by others", "ops")
    assert ViewVersion.objects.filter(view__view_name="delays").count() == 3, "made, changed by others, altered"


def test_a_namesake_of_others_is_no_view_of_ours(views_bench: Bench) -> None:
    """It was made at the moment when ours was: its name is theirs, and nothing of it is touched."""
    views_bench.make_schema("flights")
    views_bench.world.fail("create_view", "dropped")
    views_bench.world.put_view("flights", "delays", comment="theirs")
    with pytest.raises((AlreadyExists, OutcomeUnknown)):
        views_bench.make_view("flights", "delays")
    settle_all()
    with views_bench.world.open() as state:
        assert state["tables"][PLACE]["definition"]["comment"] == "theirs"
    assert Intent.objects.latest("created_at").state == Intent.State.ABORTED
