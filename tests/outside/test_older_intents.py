"""Intents that were open when the server was upgraded: their steps have a wanted definition that holds the marker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from authz.models import AuditEntry
from catalogs.models import Intent, Reservation
from metalake.request_context import request_id
from outside import intents
from tests.outside.crashes import killed_at, settle_all
from tests.outside.invariants import check_invariants
from tests.outside.writes import BY_NAME, REQUEST, Bench, Write
from tests.providers.world import marked

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

NAMES = ("a chain of four schemas", "alter a schema", "create a table", "alter a table", "rename a table by copying it")
WRITES = [BY_NAME[name] for name in NAMES]
OF_TODAY = {"changes", "expected", "plan", "marker"}


def as_before(intent: Intent) -> None:
    """The row as the version before wrote it."""
    for step in intent.steps:
        arguments = step["arguments"]
        definition = arguments.get("expected") or arguments.get("definition")
        older: dict[str, Any] = {name: value for name, value in arguments.items() if name not in OF_TODAY}
        if definition is not None:
            older["definition"] = marked(definition, arguments["marker"])
        step["arguments"] = older
    intent.save(update_fields=["steps"])


@pytest.fixture
def prepared(benches: dict[str, Bench], write: Write) -> Iterator[Bench]:
    bench = benches[write.catalog]
    write.prepare(bench)
    Intent.objects.all().delete()
    AuditEntry.objects.all().delete()
    token = request_id.set(REQUEST)
    yield bench
    request_id.reset(token)


@pytest.mark.parametrize("write", WRITES, ids=str)
def test_one_that_no_worker_had_yet_is_made(prepared: Bench, write: Write) -> None:
    before = prepared.here(), prepared.there()
    intent = killed_at("promised", lambda: write.act(prepared))
    as_before(intent)
    assert intents.settle(intent.pk, intent.fence)
    assert Intent.objects.get().state == Intent.State.COMMITTED
    assert (prepared.here(), prepared.there()) != before
    assert check_invariants(prepared) == []


@pytest.mark.parametrize("write", WRITES, ids=str)
def test_one_that_was_made_is_published(prepared: Bench, write: Write) -> None:
    last = len(write.calls) - 1
    intent = killed_at(f"after {last}", lambda: write.act(prepared))
    as_before(intent)
    settle_all()
    assert Intent.objects.get().state == Intent.State.COMMITTED
    assert check_invariants(prepared) == []


@pytest.mark.parametrize("write", WRITES, ids=str)
def test_one_that_was_begun_is_taken_back(prepared: Bench, write: Write) -> None:
    before = prepared.here(), prepared.there()
    intent = killed_at("before 0", lambda: write.act(prepared))
    as_before(intent)
    settle_all()
    assert Intent.objects.get().state == Intent.State.ABORTED
    assert (prepared.here(), prepared.there()) == before
    assert not Reservation.objects.exists()


@pytest.mark.parametrize("write", [WRITES[0], WRITES[4]], ids=str)
def test_a_creation_that_others_refused_is_undone(prepared: Bench, write: Write) -> None:
    """The first of several calls was made; what it made is found by the marker in its definition."""
    before = prepared.here(), prepared.there()
    prepared.world.fail(write.calls[0], "", "denied")
    prepared.world.fail(write.calls[1], "denied")
    intent = killed_at("giving up", lambda: write.act(prepared))
    as_before(intent)
    settle_all()
    assert Intent.objects.get().state == Intent.State.ABORTED
    assert (prepared.here(), prepared.there()) == before
