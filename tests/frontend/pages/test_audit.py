"""The audit of a metalake on its page: filtered, followed, proven, and as files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any
from urllib.parse import quote

import pytest
from django.core.management import call_command
from django.test import Client

from access.explain import audit_search
from access.usage import writer
from authz import usage_counter
from authz.callers.identity import issue_token
from authz.models import AuditEntry, User
from frontend.pages import audit
from metalake import refusal_audit
from metalake.errors import Forbidden
from metalake.kinds import Kind
from tests.demo import give
from tests.frontend.conftest import sign_in
from tests.frontend.hostile import SOME
from tests.frontend.test_pages import Ids, text

PART = {"HX-Request": "true", "HX-Target": "entries"}


@pytest.fixture
def at(ids: Ids) -> str:
    refusal_audit.forget()
    return f"/metalakes/{ids['demo']}/audit"


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The record of use may be made, without a thread of its own."""
    monkeypatch.setattr(usage_counter, "_listeners", [])
    monkeypatch.setattr(writer, "_alone", writer.Writer())
    usage_counter.take()
    yield
    usage_counter.take()


def says(page: str) -> list[str]:
    cells = re.findall(r'<td role="cell">(.*?)</td>', page)
    return [re.sub(r"<[^>]+>", "", cell) for cell in cells]


def test_it_is_a_section_and_each_person_and_object_is_followed_with_a_click(admin: Client, at: str, ids: Ids) -> None:
    give("rita", Kind.TABLE, "lake.orders:eu.sales", "select_table", role="steward")
    page = text(admin, at)
    assert f'<a href="{at}" aria-current="page">Audit</a>' in page
    everything = says(page)
    (follow,) = set(re.findall(r'href="(\?on=table[^"]+)"', page))
    followed = says(text(admin, f"{at}{follow}"))
    assert 0 < len(followed) < len(everything)
    assert says(text(admin, f"{at}?user=admin&event=table")) == ["created"]
    assert says(text(admin, f"{at}?user=nobody")) == []
    assert f"{at}?on=table+lake.orders%3Aeu.sales" in text(admin, f"/objects/{ids['sales']}/history")


def test_it_comes_in_pages_and_says_where_it_stopped(admin: Client, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = says(text(admin, at))
    monkeypatch.setattr(audit, "PAGE", 2)
    seen, path = [], at
    while path:
        page = text(admin, path)
        seen += says(page)
        older = re.search(r'rel="next" href="([^"]+)"', page)
        path = f"{at}{older[1]}" if older else ""
    assert seen == everything
    monkeypatch.setattr(audit_search, "SCANNED", 2)
    assert "Search further back" in text(admin, f"{at}?event=metalake")


def test_what_is_wrong_is_said_and_the_form_stays(admin: Client, rita: Client, at: str) -> None:
    for query, status, reason in (
        ("on=lake.none", 404, "does not exist"),
        ("on=a.b.c.d", 422, "is no object"),
        ("event=everything", 422, "none of the choices"),
        ("since=tomorrow", 422, "is no moment"),
        ("since=2026-02-01&until=2026-01-01", 422, "ends before it begins"),
        ("last=decade", 422, "none of the choices"),
    ):
        page = text(admin, f"{at}?user=me&{query}", status)
        assert reason in page and 'value="me"' in page, query
        part = admin.get(f"{at}?{query}", headers=PART).content.decode()
        assert reason in part and "<html" not in part
        assert admin.get(f"{at}.csv?{query}").status_code in (400, 404, 422)
    hidden, missing = (text(rita, f"{at}?on=lake.{name}", 404) for name in ("payroll", "payrolm"))
    assert hidden.replace("payroll", "payrolm") == missing
    assert "may not read" in text(rita, f"{at}?on=lake.orders:eu", 403)
    for string in SOME:
        for field in ("user", "on", "event", "outcome", "last", "since", "before"):
            assert admin.get(f"{at}?{field}={quote(string)}").status_code in (200, 404, 422), (field, string)


def test_each_reads_what_they_may(admin: Client, rita: Client, otto: Client, at: str) -> None:
    refusal_audit.refused("rita", "DELETE /api/metalakes/demo", Forbidden("rita may not drop metalake demo."), "demo")
    assert says(text(rita, at)) == ["refused rita may not drop metalake demo."]
    assert "Proof of the history" not in text(rita, at)
    assert "refused rita may not" in says(text(admin, f"{at}?outcome=refusals"))[0]
    text(otto, at, 404)
    give("rita", Kind.SCHEMA, "lake.orders:eu", "manage_grants", role="steward")
    page = text(sign_in("rita"), at)
    assert "lake.orders:eu.sales" in page and "payroll" not in page


def test_the_proof_says_when_it_was_verified(admin: Client, at: str) -> None:
    assert "Last verified</dt><dd>never" in text(admin, at)
    call_command("verify_history", stdout=StringIO())
    assert "intact up to" in text(admin, at)
    AuditEntry.objects.filter(event="history.verified").update(
        event="history.broken", details={"position": 3, "says": "x"}
    )
    assert "first at position 3" in text(admin, at)


def test_it_is_a_file(admin: Client, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def files() -> Iterator[str]:
        for end in ("csv", "jsonl"):
            yield b"".join(admin.get(f"{at}.{end}").streaming_content).decode()  # type: ignore[attr-defined]

    table, lines = files()
    head, *entries, end = map(json.loads, lines.splitlines())
    assert (head, end) == ({"metalake": "demo"}, {"end": True})
    assert len(entries) == AuditEntry.objects.filter(metalake_id__isnull=False).count() == len(table.splitlines()) - 1
    monkeypatch.setattr(audit_search, "AT_ONCE", 1)
    monkeypatch.setattr(audit_search, "MOST_EXPORTED", 1)
    table, lines = files()
    assert audit.CUT in table and "cutAt" in lines.splitlines()[-2]


def test_refusals_of_an_object_come_from_the_record_of_use(
    admin: Client, rita: Client, at: str, ids: Ids, settings: Any, uses: None
) -> None:
    assert "Refused there" not in text(admin, f"{at}?on=lake")
    settings.METALAKE_USE_DAYS = 90
    assert "Nobody was refused anything." in text(admin, f"{at}?on=lake")
    text(rita, f"/objects/{ids['eu']}/grant", 403)
    bearer = {"Authorization": f"Bearer {issue_token(User.objects.get(username='rita'), 'spark')}"}
    assert Client().get("/api/metalakes/demo/catalogs/lake/schemas/payroll", headers=bearer).status_code == 404
    writer.flush()
    page = text(admin, f"{at}?on=lake")
    refused = page[page.index("Refused there") :]
    assert "grant on schema" in refused and "lake.payroll" in refused and "answered as missing" in refused
    assert "rita" not in text(admin, f"{at}?on=lake.payroll&user=mia").split("Refused there")[1]
    give("mia", Kind.CATALOG, "lake", "manage_grants", "use_catalog", role="steward")
    give("mia", Kind.SCHEMA, "lake.payroll", "deny manage_grants", role="not_there")
    assert "payroll" not in text(sign_in("mia"), f"{at}?on=lake").split("Refused there")[1]
