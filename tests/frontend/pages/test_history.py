"""The tab of an object's history, for whoever may read access to it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from access.usage import writer
from authz import usage_counter
from authz.models import AuditEntry
from frontend.pages import history
from metalake.kinds import Kind
from tests.demo import give
from tests.frontend.test_pages import Ids, text


def lines(page: str) -> list[str]:
    cells = re.findall(r"<td role=\"cell\">(.*?)</td>", page)
    return [re.sub(r"<[^>]*>", "", cell) for cell in cells]


def test_what_was_done_is_shown_in_pages(admin: Client, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        give(None, Kind.TABLE, "lake.orders:eu.sales", "select_table", role=f"r{number}")
    at, made = f"/objects/{ids['sales']}/history", [f"made role r{number} with grants on it" for number in (3, 2, 1, 0)]
    assert lines(text(admin, at)) == [*made, "created"]
    monkeypatch.setattr(history, "SHOWN", 1)
    first = text(admin, f"/objects/{ids['lake']}/history")
    assert lines(first) == ["table lake.orders:eu.sales: made role r3 with grants on it"]
    (older,) = re.findall(r'rel="next" href="([^"]+)"', first)
    assert lines(text(admin, older)) == ["table lake.orders:eu.sales: made role r2 with grants on it"]
    assert "There is nothing more." in text(admin, f"{at}?before=1")
    for query in ("before=x", f"before={'9' * 400}", "before=-1"):
        assert lines(text(admin, f"{at}?{query}")) == made[:1]
    assert lines(text(admin, f"/objects/{ids['demo']}/history")) == ["role r3: created"]


def test_times_have_seconds_where_neighbours_share_the_minute(admin: Client, ids: Ids) -> None:
    def times(*moments: str) -> list[str]:
        AuditEntry.objects.filter(object_id=ids["sales"]).delete()
        for at in moments:
            about = {"object_id": ids["sales"], "kind": Kind.TABLE, "metalake_id": ids["demo"], "details": {}}
            AuditEntry.objects.create(at=f"{at}Z", event="table.altered", actor="admin", **about)
        return re.findall(r"<time[^>]*>([^<]*)</time>", text(admin, f"/objects/{ids['sales']}/history"))

    alike = times("2026-01-01T10:00:01", "2026-01-01T10:00:59", "2026-01-02T10:00:00")
    assert alike == ["2026-01-02 10:00:00 UTC", "2026-01-01 10:00:59 UTC", "2026-01-01 10:00:01 UTC"]
    assert times("2026-01-01T10:00:01", "2026-01-01T10:01:59") == ["2026-01-01 10:01 UTC", "2026-01-01 10:00 UTC"]


def test_it_is_a_tab_for_whoever_may_read_access(admin: Client, rita: Client, ids: Ids) -> None:
    assert "/history" in text(admin, f"/objects/{ids['sales']}")
    assert "/history" not in text(rita, f"/objects/{ids['sales']}")
    text(rita, f"/objects/{ids['sales']}/history", 404)
    give("rita", Kind.TABLE, "lake.orders:eu.sales", "manage_grants", role="steward")
    assert "/history" in text(rita, f"/objects/{ids['sales']}")
    text(rita, f"/objects/{ids['sales']}/history")


def test_who_used_it_is_shown(admin: Client, ids: Ids, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    at = f"/objects/{ids['sales']}/history"
    assert "Who used it" not in text(admin, at), "no record is made"
    settings.METALAKE_USE_DAYS = 90
    monkeypatch.setattr(usage_counter, "_listeners", [])
    monkeypatch.setattr(writer, "_alone", writer.Writer())
    usage_counter.take()
    assert "Nobody asked for it." in text(admin, at)
    writer.flush()
    page = text(admin, at)
    assert "read access to leaf" in page and "complete until" in page
    usage_counter.take()
