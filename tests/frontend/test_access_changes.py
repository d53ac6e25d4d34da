"""When access to an object changed, and two moments compared."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from metalake.kinds import Kind
from tests.demo import give

Ids = dict[str, int]


def show(client: Client, path: str, status: int = 200, **query: str) -> str:
    answer = client.get(path, query)
    assert answer.status_code == status, answer.content[-600:]
    return unescape(answer.content.decode())


@pytest.mark.store
def test_each_change_leads_to_what_was_then_and_to_who_gained(admin: Client, ids: Ids) -> None:
    page = show(admin, f"/objects/{ids['sales']}/access/changes")
    newest = re.findall(r"<li>.*?</li>", page.split('class="moments"')[1], re.DOTALL)[0]
    assert "rita holds role" in newest and "1 person gained or lost" in newest
    then, compared = re.findall(r'href="([^"]+)"', newest)
    assert "asOf=" in then and "rita" in show(admin, then)
    (gained,) = re.findall(r"<tr.*?</tr>", show(admin, compared).split("</thead>")[1], re.DOTALL)
    assert "<strong>rita</strong>" in gained and "<code>select_table</code>" in gained and "<s>" not in gained


@pytest.mark.store
def test_two_moments_are_compared(admin: Client, ids: Ids) -> None:
    before = timezone.now().isoformat()
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table", role="all")
    give("rita", Kind.CATALOG, "lake", "deny select_table", role="embargo")
    page = show(admin, f"/objects/{ids['sales']}/access/compare", 200, **{"from": before})
    rows = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL)[1:]]
    assert [row.split()[0] for row in rows] == ["mia", "rita"]
    assert "<s><code>select_table</code></s>" in page and "by admin" in rows[1]
    nothing = show(admin, f"/objects/{ids['payroll']}/access/compare", 200, **{"from": timezone.now().isoformat()})
    assert "Nobody gained or lost anything here" in nothing


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ({"from": ""}, 422, "This field is required"),
        ({"from": "never"}, 422, "'never' is no moment: write it like"),
        ({"from": "2026-02-01", "to": "2026-01-01"}, 422, "The first moment has to be before the second"),
        ({"from": "9999-12-31T23:59:59.999999Z"}, 422, "The first moment has to be before the second"),
    ],
)
def test_bad_moments_are_answered_in_place(
    admin: Client, ids: Ids, query: dict[str, str], status: int, says: str
) -> None:
    page = show(admin, f"/objects/{ids['sales']}/access/compare", status, **query)
    assert says in page and 'name="from"' in page


def test_changes_are_for_who_may_grant(rita: Client, otto: Client, ids: Ids) -> None:
    for tail in ("changes", "compare?from=2026-01-01"):
        assert rita.get(f"/objects/{ids['sales']}/access/{tail}").status_code == 403
        assert otto.get(f"/objects/{ids['sales']}/access/{tail}").status_code == 404
