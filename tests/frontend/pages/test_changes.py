"""When access to an object changed, and two moments compared."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from metalake.kinds import Kind
from tests.demo import give
from tests.frontend.conftest import sign_in

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


def links(markup: str) -> list[str]:
    return re.findall(r'data-moment="[^"]+" href="([^"]+)"', markup)


def test_the_moments_lead_back_to_the_page_that_was_asked(admin: Client, ids: Ids) -> None:
    asked = {"user": "rita", "privilege": "select_table"}
    for page, query, says in (
        ("why", asked, "Yes. rita could use select_table"),
        ("access", {"by": "role", "q": "read"}, "reader"),
    ):
        shown = show(admin, f"/objects/{ids['sales']}/{page}", 200, **query)
        (url,) = re.findall(r'hx-get="([^"]+/access/changes[^"]*)"', shown)
        newest, *_, oldest = links(show(admin, url))
        assert newest.startswith(f"/objects/{ids['sales']}/{page}?") and says in words(show(admin, newest))
        assert says not in words(show(admin, oldest)), "nobody had been granted anything then"
        marks = admin.get(url, headers={"HX-Request": "true", "HX-Target": "changes"}).content.decode()
        assert "<moment-slider" in marks and "<main" not in marks and len(links(unescape(marks))) > 2


def words(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", markup).split()).replace(" .", ".")


def test_the_changes_of_a_matrix_are_those_of_its_objects_that_one_may_grant_on(ids: Ids) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "manage_grants", role="granter")
    query = {"people": "rita", "objects": "lake.orders\nlake\nlake.missing", "privilege": "use_schema"}
    path = f"/metalakes/{ids['demo']}/matrix"
    page = show(sign_in("mia"), f"{path}/changes", 200, **query)
    newest = links(page)[0]
    assert newest.startswith(f"{path}?people=rita&") and "Answers as of" in words(show(sign_in("mia"), newest))
    assert "lake.orders: It was made." in words(page) and "lake: It was made." in words(page)
    assert page.count("mia holds role granter") == 1, "what changed both is told once"
    names = ("lake", "lake.payroll", "missing")
    bodies = [show(sign_in("rita"), f"{path}/changes", objects=name).split("<main")[1] for name in names]
    assert all("Name objects that you may grant on" in body for body in bodies)
    assert len({body.replace(f'"{name}"', "") for body, name in zip(bodies, names, strict=True)}) == 1
    assert show(sign_in("otto"), f"{path}/changes", 404)


def test_what_is_left_out_is_said(admin: Client, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/objects/{ids['sales']}/access/changes"
    whole = links(show(admin, path))
    assert "are not listed" not in show(admin, path)
    monkeypatch.setattr("frontend.pages.changes.MOST_MOMENTS", len(whole))
    assert "are not listed" not in show(admin, path), "as many as may be told are all there are"
    monkeypatch.setattr("frontend.pages.changes.MOST_MOMENTS", len(whole) - 1)
    assert links(show(admin, path)) == whole[:-1] and "are not listed" in show(admin, path)


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
