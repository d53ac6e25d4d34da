"""What our own database says when it cannot: what is told, what is logged, what is certain."""

from __future__ import annotations

import logging
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    IntegrityError,
    InternalError,
    OperationalError,
    connection,
    connections,
    transaction,
)
from django.test import Client
from psycopg.errors import lookup

from authz import snapshot
from authz.actor import NOBODY, Actor
from authz.models import AuditEntry, User
from authz.transactions import write
from catalogs.services import browsing
from metalake import database_errors, refusal_audit
from metalake.errors import Forbidden, MetalakeError, OutcomeUnknown, StoreUnavailable
from metalake.logs import note_failure
from metalake.models import Outbox
from metalake.rest.exceptions import error_response
from metalake.sqlite.base import DatabaseWrapper
from tests.cases import each

pytestmark = pytest.mark.store


def nobody() -> Actor:
    return Actor(NOBODY, "nobody", snapshot.latest())


def leave_a_row(actor: Actor) -> None:
    Outbox.objects.create(topic="left", payload={"text": "x" * 100_000})


def refused(act: Callable[[Actor], object] = leave_a_row) -> MetalakeError:
    with pytest.raises(MetalakeError) as told:
        write(nobody(), act, holds=None)
    assert not Outbox.objects.filter(topic="left").exists()
    return told.value


def logged(error: MetalakeError, caplog: pytest.LogCaptureFixture) -> str:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "metalake.logs"):
        note_failure(error)
    return caplog.messages[0]


