"""The record of use: what requests asked the evaluator, counted in memory, written together, read by who may."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from access.usage import queries, retention, writer
from authz import operations, usage_counter
from authz.models import Role, Use, UseCaller, UseObject, UseQuestion, UseWriter
from authz.objects import by_ids
from catalogs.services import leaves
from metalake import request_context
from metalake.kinds import Kind
from metalake.lineage import Address
from tests.authz.small_world import Wire, World

OF_T = "metalakes/acme/access/objects/table/lake.A:B.t/use"
OWN = "metalakes/acme/access/use"
TO_T = ("use_catalog@lake", "use_schema@lake.A", "select_table@lake.A:B.t")


@pytest.fixture(autouse=True)
def recorded(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The record is made, without a thread of its own."""
    settings.METALAKE_USE_DAYS = 90
    monkeypatch.setattr(usage_counter, "_listeners", [])
    monkeypatch.setattr(writer, "_alone", writer.Writer())
    usage_counter.take()
    yield
    usage_counter.take()


def uses(answer: tuple[int, dict[str, Any]], *fields: str) -> list[tuple[Any, ...]]:
    assert answer[0] == 200, answer
    return [tuple(line.get(field) for field in fields) for line in answer[1]["uses"]]


def ask(wire: Wire, name: str, **headers: Any) -> int:
    return wire("GET", f"metalakes/acme/access/objects/table/lake.A:B.{name}/changes", **headers)[0]


@pytest.mark.store
def test_allowed_refused_and_hidden_questions_are_told(world: World, wire: Wire) -> None:
    world.give("mia", *TO_T)
    usage_counter.take()
    assert [ask(wire, "t"), ask(wire, "t"), ask(wire, "t", user="mia"), ask(wire, "t", user="nils")] == [
        200,
        200,
        403,
        404,
    ]
    assert writer.flush()
    told = uses(wire("GET", OF_T), "user", "operation", "outcome", "wire", "times")
    assert told == [
        ("mia", "read_access_to_leaf", "refused", "native", 1),
        ("nils", "read_access_to_leaf", "hidden", "native", 1),
        ("olga", "read_access_to_leaf", "allowed", "native", 2),
    ]


def test_a_missing_object_leaves_no_trace(world: World, wire: Wire) -> None:
    usage_counter.take()
    assert ask(wire, "no such table") == 404
    writer.flush()
    assert not UseObject.objects.exclude(object_id=world.acme.pk).exists()


def test_lists_are_questions_about_their_container(world: World, wire: Wire) -> None:
    usage_counter.take()
    leaves.schema_to_list(world.olga, Address(metalake="acme", catalog="lake", schema="A:B"), Kind.TABLE)
    writer.flush()
    about = UseObject.objects.get(object_id=world.ab.pk)
    question = UseQuestion.objects.get(pk=Use.objects.get(about=about.pk).question)
    assert (question.operation, question.outcome, question.wire) == ("list_tables", "allowed", "worker")


def test_a_request_counts_a_question_once(world: World, wire: Wire) -> None:
    """A change checks its right before and again inside its transaction."""
    usage_counter.take()
    assert wire("POST", "metalakes/acme/groups", {"name": "analysts"})[0] == 200
    counts, _ = usage_counter.take()
    (made,) = [count for question, count in counts.items() if question.operation == "manage_groups"]
    assert made.times == 1


@pytest.mark.store
def test_one_row_is_added_to(world: World, wire: Wire) -> None:
    usage_counter.take()
    for _ in range(3):
        ask(wire, "t")
        assert writer.flush()
    about = UseObject.objects.get(object_id=world.t.pk).pk
    rows = Use.objects.filter(about=about)
    assert 1 <= rows.count() <= 2, "one an hour"
    assert sum(row.times for row in rows) == 3
    assert all(0 <= row.first <= row.last < 3600 for row in rows)


def test_the_engine_is_one_of_a_few_words(world: World, wire: Wire) -> None:
    usage_counter.take()
    for agent in ("PyIceberg/0.12.0", "x" * 5000, "Mozilla/5.0 (X11)", ""):
        ask(wire, "t", headers={"User-Agent": agent})
    counts, _ = usage_counter.take()
    engines = {question.engine for question in counts if question.operation == "read_access_to_leaf"}
    assert engines == {"pyiceberg", "other", "browser", ""}


@pytest.mark.store
def test_active_roles_are_told_apart_and_read_together(world: World, wire: Wire) -> None:
    role = world.give("mia", *TO_T)
    usage_counter.take()
    path = "metalakes/acme/access/users/mia"
    wire("GET", path, user="mia")
    wire("GET", path, user="mia", headers={"X-Gravitino-Active-Roles": role})
    writer.flush()
    actives = UseCaller.objects.filter(user_id=world.users["mia"].pk).values_list("active", flat=True)
    assert sorted(actives, key=str) == sorted([None, [Role.objects.get(name=role).pk]], key=str)
    told = uses(wire("GET", OWN, user="mia"), "operation", "times")
    assert ("load_metalake", 2) in told


