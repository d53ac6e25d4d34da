"""Whoever reads the audit by place misses nothing that commits late."""

from __future__ import annotations

import threading

import pytest
from django.db import connection, transaction
from django.utils import timezone

from access.explain import audit_log
from authz.models import AuditEntry
from metalake.errors import ProviderBusy

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="not offered: it has one writer"),
]


def add() -> int:
    return AuditEntry.objects.create(at=timezone.now(), actor="x", event="y.made", object_id=1).pk


class Late(threading.Thread):
    """Adds a row, and commits when it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.has_added, self.may_commit = threading.Event(), threading.Event()

    def run(self) -> None:
        try:
            with transaction.atomic():
                add()
                self.has_added.set()
                self.may_commit.wait(20)
        finally:
            connection.close()


@pytest.fixture
def late() -> Late:
    thread = Late()
    thread.start()
    assert thread.has_added.wait(10)
    return thread


def test_an_earlier_row_that_is_not_committed_is_waited_for(late: Late) -> None:
    last = add()
    threading.Timer(0.3, late.may_commit.set).start()
    assert audit_log.last_place() == last
    assert AuditEntry.objects.filter(pk__lt=last).count() == 1
    late.join()


def test_it_is_not_waited_for_without_end(late: Late, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "PATIENCE", 0.2)
    last = add()
    with pytest.raises(ProviderBusy, match="still being made"):
        audit_log.last_place()
    late.may_commit.set()
    late.join()
    assert audit_log.last_place() == last


def test_what_begins_later_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "PAUSE", 0.0)
    add()
    assert audit_log._writers() == set()
