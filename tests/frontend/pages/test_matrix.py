"""The matrix: many questions at once, as the API answers them, with a link that asks them again."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlsplit

import pytest
from django.test import Client

from access.explain.queries import MAX_QUESTIONS
from tests.frontend.conftest import sign_in

Ids = dict[str, int]
TABLE, SCHEMA = "lake.orders:eu.sales", "lake.orders:eu"


def ask(client: Client, ids: Ids, status: int = 200, **query: object) -> str:
    answer = client.post(f"/metalakes/{ids['demo']}/matrix", query)
    assert answer.status_code == status, answer.content[-600:]
    return unescape(answer.content.decode())


def answers(page: str) -> list[list[str]]:
    body = re.search(r"<tbody>.*?</tbody>", page, re.DOTALL)
    assert body
    lines = re.findall(r"<tr>.*?</tr>", body[0], re.DOTALL)
    cells = [re.findall(r"<t[hd].*?</t[hd]>", line, re.DOTALL) for line in lines]
    return [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in line] for line in cells]


@pytest.mark.store
def test_people_objects_and_privileges_make_a_table_that_can_be_shared(admin: Client, ids: Ids) -> None:
    asked = {
        "people": "rita\nmia\n\nrita",
        "objects": f"{TABLE}\n{SCHEMA}",
        "privilege": ["use_schema", "select_table"],
    }
    page = ask(admin, ids, 200, **asked)
    table = [
        [TABLE, "rita", "n/a", "yes"],
        [TABLE, "mia", "n/a", "no"],
        [SCHEMA, "rita", "yes", "yes"],
        [SCHEMA, "mia", "no", "no"],
    ]
    assert answers(page) == table
    assert f'href="/objects/{ids["sales"]}/why?user=mia&privilege=select_table"' in page
    link = re.search(r'readonly value="([^"]+)"', page)
    assert link
    parts = urlsplit(link[1])
    assert answers(unescape(admin.get(f"{parts.path}?{parts.query}").content.decode())) == table


def test_a_name_that_nobody_has_is_no_answer(admin: Client, rita: Client, ids: Ids) -> None:
    asked = {"people": "rita\nNobody", "objects": TABLE, "privilege": ["use_schema", "select_table"]}
    page = ask(admin, ids, 200, **asked)
    assert answers(page) == [[TABLE, "rita", "n/a", "yes"], [TABLE, "Nobody", "no such user"]]
    assert "Nobody here is called <strong>Nobody</strong>" in page
    assert answers(ask(rita, ids, 200, **asked | {"objects": "lake.payroll"}))[1][2:] == ["no", "no"]


@pytest.mark.parametrize(
    ("on", "ticked"),
    [
        ("", ["use_catalog", "use_schema", "select_table", "modify_table"]),
        (TABLE, ["use_catalog", "use_schema", "select_table", "modify_table"]),
        ("view lake.orders:eu.totals", ["select_view", "alter_view", "drop_view", "manage_grants"]),
        ("a.b.c.d", ["use_catalog", "use_schema", "select_table", "modify_table"]),
    ],
)
def test_it_begins_with_privileges_that_mean_something_on_the_object(
    admin: Client, ids: Ids, on: str, ticked: list[str]
) -> None:
    page = admin.get(f"/metalakes/{ids['demo']}/matrix", {"on": on}).content.decode()
    assert re.findall(r'name="privilege" value="(\w+)"[^>]* checked', page) == ticked


def test_hidden_and_missing_are_both_no(ids: Ids) -> None:
    rita = sign_in("rita")
    page = ask(rita, ids, people="rita", objects="lake.payroll\nlake.nothing", privilege=["use_schema"])
    assert answers(page) == [["lake.payroll", "rita", "no"], ["lake.nothing", "rita", "no"]]
    assert "/why?" not in page


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ({"objects": "a.b.c.d"}, 422, "'a.b.c.d' is no object: write a path"),
        ({"objects": ".."}, 400, "is not the full name of a table"),
        ({"privilege": ["fly"]}, 422, "fly is no privilege"),
        ({"people": ""}, 422, "This field is required"),
        ({"asOf": "soon"}, 422, "'soon' is no moment: write it like"),
        ({"people": "\n".join(f"u{n}" for n in range(MAX_QUESTIONS + 1))}, 422, "These are 1,001 questions"),
        ({"people": "\n".join(f"u{n}" for n in range(10_000))}, 422, "These are 10,000 questions"),
    ],
)
def test_bad_input_is_answered_in_place(
    admin: Client, ids: Ids, query: dict[str, object], status: int, says: str
) -> None:
    page = ask(admin, ids, status, **{"people": "rita", "objects": TABLE, "privilege": ["select_table"]} | query)
    assert says in page
    assert '<textarea name="people"' in page


def test_others_are_asked_about_by_who_may_grant(rita: Client, ids: Ids) -> None:
    page = ask(rita, ids, 403, people="rita\nmia", objects=TABLE, privilege=["select_table"])
    assert "questions[1]: rita may not read who has access to table" in page
    assert "<tbody>" not in page


def test_it_belongs_to_the_metalakes_members(otto: Client, ids: Ids) -> None:
    assert otto.get(f"/metalakes/{ids['demo']}/matrix").status_code == 404
