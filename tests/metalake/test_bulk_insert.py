"""Rows that are inserted by statements of fixed text read as those that Django inserts."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from authz.models import AuditEntry, User
from catalogs.models import Table
from metalake import bulk_insert
from metalake.bulk_insert import insert
from metalake.kinds import Kind
from metalake.models import Outbox, Securable

pytestmark = [pytest.mark.store, pytest.mark.django_db]
AT = datetime(2026, 11, 25, 1, 2, 3, 456789, tzinfo=UTC)


def entry(number: int) -> AuditEntry:
    return AuditEntry(
        at=AT,
        actor="mia",
        event="table.created",
        kind=Kind.TABLE,
        object_id=2**62 + number,
        full_name="lake.\u00e4.100%",
        metalake_id=None,
        details={"n": number, "text": "it's \u2603"},
    )


def test_values_are_as_django_writes_them() -> None:
    entry(1).save()
    insert((AuditEntry, [entry(1)]))
    django, ours = (
        {field.name: getattr(row, field.name) for field in AuditEntry._meta.fields if field.name != "id"}
        for row in AuditEntry.objects.order_by("id")
    )
    assert ours == django
    assert (ours["at"], ours["kind"], ours["details"]["text"]) == (AT, "table", "it's \u2603")


def test_a_row_of_a_model_that_extends_another_goes_to_both() -> None:
    owner = User.objects.create(username="mia")
    row = Table.made(
        Kind.TABLE, "t", None, creator="mia", owner_user_id=owner.pk, metadata_location="file:///t", uuid=uuid4()
    )
    insert((Securable, [row]), (Table, [row]))
    read = Table.objects.get(pk=row.id)
    assert (read.name, read.uuid, read.metadata_location) == ("t", row.uuid, "file:///t")


def test_more_rows_than_go_into_a_statement_are_all_inserted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_insert, "AT_ONCE", 3)
    insert((AuditEntry, [entry(number) for number in range(10)]), (Outbox, [Outbox(topic="none", payload={})] * 4))
    assert [row.details["n"] for row in AuditEntry.objects.order_by("id")] == list(range(10))
    assert Outbox.objects.filter(topic="none").count() == 4


def test_several_tables_are_one_statement_where_the_database_has_such() -> None:
    with CaptureQueriesContext(connection) as captured:
        insert((AuditEntry, [entry(1)]), (AuditEntry, []), (Outbox, [Outbox(topic="none", payload={})]))
    assert len(captured.captured_queries) == (1 if connection.vendor == "postgresql" else 2)
    with CaptureQueriesContext(connection) as captured:
        insert((AuditEntry, []))
    assert not captured.captured_queries


def test_a_broken_constraint_is_django_s_error() -> None:
    owner = User.objects.create(username="mia")
    row = Securable.made(Kind.METALAKE, "m", None, creator="mia", owner_user_id=owner.pk)
    insert((Securable, [row]))
    with pytest.raises(IntegrityError):
        insert((Securable, [row]))
