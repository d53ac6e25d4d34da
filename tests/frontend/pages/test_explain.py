"""Why somebody may or may not: the answer as paths, what would change a no, and that nothing hidden shows."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from authz.services import people, roles
from metalake.kinds import Kind
from tests.demo import actor, give
from tests.frontend.conftest import add_schema, sign_in

Ids = dict[str, int]


def ask(client: Client, object_id: int, status: int = 200, **query: str) -> str:
    """The page of a question, as a browser shows it without its markup's entities."""
    answer = client.get(f"/objects/{object_id}/why", query)
    assert answer.status_code == status, answer.content[-600:]
    return unescape(re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", answer.content.decode()))


def words(markup: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", markup).split())


def paths(page: str) -> list[list[str]]:
    """The boxes of each path, as "sort name"."""
    drawings = re.findall(r'<svg class="drawing wide".*?</svg>', page, re.DOTALL)
    return [re.findall(r"<title>([^<]*)</title>", drawn) for drawn in drawings]


def verdict(page: str) -> str:
    line = re.search(r'<h2 class="verdict-line.*?</h2>', page, re.DOTALL)
    assert line
    return words(line[0])


@pytest.mark.store
def test_a_yes_is_a_path_from_the_person_to_the_object(admin: Client, ids: Ids) -> None:
    people.add_group(actor("admin"), "demo", "auditors")
    people.set_group_users(actor("admin"), "demo", "auditors", add=["mia"])
    roles.assign_roles(actor("admin"), "demo", "group", "auditors", ["reader", "visitor"])
    page = ask(admin, ids["sales"], user="mia", privilege="select_table")
    assert verdict(page).startswith("Yes. mia may use select_table on table sales")
    path = ["person mia", "group auditors", "role reader", "allow select_table on schema eu", "table sales"]
    assert path in paths(page)
    assert "mia is in group auditors, which holds role reader." in page, "the same in words"
    assert "What would make it a yes" not in page


def test_several_ways_are_several_paths(admin: Client, ids: Ids) -> None:
    give("rita", Kind.TABLE, "lake.orders:eu.sales", "select_table", role="clerks")
    drawn = paths(ask(admin, ids["sales"], user="rita", privilege="select_table"))
    assert ["person rita", "role clerks", "allow select_table on table sales"] in drawn
    assert ["person rita", "role reader", "allow select_table on schema eu", "table sales"] in drawn
    owner = ask(admin, ids["sales"], user="admin", privilege="select_table")
    assert "is enough" in owner
    assert ["person admin", "owner of metalake demo", "table sales"] in paths(owner)


@pytest.mark.store
def test_a_no_marks_the_broken_link_and_leads_to_the_grant(admin: Client, ids: Ids) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "select_table", role="half")
    page = ask(admin, ids["sales"], user="mia", privilege="select_table")
    assert verdict(page).startswith("No. mia may not use")
    assert ["person mia", "no use_schema on schema eu", "table sales"] in paths(page)
    assert f'href="/objects/{ids["eu"]}/grant?principal=user%3Amia&privilege=use_schema"' in page.replace("&amp;", "&")


def test_a_deny_is_the_broken_link(admin: Client, ids: Ids) -> None:
    give("rita", Kind.CATALOG, "lake", "deny select_table", role="embargo")
    page = ask(admin, ids["sales"], user="rita", privilege="select_table")
    assert ["person rita", "role embargo", "deny select_table on catalog lake", "table sales"] in paths(page)
    assert f"/objects/{ids['lake']}/revoke?role=embargo&privilege=select_table&effect=deny" in page


def test_who_may_not_make_the_change_sends_a_link(rita: Client, ids: Ids) -> None:
    page = ask(rita, ids["sales"], privilege="modify_table")
    assert verdict(page).startswith("No. rita may not use modify_table")
    assert "Ask the owner, admin" in page and "Ask for access" in page
    assert 'value="http://testserver/objects/' not in page, "one way to ask is enough"
    give("rita", Kind.TABLE, "lake.orders:eu.sales", "deny modify_table")
    assert 'value="http://testserver/objects/' in ask(rita, ids["sales"], privilege="modify_table")
    assert "Grant modify_table</a>" not in page


def test_others_are_asked_about_by_who_may_grant(rita: Client, ids: Ids) -> None:
    pages = [ask(rita, ids["sales"], 422, user=user, privilege="select_table") for user in ("mia", "nobody")]
    assert "You may ask about yourself alone" in pages[0]
    assert pages[0].replace("mia", "nobody") == pages[1], "whether somebody exists is not told"


@pytest.mark.store
def test_a_moment_of_the_past_has_reasons_and_no_changes(admin: Client, ids: Ids) -> None:
    before = timezone.now()
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "select_table", role="late")
    assert verdict(ask(admin, ids["sales"], user="mia", privilege="select_table")).startswith("Yes")
    page = ask(admin, ids["sales"], user="mia", privilege="select_table", asOf=before.isoformat())
    assert verdict(page).startswith("No. mia could not use select_table")
    assert "What would make it a yes" not in page
    (again,) = re.findall(r'href="\?([^"]*)">Ask about now', page)
    assert again == "user=mia&privilege=select_table"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"privilege": "fly"}, "fly is no privilege that can be used here"),
        ({"privilege": "create_catalog"}, "create_catalog is no privilege that can be used here"),
        ({"privilege": "select_table", "asOf": "yesterday"}, "'yesterday' is no moment: write it like"),
        ({"privilege": "select_table", "asOf": "9999-12-31T23:59:59.999999Z"}, "lies ahead"),
        ({"privilege": "select_table", "asOf": "1999-01-01"}, "ask about a later moment"),
        ({"privilege": "select_table", "user": "a\x00b"}, "Null characters are not allowed"),
        ({"privilege": "select_table", "user": "x" * 5000}, "is no member of metalake demo"),
    ],
)
def test_bad_input_is_answered_in_place_and_stays_in_the_form(
    admin: Client, ids: Ids, query: dict[str, str], says: str
) -> None:
    answer = admin.get(f"/objects/{ids['sales']}/why", {"user": "rita"} | query)
    page = unescape(answer.content.decode())
    assert answer.status_code in (200, 400, 422)
    assert says in page
    assert 'role="tree"' in page and 'name="user"' in page
    alone = admin.get(
        f"/objects/{ids['sales']}/why",
        {"user": "rita"} | query,
        headers={"HX-Request": "true", "HX-Target": "answer"},
    )
    assert says in unescape(alone.content.decode()) and b"<form" not in alone.content


