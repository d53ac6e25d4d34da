"""The Access tab: every way to an object, narrowed, page by page and as a file; and who sees which of them."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from authz.services import people, roles
from catalogs.services import tables
from frontend import csv_files
from frontend.pages import access
from metalake.kinds import Kind
from metalake.lineage import Address
from tests.cases import each
from tests.demo import actor, add_member, give

Ids = dict[str, int]


def show(client: Client, object_id: int, status: int = 200, **query: str) -> str:
    answer = client.get(f"/objects/{object_id}/access", query)
    assert answer.status_code == status, answer.content[-600:]
    return unescape(answer.content.decode())


def rows(page: str) -> list[str]:
    """Each way as a line of words, with the name that it is folded below, without the link that edits its role."""
    lines = []
    for fold in re.findall(r"<details.*?</details>", page.partition('class="folds"')[2], re.DOTALL):
        (name,) = re.findall(r'<span class="holder">(.*?)</span>', fold)
        body = re.search(r"<tbody.*?</tbody>", fold, re.DOTALL)
        lines += [f"{name} {row}" for row in re.findall(r"<tr.*?</tr>", body[0] if body else "", re.DOTALL)]
    return [" ".join(re.sub(r"<[^>]+>", " ", line).replace("Edit role", "").split()) for line in lines]


def as_file(client: Client, object_id: int, **query: str) -> list[dict[str, str]]:
    answer = client.get(f"/objects/{object_id}/access.csv", query)
    assert answer.status_code == 200
    text = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(text)))


def add_group(name: str, *users: str, holds: tuple[str, ...] = ()) -> None:
    people.add_group(actor("admin"), "demo", name)
    people.set_group_users(actor("admin"), "demo", name, add=list(users))
    roles.assign_roles(actor("admin"), "demo", "group", name, list(holds))


@pytest.mark.store
def test_the_owner_sees_every_way(admin: Client, ids: Ids) -> None:
    add_group("auditors", "mia", holds=("reader", "visitor"))
    lines = rows(show(admin, ids["sales"]))
    assert any(line.startswith("admin owner everything") for line in lines)
    assert any(
        line.startswith("mia allow select_table role reader through group auditors from schema eu admin")
        for line in lines
    )
    assert any(line.startswith("rita allow select_table role reader from schema eu") for line in lines)


def test_a_deny_comes_first_and_strikes_what_it_beats(admin: Client, ids: Ids) -> None:
    give("rita", Kind.CATALOG, "lake", "deny select_table", role="embargo")
    page = show(admin, ids["sales"], privilege="select_table")
    lines = rows(page)
    ritas = [line for line in lines if line.startswith("rita")]
    assert ritas[0].startswith("rita deny select_table role embargo from catalog lake")
    beaten = next(line for line in lines if line.startswith("rita allow select_table"))
    assert "Beaten: role embargo denies select_table on catalog lake." in beaten
    assert "<s><code>select_table</code></s>" in page


def test_a_broken_chain_names_the_grant_that_mends_it(admin: Client, ids: Ids) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "select_table", role="half")
    page = show(admin, ids["sales"], q="mia")
    assert "select_table, but no use_schema on schema lake.orders:eu" in page
    query = "principal=user%3Amia&privilege=use_schema"
    assert f'href="/objects/{ids["eu"]}/grant?{query}"' in page


def test_every_row_leads_to_its_reason(admin: Client, ids: Ids) -> None:
    page = show(admin, ids["sales"], q="rita")
    links = re.findall(r'data-why href="([^"]+)"', page)
    assert len(links) == len(rows(page)) == 3
    for link in links:
        assert "rita may use" in unescape(admin.get(link).content.decode()), link


@pytest.mark.store
def test_ways_are_narrowed(admin: Client, ids: Ids) -> None:
    give("mia", Kind.TABLE, "lake.orders:eu.sales", "select_table", role="half")
    for query, expected in (
        ({"by": "role"}, {"half", "reader", "visitor"}),
        ({"by": "role", "show": "direct"}, {"half"}),
        ({"by": "role", "show": "inherited"}, {"reader", "visitor"}),
        ({"by": "user", "show": "effective", "privilege": "select_table"}, {"admin", "rita"}),
        ({"by": "user", "q": "MI"}, {"mia", "admin"}),
        ({"by": "group"}, set()),
        ({"can": "reader"}, {"admin", "rita"}),
        ({"can": "manager"}, {"admin"}),
    ):
        assert {line.split()[0] for line in rows(show(admin, ids["sales"], 200, **query))} == expected, query
    assert "No way fits" in show(admin, ids["sales"], q="nobody like that")


def test_pages_follow_each_other(admin: Client, ids: Ids, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "PAGE", 2)
    for number in range(5):
        add_member(f"u{number}")
        give(f"u{number}", Kind.TABLE, "lake.orders:eu.sales", "select_table", role=f"role{number}")
    whole = [line["user"] for line in as_file(admin, ids["sales"], q="u")]
    seen: set[str] = set()
    path = f"/objects/{ids['sales']}/access"
    link = "?q=u"
    while link:
        page = unescape(admin.get(path + link).content.decode())
        names = {line.split()[0] for line in rows(page)}
        assert len(names) <= 2 and not names & seen
        seen |= names
        following = re.search(r'rel="next" href="([^"]+)"', page)
        link = following[1] if following else ""
    assert seen == set(whole) and len(seen) > 4


def test_people_are_counted_and_several_compared(admin: Client, ids: Ids) -> None:
    add_group("auditors", "mia", "rita", holds=("reader",))
    page = show(admin, ids["sales"])
    assert "3 people" in page and '<span class="may"><strong>Reader</strong>' in " ".join(page.split())
    assert "1 group" in (groups := show(admin, ids["sales"], by="group")) and "2 people" in groups
    form = re.search(r'<form id="chosen".*?</form>', page, re.DOTALL)
    assert form
    chosen = [*re.findall(r'name="(\w+)" value="([^"]+)"', form[0]), ("people", "mia"), ("people", "rita")]
    path = re.search(r'action="([^"]+)"', form[0])
    assert path
    answer = unescape(admin.get(f"{path[1]}?{urlencode(chosen)}").content.decode())
    assert "<td>mia</td>" in answer and "<td>rita</td>" in answer and "manage_grants" in answer


def test_what_one_person_owns_on_the_way_up_is_one_row(admin: Client, ids: Ids) -> None:
    lines = [line for line in rows(show(admin, ids["sales"])) if " owner " in line]
    assert len(lines) == 1
    assert "this table and schema eu , schema orders , catalog lake , metalake demo" in lines[0]
    assert len([line for line in as_file(admin, ids["sales"]) if line["owner"] == "True"]) == 5, "the file has each"


@pytest.mark.store
def test_others_see_their_own_ways_alone(rita: Client, ids: Ids) -> None:
    give("mia", Kind.CATALOG, "lake", "modify_table", role="boss")
    page = show(rita, ids["sales"])
    assert "You see your own ways alone" in page
    assert {line.split()[0] for line in rows(page)} == {"rita"}
    for query in ({"by": "role"}, {"by": "group"}, {"q": "mia"}, {"privilege": "modify_table"}):
        page = show(rita, ids["sales"], 200, **query)
        assert "boss" not in page and "admin owner" not in " ".join(rows(page))
    assert {line["user"] for line in as_file(rita, ids["sales"])} == {"rita"}


@pytest.mark.store
def test_a_moment_of_the_past_is_shown(admin: Client, ids: Ids) -> None:
    before = timezone.now()
    give("mia", Kind.TABLE, "lake.orders:eu.sales", "select_table", role="late")
    assert "mia" in " ".join(rows(show(admin, ids["sales"])))
    page = show(admin, ids["sales"], asOf=before.isoformat())
    assert "mia" not in " ".join(rows(page)) and "rita" in " ".join(rows(page))
    assert "/grant?" not in page, "the past is not mended"
    why = re.findall(r'data-why href="([^"]+)"', page)
    assert why and all("asOf=" in link for link in why)


@pytest.mark.store
def test_what_was_renamed_since_is_shown_as_of_then(admin: Client, ids: Ids) -> None:
    before = timezone.now()
    sales = Address(metalake="demo", catalog="lake", schema=("orders", "eu"), leaf="sales")
    tables.rename_table(actor("admin"), sales, replace(sales, leaf="sold"))
    page = show(admin, ids["sales"], asOf=before.isoformat())
    assert "rita" in " ".join(rows(page)) and "It was called lake.orders:eu.sales then." in page
    assert "It was called" not in show(admin, ids["sales"])


def test_access_and_why_take_twelve_statements(admin: Client, ids: Ids, django_assert_max_num_queries: Any) -> None:
    for path in (f"/objects/{ids['sales']}/access", f"/objects/{ids['sales']}/why?user=rita&privilege=select_table"):
        admin.get(path)
        with django_assert_max_num_queries(12):
            assert admin.get(path).status_code == 200


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ({"asOf": "yesterday"}, 422, "'yesterday' is no moment: write it like"),
        ({"asOf": "2999-01-01"}, 400, "lies ahead"),
        ({"by": "cat"}, 422, "cat is none of the choices"),
        ({"show": "cat"}, 422, "cat is none of the choices"),
        ({"privilege": "create_catalog"}, 422, "create_catalog is none of the choices"),
        ({"q": "x" * 2000}, 422, "at most 1000 characters"),
        ({"q": "a\x00"}, 422, "Null characters are not allowed"),
        ({"can": "cat"}, 422, "cat is none of the choices"),
    ],
)
def test_bad_input_is_answered_in_place(admin: Client, ids: Ids, query: dict[str, str], status: int, says: str) -> None:
    page = show(admin, ids["sales"], status, **query)
    assert says in page
    assert 'role="tree"' in page and 'name="q"' in page
    headers = {"HX-Request": "true", "HX-Target": "ways"}
    alone = admin.get(f"/objects/{ids['sales']}/access", query, headers=headers)
    assert says in unescape(alone.content.decode()) and b"<form" not in alone.content


def test_hidden_is_answered_like_missing(rita: Client, otto: Client, ids: Ids) -> None:
    nowhere = 4_611_686_018_427_387_904
    for client, hidden in ((rita, ids["payroll"]), (otto, ids["sales"])):
        for tail in ("access", "access.csv"):
            answers = [client.get(f"/objects/{id}/{tail}") for id in (nowhere, hidden)]
            assert [answer.status_code for answer in answers] == [404, 404]
            pages = {re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", a.content.decode()) for a in answers}
            assert len(pages) == 1


# The file


def test_the_file_has_what_the_query_shows(admin: Client, ids: Ids) -> None:
    give("rita", Kind.CATALOG, "lake", "deny select_table", role="embargo")
    lines = as_file(admin, ids["sales"], privilege="select_table", q="rita")
    assert [(line["role"], line["effect"], line["verdict"]) for line in lines] == [
        ("embargo", "deny", "effective"),
        ("reader", "allow", "beaten"),
    ]
    assert lines[1]["on"] == "lake.orders:eu" and lines[1]["granted_by"] == "admin"
    answer = admin.get(f"/objects/{ids['sales']}/access.csv")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="access-sales.csv"'
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert admin.get(f"/objects/{ids['sales']}/access.csv?by=cat").status_code == 400


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1+1", '=HYPERLINK("http://x")'])
def test_no_cell_begins_a_formula(admin: Client, ids: Ids, name: str) -> None:
    add_group(name, "mia", holds=("reader",))
    groups = {line["group"] for line in as_file(admin, ids["sales"], q=name)}
    assert groups == {f"'{name}"}


CELLS = {"\tx": "'\tx", "\r=1": "'\r=1", "\n=1": "'\n=1", " =1": "' =1", "\u200b=1": "'\u200b=1", "a=1": "a=1"}


@each("value, written", [*CELLS.items(), (None, ""), (True, "True")])
def test_a_cell_is_text(value: object, written: str) -> None:
    assert csv_files.cell(value) == written


def test_a_file_is_named_by_what_every_system_takes() -> None:
    answer = csv_files.download('a/b\\c:"\r\n..', ["x"], [])
    assert answer.headers["Content-Disposition"] == 'attachment; filename="a_b_c.csv"'
