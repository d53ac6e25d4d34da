"""Asking for access: what can be asked, by whom, how often; hidden objects are never confirmed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from access.explain.explanations import read_wanted
from access.requests import asking
from access.requests.asking import ask, requests_of, smallest_change, withdraw
from authz.models import AccessRequest
from authz.objects import by_ids
from authz.services import grants, people
from catalogs.services import browsing
from metalake.errors import Conflict, Invalid, MetalakeError, NotFound, TooManyRequests
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.privileges import Privilege
from tests.authz.small_world import World

SELECT, MODIFY = Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE


def at(row: Any) -> Located:
    return by_ids([row.id])[row.id]


def wish(world: World, row: Any, *privileges: Privilege, user: str = "mia", **more: Any) -> AccessRequest:
    asked: dict[str, Any] = {"purpose": "the report of the quarter", "ends": timezone.now() + timedelta(days=7)} | more
    return ask(world.actor(user), at(row), privileges or (MODIFY,), **asked)


@pytest.fixture
def reader(world: World) -> World:
    """mia reads table t."""
    world.give("mia", "use_catalog@lake", "use_schema@lake.A", "select_table@lake.A:B.t")
    return world


@pytest.mark.store
def test_a_request_is_stored_listed_and_audited(reader: World) -> None:
    row = wish(reader, reader.t)
    (mine,) = requests_of(reader.mia, "acme")
    assert mine.row == row and mine.on and mine.on.id == reader.t.id
    (entry,) = reader.events("access.requested")
    assert (entry.actor, entry.object_id, entry.full_name) == ("mia", reader.t.id, "lake.A:B.t")
    assert entry.details["privileges"] == ["modify_table"] and entry.details["purpose"] == row.purpose
    assert requests_of(reader.actor("nils"), "acme") == []


def test_the_smallest_change_is_what_a_grant_alone_would_mend(reader: World) -> None:
    def offer(row: Any, privilege: str | None = None, operation: str | None = None) -> asking.Offer:
        target = at(row)
        return smallest_change(reader.mia, target, read_wanted(target.kind, privilege, operation))

    assert offer(reader.t, "modify_table").privileges == (MODIFY,)
    assert offer(reader.ab, operation="create_table").privileges == (Privilege.CREATE_TABLE,)
    assert offer(reader.t, "select_table") == ((), "You may do this already.")
    assert offer(reader.t, operation="drop_table").says.startswith("No grant alone is enough. Make mia the owner of")
    reader.give("mia", "deny modify_table@lake")
    assert "Lift the DENY of modify_table" in offer(reader.t, "modify_table").says


def test_what_cannot_be_asked_is_refused_with_a_sentence(reader: World) -> None:
    wish(reader, reader.t)
    reader.give("mia", "deny create_table@lake.A")
    for row, privileges, more, says in (
        (reader.t, [SELECT, MODIFY], {}, "may use select_table on table lake.A:B.t already"),
        (reader.t, [MODIFY], {}, "asked for this"),
        (reader.ab, [Privilege.CREATE_TABLE], {}, "a grant alone does not help"),
        (reader.t, [Privilege.CREATE_SCHEMA], {}, "cannot be granted on a table"),
        (reader.ab, [MODIFY], {"purpose": "  "}, "Say what you need it for"),
        (reader.ab, [MODIFY], {"purpose": "x" * 501}, "At most 500"),
        (reader.ab, [MODIFY], {"purpose": "a\x00b"}, "Say what"),
        (reader.ab, [MODIFY], {"ends": timezone.now() - timedelta(days=1)}, "is to end at"),
    ):
        with pytest.raises(Invalid, match=says):
            wish(reader, row, *privileges, **more)
    with pytest.raises(Invalid, match="at least one"):
        ask(reader.mia, at(reader.t), [], "x", timezone.now())
    assert AccessRequest.objects.count() == 1


@pytest.mark.store
def test_a_hidden_object_is_answered_like_a_missing_one(reader: World) -> None:
    """Also an object that was seen when the form was opened, and a metalake of others."""
    hidden = reader.table("hidden", reader.schema("C"))
    target = at(hidden)
    answers = []
    for seek in (
        lambda: ask(reader.mia, target, [SELECT], "x", timezone.now() + timedelta(1)),
        lambda: browsing.locate(reader.mia, hidden.id),
        lambda: browsing.locate(reader.mia, 10_000_000),
    ):
        with pytest.raises(NotFound) as missed:
            seek()
        answers.append(missed.value.message)
    assert answers == ["There is no such object."] * 3
    with pytest.raises(MetalakeError) as refused:
        ask(reader.actor("sam"), at(reader.t), [SELECT], "x", timezone.now() + timedelta(1))
    assert isinstance(refused.value, NotFound) and "acme" in refused.value.message
    assert not AccessRequest.objects.exists() and not reader.events("access.requested")


def test_few_wait_at_once_and_not_many_are_made_in_a_short_time(reader: World, monkeypatch: pytest.MonkeyPatch) -> None:
    reader.give("mia", "select_table@lake.A")
    tables = [reader.table(f"t{n}") for n in range(6)]
    for row in tables[:5]:
        wish(reader, row)
    with pytest.raises(Invalid, match="5 requests of yours wait"):
        wish(reader, tables[5])
    withdraw(reader.mia, "acme", requests_of(reader.mia, "acme")[0].row.pk)
    wish(reader, tables[5])
    monkeypatch.setattr(asking, "MOST_ASKED", 7)
    with pytest.raises(TooManyRequests):
        wish(reader, reader.ab)


def test_only_ones_own_request_is_withdrawn_and_once(reader: World) -> None:
    row = wish(reader, reader.t)
    for user, id in (("nils", row.pk), ("olga", row.pk), ("mia", row.pk + 1)):
        with pytest.raises(NotFound, match="no such request"):
            withdraw(reader.actor(user), "acme", id)
    withdraw(reader.mia, "acme", row.pk)
    with pytest.raises(Conflict, match="withdrawn by mia"):
        withdraw(reader.mia, "acme", row.pk)
    assert len(reader.events("access.request_withdrawn")) == 1


def test_ones_own_requests_say_if_the_object_is_gone_or_hidden(reader: World) -> None:
    wish(reader, reader.t)
    grants.revoke_privileges(reader.olga, "acme", "r1", Kind.TABLE, "lake.A:B.t", [("select_table", "allow")])
    (mine,) = requests_of(reader.mia, "acme")
    assert (mine.on, mine.row.full_name) == (None, "lake.A:B.t")
    people.remove_user(reader.olga, "acme", "mia")
    with pytest.raises(NotFound):
        requests_of(reader.mia, "acme")