def test_hidden_objects_have_no_question(rita: Client, otto: Client, ids: Ids) -> None:
    missing = ask(rita, 4_611_686_018_427_387_904, 404, privilege="use_schema")
    assert ask(rita, ids["payroll"], 404, privilege="use_schema") == missing
    assert ask(otto, ids["sales"], 404, privilege="select_table") == ask(otto, 4_611_686_018_427_387_904, 404)


def test_an_object_that_was_not_there_yet_is_said_in_place(admin: Client, ids: Ids) -> None:
    before = timezone.now()
    fresh = add_schema("fresh")
    page = ask(admin, fresh, 404, privilege="use_schema", asOf=before.isoformat())
    assert "Schema lake.fresh does not exist." in page
    assert 'role="tree"' in page and 'name="user"' in page


def test_a_grant_above_that_is_hidden_is_drawn_without_a_name(ids: Ids) -> None:
    """Of nested schemas the outer one is hidden from who may use only the inner one's name."""
    give("mia", Kind.CATALOG, "lake", "use_catalog", role="walker")
    give("mia", Kind.SCHEMA, "lake.orders", "deny use_schema", role="shut")
    give("mia", Kind.SCHEMA, "lake.orders:eu", "use_schema", "manage_grants", role="open")
    page = ask(sign_in("mia"), ids["lake"], privilege="use_catalog")
    assert verdict(page).startswith("Yes")
    assert "shut" not in page