def test_own_use_shows_nothing_that_was_hidden(world: World, wire: Wire) -> None:
    usage_counter.take()
    assert ask(wire, "t", user="mia") == 404
    writer.flush()
    status, answer = wire("GET", OWN, user="mia")
    assert status == 200
    assert "lake.A" not in str(answer) and {line["on"]["fullName"] for line in answer["uses"]} == {"acme"}
    assert wire("GET", OWN, user="sam")[0] == 404, "not a member"
    world.give("mia", *TO_T)
    outcomes = {line["outcome"] for line in wire("GET", OWN, user="mia")[1]["uses"]}
    assert outcomes == {"allowed"}, "nor that it was there before they were let in"


def test_others_use_takes_the_right_to_read_their_access(world: World, wire: Wire) -> None:
    assert wire("GET", OF_T, user="nils")[0] == 404
    world.give("nils", *TO_T)
    assert wire("GET", OF_T, user="nils")[0] == 403
    assert wire("GET", f"{OF_T}?since=tomorrow")[0] == 400
    later = (timezone.now() + timedelta(days=1)).isoformat().replace("+00:00", "Z")
    assert wire("GET", f"{OF_T}?since={later}")[0] == 400


def test_it_comes_in_pages(world: World, wire: Wire) -> None:
    world.give("mia", *TO_T)
    usage_counter.take()
    for user in ("olga", "mia", "nils"):
        ask(wire, "t", user=user)
    writer.flush()
    assert [[line["user"] for line in page["uses"]] for page in wire.pages(OF_T, 1)] == [["mia"], ["nils"], ["olga"]]


def test_what_the_store_did_not_take_waits(world: World, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    usage_counter.take()
    ask(wire, "t")

    def breaks(self: writer.Writer, counts: usage_counter.Counts) -> None:
        raise OperationalError("database is locked")

    with monkeypatch.context() as broken:
        broken.setattr(writer.Writer, "_add", breaks)
        assert not writer.flush()
    assert not Use.objects.exists()
    assert writer.flush()
    assert Use.objects.filter(about=UseObject.objects.get(object_id=world.t.pk).pk).exists()


def test_it_is_complete_until_the_slowest_process_wrote(world: World, wire: Wire) -> None:
    now = timezone.now()
    UseWriter.objects.create(process="slow", written_until=now - timedelta(seconds=8))
    UseWriter.objects.create(process="killed", written_until=now - timedelta(hours=1))
    until, gaps = queries.completeness()
    assert until == now - timedelta(seconds=8)
    assert [gap.begins for gap in gaps] == [now - timedelta(hours=1)]
    status, answer = wire("GET", OF_T)
    assert status == 200 and len(answer["gaps"]) == 1


@pytest.mark.store
def test_what_is_too_old_is_removed_in_steps(world: World, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "AT_ONCE", 10)
    monkeypatch.setattr(retention, "STEPS", 2)
    this = int(time.time() // 3600)
    old = [Use(hour=this - 91 * 24, about=n, caller=1, question=1, times=1, first=0, last=0) for n in range(25)]
    fresh = Use(hour=this, about=1, caller=1, question=1, times=1, first=0, last=0)
    Use.objects.bulk_create([*old, fresh])
    retention.remove()
    assert Use.objects.count() == 6
    retention.remove()
    assert [row.hour for row in Use.objects.all()] == [this]
    settings.METALAKE_USE_DAYS = 0
    usage_counter.note(world.olga, *_any_question(world))
    assert usage_counter.waiting() == 0, "off"


def _any_question(world: World) -> tuple[Any, ...]:
    return operations.LOAD_TABLE, by_ids([world.t.pk])[world.t.pk], usage_counter.ALLOWED


def test_threads_lose_nothing_and_memory_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    actor, question = world.olga, _any_question(world)

    def ask_often() -> None:
        for _ in range(2000):
            usage_counter.note(actor, *question)

    threads = [threading.Thread(target=ask_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts, lost = usage_counter.take()
    assert (sum(count.times for count in counts.values()), lost) == (8000, 0)
    monkeypatch.setattr(usage_counter, "MOST", 0)
    usage_counter.note(actor, *question)
    assert usage_counter.take() == ({}, 1)


def test_what_a_request_does_itself_counts_with_it(world: World) -> None:
    question = _any_question(world)
    came_by = request_context.door.set(request_context.Door("native", "curl", set()))
    identifier = request_context.request_id.set("r1")
    try:
        usage_counter.note(world.olga, *question)
        with request_context.for_request("r1"):
            usage_counter.note(world.olga, *question)
        with request_context.for_request("another"):
            usage_counter.note(world.olga, *question)
    finally:
        request_context.request_id.reset(identifier)
        request_context.door.reset(came_by)
    counts, _ = usage_counter.take()
    assert {(each.wire, each.engine): count.times for each, count in counts.items()} == {
        ("native", "curl"): 1,
        ("worker", ""): 1,
    }
