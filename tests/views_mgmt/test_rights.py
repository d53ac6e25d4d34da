"""Rights on one view, from a proposal to the history: each question about rights answers for views, too."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.catalogs.callers import Caller
from tests.providers.world import World
from tests.views_mgmt.conftest import VIEWS, body

pytestmark = [pytest.mark.store, pytest.mark.django_db]
ACCESS = "metalakes/demo/access"
NAME = "flights.nyc.delays"
VIEW = {"type": "view", "fullName": NAME}


def test_a_view_is_granted_explained_and_taken_back(flights: World, admin: Caller, mia: Caller) -> None:
    assert admin.post(VIEWS, body()).status == admin.post(VIEWS, body("other")).status == 200
    wish = VIEW | {"users": ["mia"], "privileges": [{"name": "select_view", "condition": "allow"}]}
    more = wish | {"privileges": [{"name": name, "condition": "allow"} for name in ("select_view", "drop_view")]}
    planned = admin.post(f"{ACCESS}/proposals", more)["proposal"]["plan"]
    assert planned["summary"].endswith("; 1 more privilege changes hands"), planned["summary"]
    plan = admin.post(f"{ACCESS}/proposals", wish)["proposal"]["plan"]
    assert plan["summary"].startswith("1 user gains select_view on 1 view;"), plan["summary"]
    assert mia.get(f"{VIEWS}/delays").status == 404
    assert admin.post(f"{ACCESS}/apply", {"token": plan["token"]}).status == 200
    assert mia.get(f"{VIEWS}/delays")["view"]["name"] == "delays"
    assert [each["name"] for each in mia.get(VIEWS)["identifiers"]] == ["delays"]

    question = f"{ACCESS}/explain?user=mia&type=view&fullName={quote(NAME)}&privilege="
    why = admin.get(f"{question}select_view")["explanation"]
    assert why["allowed"] and f"select_view on view {NAME}" in str(why["because"])
    why_not = admin.get(f"{question}alter_view")["explanation"]
    assert not why_not["allowed"] and why_not["changes"][0][0]["privilege"] == "alter_view"
    asked = {"user": "mia", **VIEW, "privilege": "drop_view"}
    assert admin.post(f"{ACCESS}/check", {"questions": [asked]})["answers"] == [{"allowed": False}]

    reached = {each["user"]: each["privileges"] for each in admin.get(f"{ACCESS}/objects/view/{NAME}")["access"]}
    assert reached["mia"] == ["select_view"]
    assert VIEW | {"privileges": ["select_view"]} in admin.get(f"{ACCESS}/users/mia")["objects"]
    (moment, *_) = admin.get(f"{ACCESS}/objects/view/{NAME}/moments")["moments"]
    assert "mia" in moment["says"] or f"select_view on view {NAME}" in moment["says"]

    file = admin.get(f"{ACCESS}/export")["access"]
    (role,) = (role for role in file["roles"] if role["users"] == ["mia"])
    role["grants"] = [each for each in role["grants"] if each["type"] != "view"]
    taken = admin.post(f"{ACCESS}/plan", file)["plan"]
    assert "1 user loses select_view on 1 view" in taken["summary"], taken
    assert admin.post(f"{ACCESS}/apply", {"token": taken["token"]}).status == 200
    assert mia.get(f"{VIEWS}/delays").status == 404
