"""Rights that moved between a preview and its applying: what differs from what was shown is marked line by line."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client

from access.plans import undo
from authz.services import roles
from metalake.kinds import Kind
from tests.demo import actor, give
from tests.frontend.pages.test_granting import apply, effective, fields, grant, undo_in

Ids = dict[str, int]
TAGS = re.compile(r"<[^>]*>")


def marks(html: str) -> list[str]:
    """The marked lines as text: "- gone: ...", "new: ...", "changed: ..."."""
    lines = re.findall(r'<(?:li|tr)\b[^>]* class="[^"]*is-(\w+)">(.*?)</(?:li|tr)>', html, re.DOTALL)
    return [f"{mark}: {' '.join(TAGS.sub(' ', text).split())}" for mark, text in lines]


@pytest.mark.store
def test_a_grants_new_preview_marks_what_differs(admin: Client, ids: Ids) -> None:
    html = grant(admin, ids["eu"], more="mia")
    assert marks(html) == []
    give("mia", Kind.CATALOG, "lake", "use_catalog", "select_view", role="guests")
    answer = apply(admin, ids["eu"], html, more="mia")
    html = answer.content.decode()
    assert (answer.status_code, html.count("with a mark where it differs")) == (409, 1)
    lines = marks(html)
    assert "gone: + ALLOW use_catalog on catalog lake gone".casefold() in map(str.casefold, lines)
    assert any(line.startswith("gone: use_catalog gone mia on") for line in lines)
    assert not any("select_table" in line for line in lines), "what is as it was is not marked"
    assert marks(grant(admin, ids["eu"], more="mia")) == []
    assert apply(admin, ids["eu"], html, more="mia").status_code == 302


def test_a_role_that_was_made_meanwhile_is_marked_and_its_grants_are_not(admin: Client, ids: Ids) -> None:
    html = grant(admin, ids["eu"], more="mia")
    roles.create_role(actor("admin"), "demo", "lake_orders_eu_reader")
    answer = apply(admin, ids["eu"], html, more="mia")
    html = answer.content.decode()
    assert answer.status_code == 409 and "Role lake_orders_eu_reader already exists" in html
    assert sorted(marks(html)) == [
        "gone: + Role lake_orders_eu_reader is made gone",
        "gone: + User mia gets role lake_orders_eu_reader gone",
        "new: + Role lake_orders_eu_reader_2 is made new",
        "new: + User mia gets role lake_orders_eu_reader_2 new",
    ]
    assert apply(admin, ids["eu"], html, more="mia").status_code == 302


def test_a_revoke_marks_who_loses_more(admin: Client, ids: Ids) -> None:
    path = f"/objects/{ids['eu']}/revoke"
    sent = {"role": "reader", "privilege": "select_table", "effect": "allow"}
    html = admin.get(path, sent).content.decode()
    give("mia", Kind.CATALOG, "lake", "use_catalog", role="guests")
    roles.assign_roles(actor("admin"), "demo", "user", "mia", ["reader"])
    answer = admin.post(path, sent | fields(html))
    assert answer.status_code == 409
    assert marks(answer.content.decode()) == [
        "changed: select_table changed mia, rita on 1 table and 1 schema before: rita on 1 table and 1 schema"
    ]
    page = admin.post(path, sent | fields(answer.content.decode()), follow=True)
    assert "no longer has allow select_table" in page.content.decode()
    html = admin.get(path, sent | {"privilege": "use_schema"}).content.decode()
    roles.drop_role(actor("admin"), "demo", "reader")
    answer = admin.post(path, sent | {"privilege": "use_schema"} | fields(html))
    assert answer.status_code == 409 and "It cannot be applied any more" in answer.content.decode()


def test_a_change_of_people_marks_what_the_role_holds_by_now(admin: Client, ids: Ids) -> None:
    path, sent = f"/metalakes/{ids['demo']}/people/change", {"what": "assign", "user": "mia", "role": "visitor"}
    html = admin.post(path, sent).content.decode()
    give(None, Kind.CATALOG, "lake", "use_schema", role="more")
    roles.assign_roles(actor("admin"), "demo", "user", "mia", ["more"])
    answer = admin.post(path, sent | fields(html) | {"act": "apply"})
    assert answer.status_code == 409
    assert any(line.startswith("new: use_schema") for line in marks(answer.content.decode()))
    assert admin.post(path, sent | fields(answer.content.decode()) | {"act": "apply"}).status_code == 302


def test_an_undo_that_moved_is_shown_before_it_is_made(admin: Client, ids: Ids) -> None:
    before = effective("mia", "lake", "orders", "eu")
    html = grant(admin, ids["eu"], more="mia")
    path, sent = undo_in(admin.get(apply(admin, ids["eu"], html, more="mia")["Location"]).content.decode())
    plan_undo = undo.plan_undo

    def disturbed(*asked: Any) -> Any:
        planned = plan_undo(*asked)
        roles.unassign_roles(actor("admin"), "demo", "user", "mia", ["lake_orders_eu_reader"])
        return planned

    with patch("frontend.pages.undo.undoing.plan_undo", disturbed):
        answer = admin.post(path, sent)
    html = answer.content.decode()
    assert answer.status_code == 409 and "Undo it as of now?" in html
    assert "gone: − User mia loses role lake_orders_eu_reader gone" in marks(html)  # noqa: RUF001
    (plan,) = re.findall(r'name="plan" value="([^"]+)"', html)
    answer = admin.post(path, {"plan": plan})
    assert answer.status_code == 302
    assert "Undone: drop role lake_orders_eu_reader" in admin.get(answer["Location"]).content.decode()
    assert effective("mia", "lake", "orders", "eu") == before
