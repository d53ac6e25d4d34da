"""Listeners learn of every operation of both wires, before it and after it, and change no answer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from threading import Thread

import pytest
from django.core.exceptions import ImproperlyConfigured

from metalake import listeners
from metalake.blocking import BeginAgain, may_block, short_reads
from metalake.kinds import Kind
from metalake.listeners import Notice, Outcome
from tests.catalogs.callers import Caller as Native
from tests.demo import add_member, give, make_demo
from tests.iceberg_rest.world import COLUMNS
from tests.iceberg_rest.world import Caller as Iceberg

pytestmark = pytest.mark.django_db
CATALOGS = "metalakes/demo/catalogs"
LAKE = f"{CATALOGS}/lake"
NYC = f"{LAKE}/schemas/nyc"


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Notice]]:
    """What a listener learns from now on, in a metalake `demo` whose owner is `admin`."""
    make_demo()
    heard: list[Notice] = []
    monkeypatch.setattr(listeners, "listeners", ())
    listeners.listen(heard.append)
    yield heard
    for before, after in zip(heard[::2], heard[1::2], strict=True):
        assert before.outcome is None and after.outcome is not None, "each beginning has its end"
        assert (before.operation, before.names, before.at) == (after.operation, after.names, after.at)


def endings(notices: list[Notice]) -> list[tuple[str, str, str, int | None]]:
    """Wire, operation, outcome and status of each operation, which are then forgotten."""
    ended = [(each.wire, each.operation, str(each.outcome), each.status) for each in notices if each.outcome]
    notices.clear()
    return ended


def test_both_wires_announce_writes_reads_and_lists(notices: list[Notice]) -> None:
    native, iceberg = Native("admin"), Iceberg("admin")
    assert native.send("POST", f"{LAKE}/schemas", {"name": "nyc"}).status == 200
    assert iceberg.post("namespaces/nyc/tables", {"name": "flights", "schema": COLUMNS}).status == 200
    names = {"catalog": "lake", "schema": "nyc", "table": "flights"}
    for wire, load in (
        ("native", lambda: native.get(f"{NYC}/tables/flights").status),
        ("iceberg", lambda: iceberg.get("namespaces/nyc/tables/flights").status),
    ):
        notices.clear()
        assert load() == 200
        before, after = notices
        assert (before.wire, before.operation, before.actor, before.metalake) == (wire, "load_table", "admin", "demo")
        assert before.names == names and before.request_id and before.error == ""
        assert after.outcome is Outcome.OK and after.status == 200 and after.seconds > 0
    notices.clear()
    native.get(f"{NYC}/tables")
    iceberg.get("namespaces/nyc/tables")
    native.get(LAKE)
    iceberg.delete("namespaces/nyc/tables/flights")
    native.delete(NYC)
    assert endings(notices) == [
        ("native", "list_tables", "ok", 200),
        ("iceberg", "list_tables", "ok", 200),
        ("native", "load_catalog", "ok", 200),
        ("iceberg", "drop_table", "ok", 204),
        ("native", "drop_schema", "ok", 200),
    ]


def test_what_is_refused_is_announced_with_its_error(notices: list[Notice]) -> None:
    add_member("mia")
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    mia = Native("mia")
    assert mia.send("POST", f"{LAKE}/schemas", {"name": "nyc"}).status == 403
    assert [(each.actor, each.error, each.names.get("catalog")) for each in notices] == [
        ("mia", "", "lake"),
        ("mia", "Forbidden", "lake"),
    ]
    notices.clear()
    Iceberg("mia").get("namespaces/nyc/tables/flights")
    assert [each.error for each in notices] == ["", "NotFound"]
    notices.clear()
    assert Native("admin").send("POST", f"{LAKE}/schemas", b"{").status == 400
    assert Iceberg("admin").post("namespaces", b"{").status == 400
    assert [each[1:] for each in endings(notices)] == [("create_schema", "refused", 400)] * 2


def test_a_caller_who_is_not_known_has_no_name(notices: list[Notice]) -> None:
    assert Native("admin", "a wrong password").get(LAKE).status == 401
    assert Iceberg("admin", headers={"HTTP_AUTHORIZATION": ""}).get("namespaces").status == 401
    assert {(each.actor, each.metalake, *each.names) for each in notices} == {("", "")}
    assert [each[2:] for each in endings(notices)] == [("refused", 401)] * 2


def test_names_that_cannot_be_read_stay_out(notices: list[Notice]) -> None:
    assert Native("admin").get(f"{CATALOGS}/%FF").status == 400
    assert [(each.actor, dict(each.names)) for each in notices] == [("admin", {})] * 2


def test_what_is_no_operation_is_not_announced(notices: list[Notice]) -> None:
    Native("admin").send("PATCH", NYC, {})
    Native("admin").get("nothing/here")
    Iceberg("admin").ask("PUT", "namespaces/nyc")
    Iceberg("admin").get("nothing/here/at/all")
    assert notices == []


def test_a_failure_of_the_server_is_announced(notices: list[Notice], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalogs.services.tables.list_tables", lambda *_, **__: 1 / 0)
    assert Iceberg("admin").get("namespaces/nyc/tables").status == 500
    assert (notices[-1].outcome, notices[-1].status, notices[-1].error) == (Outcome.FAILED, 500, "ZeroDivisionError")


def test_a_read_that_begins_again_is_announced_twice(notices: list[Notice], monkeypatch: pytest.MonkeyPatch) -> None:
    assert Native("admin").get(LAKE).status == 200  # a password is verified by a thread that may wait
    notices.clear()
    monkeypatch.setattr("catalogs.services.tables.list_tables", lambda *_, **__: may_block())
    monkeypatch.setattr("catalogs.services.catalogs.load_catalog", lambda *_, **__: may_block())
    ways: list[BaseException] = []

    def ask() -> None:
        with short_reads():
            for read in (lambda: Iceberg("admin").get("namespaces/nyc/tables"), lambda: Native("admin").get(LAKE)):
                try:
                    read()
                except BeginAgain as again:
                    ways.append(again)

    ask()
    assert len(ways) == 2
    assert [each[2:] for each in endings(notices)] == [("again", None)] * 2


def test_a_listener_that_fails_or_waits_changes_no_answer(
    notices: list[Notice], caplog: pytest.LogCaptureFixture
) -> None:
    def fails(notice: Notice) -> None:
        raise RuntimeError("no room")

    def waits(notice: Notice) -> None:
        may_block()

    def alters(notice: Notice) -> None:
        notice.names["catalog"] = "another"

    assert Native("admin").get(LAKE).status == 200
    last: list[Notice] = []
    for listener in (fails, waits, alters, last.append, last.append):
        listeners.listen(listener)
    with caplog.at_level(logging.ERROR, "metalake.listeners"), short_reads():
        answer = Iceberg("admin").get("namespaces")
    assert answer.status == 200
    for listener in (fails, waits, alters):
        assert caplog.text.count(f"{listener.__qualname__} failed") == 2
    assert [each.outcome for each in last] == [None, Outcome.OK], "each is registered once"


def test_listeners_in_several_threads(notices: list[Notice]) -> None:
    """A notice is a value of its own request."""
    threads = [Thread(target=hooks_of, args=(f"table {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.operation for each in notices if each.outcome) == [f"table {number}" for number in range(8)]
    notices.sort(key=lambda each: (each.operation, each.outcome is not None))


def hooks_of(operation: str) -> None:
    with listeners.announcing("native", operation) as announcer:
        announcer.begins("admin", {"metalake": "demo"})
        announcer.answers(200)


def test_listeners_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "listeners", ())
    listeners.listen_to_names(["tests.metalake.test_listeners.endings", "tests.metalake.test_listeners.endings"])
    assert [listener.__qualname__ for listener in listeners.listeners] == ["endings"]
    for name, reason in (("nowhere.at.all", "cannot be imported"), ("tests.metalake.test_listeners.NYC", "be called")):
        with pytest.raises(ImproperlyConfigured, match=f"METALAKE_LISTENERS: {name} .*{reason}"):
            listeners.listen_to_names([name])


def test_nobody_listens_unless_asked() -> None:
    assert listeners.listeners == ()