def run_sql(sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


def only_on(vendor: str) -> None:
    if connection.vendor != vendor:
        pytest.skip(f"not offered: this is {vendor}'s own")


@contextmanager
def limit(name: str, milliseconds: int) -> Iterator[None]:
    own = connections[DEFAULT_DB_ALIAS]
    if isinstance(own, DatabaseWrapper):  # whose writers wait for those of this process, too
        own.wait_at_most(milliseconds / 1000)
    else:
        run_sql(f"SET {name} = {milliseconds}")
    try:
        yield
    finally:
        connection.close()  # the next one has the settings' own limits
        if isinstance(own, DatabaseWrapper):
            own._patience = None


@contextmanager
def held_elsewhere() -> Iterator[None]:
    """Another connection changes the row of the policy's epoch and does not end."""
    held, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            run_sql("UPDATE authz_policyepoch SET value = value WHERE id = 1")
            held.set()
            may_end.wait(60)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    try:
        yield
    finally:
        may_end.set()
        holder.join()


@pytest.mark.django_db(transaction=True)
def test_who_waited_for_a_lock_may_come_back(caplog: pytest.LogCaptureFixture) -> None:
    def change(actor: Actor) -> None:
        leave_a_row(actor)
        run_sql("UPDATE authz_policyepoch SET value = value WHERE id = 1")

    nobody()
    with limit("lock_timeout", 100), held_elsewhere():
        told = refused(change)
    assert isinstance(told, StoreUnavailable)
    answer = error_response(told)
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    code = "5 OperationalError" if connection.vendor == "sqlite" else "55P03 LockNotAvailable"
    assert f"[lock timeout ({code}): " in logged(told, caplog)


@pytest.mark.django_db(transaction=True)
def test_a_note_of_a_refusal_waits_for_no_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted, and told when there is a turn: others' limits are as they were."""
    monkeypatch.setattr(refusal_audit, "BRIEFLY", 0.05)
    monkeypatch.setattr(settings, "METALAKE_LIMITS", settings.METALAKE_LIMITS._replace(lock=1e6))
    only_on("sqlite")
    refusal_audit.forget()
    with held_elsewhere():
        refusal_audit.refused("mia", "GET /x", Forbidden("No."))
        assert not AuditEntry.objects.exists()
        assert run_sql("PRAGMA busy_timeout") == [(1_000_000_000,)]
    connection.close()
    refusal_audit.flush(everything=True)
    assert AuditEntry.objects.get().details["more"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_took_too_long_changed_nothing(caplog: pytest.LogCaptureFixture) -> None:
    only_on("postgresql")

    def dawdle(actor: Actor) -> None:
        leave_a_row(actor)
        run_sql("SELECT pg_sleep(60)")

    with limit("statement_timeout", 200):
        told = refused(dawdle)
    assert isinstance(told, StoreUnavailable)
    assert "[statement timeout (57014 QueryCanceled): " in logged(told, caplog)


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_stood_still_changed_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Though it is the commit that is told so."""
    only_on("postgresql")

    def stand_still(actor: Actor) -> None:
        leave_a_row(actor)
        pid = run_sql("SELECT pg_backend_pid()")[0][0]
        with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as watcher:
            gone = "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s"
            while not watcher.execute(gone, [pid]).fetchone()[0]:
                watcher.rollback()  # each transaction sees these anew

    with limit("idle_in_transaction_session_timeout", 200):
        told = refused(stand_still)
    assert isinstance(told, StoreUnavailable), told
    assert "[idle transaction (25P03 IdleInTransactionSessionTimeout): " in logged(told, caplog)


@pytest.mark.django_db(transaction=True)
def test_a_commit_without_an_answer_is_unknown() -> None:
    """The session ends between the last statement and the commit: it might as well have ended after it."""
    only_on("postgresql")

    def lose(actor: Actor) -> None:
        leave_a_row(actor)
        pid = run_sql("SELECT pg_backend_pid()")[0][0]
        with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as other:
            other.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])

    assert isinstance(refused(lose), OutcomeUnknown)


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_read_only_says_so(caplog: pytest.LogCaptureFixture) -> None:
    run_sql("PRAGMA query_only = ON" if connection.vendor == "sqlite" else "SET default_transaction_read_only = on")
    try:
        told = refused()
    finally:
        connection.close()
    assert isinstance(told, StoreUnavailable)
    assert "[read-only database (" in logged(told, caplog)


@pytest.mark.django_db(transaction=True)
def test_a_full_disk_at_the_commit_is_known_not_to_have_committed(caplog: pytest.LogCaptureFixture) -> None:
    """Here no file may grow: the pages of the transaction are written by its commit, and cannot be."""
    only_on("sqlite")
    nobody()
    run_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        with pytest.raises(MetalakeError) as told:
            write(nobody(), leave_a_row, holds=None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    connection.close()
    assert not Outbox.objects.filter(topic="left").exists()
    assert isinstance(told.value, StoreUnavailable), told.value
    assert "disk" not in error_response(told.value).content.decode()
    assert "[disk full (778 OperationalError): disk I/O error]" in logged(told.value, caplog)


@pytest.mark.django_db(transaction=True)
def test_a_database_that_may_not_grow_says_so(caplog: pytest.LogCaptureFixture) -> None:
    only_on("sqlite")
    run_sql("VACUUM")  # no page that other tests left is free
    run_sql(f"PRAGMA max_page_count = {run_sql('PRAGMA page_count')[0][0]}")
    try:
        told = refused()
    finally:
        connection.close()
    assert "[disk full (13 OperationalError): database or disk is full]" in logged(told, caplog)


@pytest.mark.django_db(transaction=True)
def test_too_many_clients_leave_their_reason(caplog: pytest.LogCaptureFixture) -> None:
    only_on("postgresql")
    run_sql("DROP ROLE IF EXISTS few")
    run_sql("CREATE ROLE few LOGIN CONNECTION LIMIT 0")
    known = connection.settings_dict["USER"]
    connection.close()
    connection.settings_dict["USER"] = "few"
    try:
        with pytest.raises(MetalakeError) as told:
            write(Actor(NOBODY, "nobody", snapshot.latest()), leave_a_row, holds=None)
    except OperationalError as failure:
        told_as = database_errors.unavailable(failure)
        assert told_as is not None
        assert "[too many connections (OperationalError): " in logged(told_as, caplog)
    else:
        assert "[too many connections (OperationalError): " in logged(told.value, caplog)
    finally:
        connection.settings_dict["USER"] = known
        connection.close()
        run_sql("DROP ROLE few")


def of(driver: Exception, wrapped: type[Exception] = OperationalError) -> Exception:
    try:
        raise wrapped(*driver.args) from driver
    except wrapped as failure:
        return failure


@each(
    "failure, name",
    [
        (of(lookup("53100")("could not extend file")), "disk full"),
        (of(lookup("53300")("sorry")), "too many connections"),
        (
            of(psycopg.OperationalError("FATAL: sorry, too many clients already")),
            "too many connections",
        ),
        (of(lookup("25006")("cannot execute UPDATE"), InternalError), "read-only database"),
        (of(lookup("57P01")("terminating connection")), "database stops or starts"),
        (of(psycopg.OperationalError("FATAL:  the database system is starting up")), "database stops or starts"),
        (of(psycopg.OperationalError("server closed the connection unexpectedly")), "no connection"),
        (of(psycopg.OperationalError("the connection is closed")), "no connection"),
        (of(lookup("08006")("x")), "no connection"),
        (of(lookup("58030")("x")), "database failed"),
    ],
)
def test_each_cause_has_its_name(failure: Exception, name: str) -> None:
    cause = database_errors.cause_of(failure)
    assert cause is not None and cause.name == name
    assert not database_errors.is_undone(failure), "nothing says that the commit was answered"


@pytest.mark.parametrize(
    "fault",
    [of(lookup("23505")("Key (a)=(7)"), IntegrityError), of(lookup("XX000")("x"), InternalError), KeyError("x")],
)
def test_a_fault_of_ours_is_no_failure_of_the_database(fault: Exception) -> None:
    assert database_errors.unavailable(fault) is None
    assert "7" not in database_errors.log_text(fault)


def test_the_log_has_one_line_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.DATABASES["default"], "PASSWORD", "correct horse")
    said = database_errors.log_text(
        of(psycopg.OperationalError("connection failed: password=correct horse\n\tDETAIL: (7)"))
    )
    assert said == "no connection (OperationalError): connection failed: password=******"
    assert database_errors.log_text(DatabaseError("values (7)")) == "DatabaseError"


@pytest.mark.django_db
def test_a_page_for_which_the_database_failed_may_be_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> None:
        raise of(lookup("55P03")("canceling statement due to lock timeout"))

    browser = Client(raise_request_exception=False)
    browser.force_login(User.objects.create_user("ana"))
    monkeypatch.setattr(browsing, "top_level", fails)
    answer = browser.get("/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert b"lock timeout" not in answer.content
