"""The form of a grant without JavaScript, and its parts for htmx: filled, shown, applied, undone, refused in place."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
import yaml
from django.test import Client

from access.plans import blast_radius, plan
from authz.models import Role
from authz.services import people, roles
from catalogs.services import schemas
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.privileges import Privilege
from tests.cases import each
from tests.demo import actor, give
from tests.frontend.conftest import add_table, find, sign_in

Ids = dict[str, int]
READS = "mia may read lake.orders:eu and everything below it"


def effective(user: str, *names: str) -> set[str]:
    from authz import policy

    target = find(Address(metalake="demo", catalog=names[0] if names else None, schema=names[1:] or None))
    return {privilege.value for privilege in policy.rights_on(actor(user), target).effective()}


def fields(html: str) -> dict[str, str]:
    """The hidden fields of the preview."""
    hidden = re.findall(r'<input type="hidden" name="(token|shown|rights_of)" value="([^"]*)">', html)
    return dict(hidden)


def undo_in(html: str) -> tuple[str, dict[str, str]]:
    """Where the toast's button posts what."""
    form = re.search(
        r'<form method="post" action="(/metalakes/\d+/undo[^"]*)">.*?name="token" value="([^"]*)"', html, re.DOTALL
    )
    assert form
    return unescape(form[1]), {"token": form[2]}


def grant(client: Client, object_id: int, status: int = 200, *, part: bool = False, **sent: Any) -> str:
    headers = {"HX-Request": "true"} if part else {}
    answer = client.post(f"/objects/{object_id}/grant", sent, headers=headers)
    assert answer.status_code == status, answer.content[:500]
    return unescape(answer.content.decode())


def apply(client: Client, object_id: int, html: str, **sent: Any) -> Any:
    return client.post(f"/objects/{object_id}/grant", {**sent, **fields(html), "act": "apply"})


@pytest.mark.store
def test_a_grant_is_previewed_applied_and_undone(admin: Client, ids: Ids) -> None:
    before = effective("mia", "lake", "orders", "eu")
    html = grant(admin, ids["eu"], more="mia")
    assert READS in html
    assert "Also give what it takes to get there" in html and "use_catalog" in html
    assert effective("mia", "lake", "orders", "eu") == before, "a preview changes nothing"
    answer = apply(admin, ids["eu"], html, more="mia")
    assert answer.status_code == 302, answer.content[:500]
    assert {"use_catalog", "use_schema", "select_table", "select_view"} <= effective("mia", "lake", "orders", "eu")
    page = admin.get(answer["Location"]).content.decode()
    assert READS in page and ">Undo</button>" in page
    undo = undo_in(page)
    assert READS not in admin.get(answer["Location"]).content.decode(), "it is said once"
    answer = admin.post(*undo)
    assert answer.status_code == 302
    assert effective("mia", "lake", "orders", "eu") == before
    assert "Undone: drop role" in admin.get(answer["Location"]).content.decode()
    answer = admin.post(*undo)
    assert "nothing left to undo" in admin.get(answer["Location"]).content.decode()


def use_ticks(html: str) -> dict[str, str]:
    """The ticks of USE_*: "checked", "disabled" or "" by privilege."""
    return dict(re.findall(r'<input type="checkbox" name="use" value="(\w+)" id="[\w-]+" ?(\w*)>', html))


@pytest.mark.store
def test_each_use_that_is_lacking_has_a_tick_of_its_own(admin: Client, ids: Ids) -> None:
    wish: dict[str, Any] = {"more": "mia", "level": "chosen", "privilege": "select_table"}
    offered: dict[str, Any] = {"offered": ["use_catalog", "use_schema"]}
    html = grant(admin, ids["eu"], **wish)
    assert use_ticks(html) == {"use_catalog": "checked", "use_schema": "checked"}
    html = grant(admin, ids["eu"], **wish, **offered, use=["use_schema"])
    assert use_ticks(html) == {"use_catalog": "", "use_schema": "checked"}
    assert "mia gets no use of select_table without use_catalog on catalog lake." in html
    html = grant(admin, ids["eu"], more="mia", level="chosen", **offered, use=["use_schema"])
    assert '<input type="hidden" name="without" value="use_catalog">' in html, "the choice stays without a preview"
    html = grant(admin, ids["eu"], **wish, without="use_catalog")
    answer = apply(admin, ids["eu"], html, **wish, **offered, use="use_schema")
    assert answer.status_code == 302
    give("mia", Kind.CATALOG, "lake", "use_catalog", role="guests")
    assert effective("mia", "lake", "orders", "eu") == {"use_catalog", "use_schema", "select_table"}


def test_a_use_that_others_may_give_says_who(ids: Ids) -> None:
    give("rita", Kind.SCHEMA, "lake.orders:eu", "manage_grants", role="eu-granters")
    html = grant(sign_in("rita"), ids["eu"], more="mia", level="chosen", privilege="select_table")
    assert use_ticks(html) == {"use_catalog": "disabled", "use_schema": "checked"}
    assert "mia lacks use_catalog on catalog lake, and you may not give it. Ask" in " ".join(html.split())


def test_what_is_applied_is_what_was_shown(admin: Client, ids: Ids) -> None:
    html = grant(admin, ids["eu"], more="mia")
    answer = apply(admin, ids["eu"], html, more="mia", level="manager")
    assert answer.status_code == 422
    assert "changed after this was shown" in answer.content.decode()
    assert effective("mia", "lake", "orders", "eu") == set()
    assert apply(admin, ids["eu"], answer.content.decode(), more="mia", level="manager").status_code == 302
    assert "manage_grants" in effective("mia", "lake", "orders", "eu")


def test_it_is_applied_once(admin: Client, ids: Ids) -> None:
    html = grant(admin, ids["eu"], more="mia")
    assert apply(admin, ids["eu"], html, more="mia").status_code == 302
    roles_then = set(Role.objects.values_list("name", flat=True))
    answer = apply(admin, ids["eu"], html, more="mia")
    assert answer.status_code == 409
    assert "was applied at" in answer.content.decode()
    assert "effective already" in answer.content.decode()
    assert set(Role.objects.values_list("name", flat=True)) == roles_then


def test_rights_that_moved_are_shown_again(admin: Client, ids: Ids) -> None:
    html = grant(admin, ids["eu"], more="mia")
    give("mia", Kind.CATALOG, "lake", "use_catalog", role="guests")
    answer = apply(admin, ids["eu"], html, more="mia")
    assert answer.status_code == 409
    assert "Rights have changed since you looked" in answer.content.decode()
    assert apply(admin, ids["eu"], answer.content.decode(), more="mia").status_code == 302
    assert "select_table" in effective("mia", "lake", "orders", "eu")


def test_what_stays_refused_or_is_effective_already_is_said_and_why(admin: Client, ids: Ids) -> None:
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema", "deny select_view", role="interns")
    give("mia", Kind.TABLE, "lake.orders:eu.sales", "deny select_table", role="no_pii")
    html = " ".join(grant(admin, ids["eu"], more="mia").split())
    assert f"<h2>{READS}, except what stays refused</h2>" in html
    assert (
        "mia gets no <code>select_view</code> on schema lake.orders:eu and everything below it: "
        f'role interns denies select_view on catalog lake. <a href="/objects/{ids["eu"]}/why?user=mia&privilege='
        'select_view">Why?</a>'
    ) in html
    why = re.search(r"on table lake.orders:eu.sales: role no_pii denies select_table. <a href=\"([^\"]+)\">Why", html)
    assert why and "Role no_pii denies select_table" in admin.get(why[1]).content.decode()
    assert "denies select_view on catalog lake, and mia holds it" not in html, "it is said once"
    part = grant(admin, ids["eu"], part=True, more="mia", rights_of=str(ids["eu"]))
    note = re.search(r'id="grant-note-use_schema" hx-swap-oob="true">([^<]*)<', part)
    assert note and note[1] == "Role interns allows use_schema on catalog lake, and mia holds it."
    answer = apply(admin, ids["eu"], html, more="mia", excepts="1")
    assert f"{READS}, except what stays refused." in admin.get(answer["Location"]).content.decode()


def test_every_level_and_what_managing_means_are_said(admin: Client, ids: Ids) -> None:
    html = " ".join(grant(admin, ids["demo"], more="mia", level="chosen", privilege="manage_grants").split())
    assert '<code>manage_grants</code> <span class="means">can give all of this to others</span>' in html
    assert re.search(r"on \d+ catalogs? and 1 metalake</span>", html)


def test_the_role_is_a_choice(admin: Client, ids: Ids) -> None:
    """A role that others hold is offered and never taken silently; the buttons of the preview work without scripts."""
    give("rita", Kind.SCHEMA, "lake.orders:eu", "use_schema", "select_table", "select_view", role="readers")
    html = grant(admin, ids["eu"], more="mia", without="use_catalog")
    assert "<strong>lake_orders_eu_reader</strong>" in html and "New role lake_orders_eu_reader: no role exists" in html
    assert "readers exists for exactly this: Reader on schema lake.orders:eu, held by rita." in html
    assert '<button class="quiet small" name="take" value="readers"' in html
    part = grant(admin, ids["eu"], part=True, more="mia", without="use_catalog", take="readers")
    assert 'name="role" value="readers"' in part and 'hx-swap-oob="true"' in part
    assert "readers is held by others too, who get the same: rita." in part
    assert 'name="take" value="" id="grant-take-1"' in part
    answer = apply(admin, ids["eu"], part, more="mia", without="use_catalog", role="readers")
    assert answer.status_code == 302
    html = grant(admin, ids["eu"], more="mia", level="writer", role="own-name")
    assert "Role <strong>own-name</strong> is made" in html and "held by others" not in html


def test_a_link_fills_the_form(admin: Client, ids: Ids) -> None:
    people.add_group(actor("admin"), "demo", "a, b")
    query = [
        ("principal", "user:mia"), ("principal", "group:a, b"), ("privilege", "modify_table"), ("effect", "deny"),
        ("starts", "2999-01-01T10:00Z"), ("ends", "2999-02-01T10:00+02:00"), ("role", "nights"),
        ("without", "use_catalog"),
    ]  # fmt: skip
    html = unescape(admin.get(f"/objects/{ids['eu']}/grant?{urlencode(query)}").content.decode())
    for expected in (
        'name="principal" value="user:mia" checked', 'name="principal" value="group:a, b" checked',
        'value="modify_table" data-levels="writer manager" checked', 'name="effect" value="deny" checked',
        'value="2999-01-01T10:00:00"', 'value="2999-02-01T08:00:00"', 'name="role" value="nights"',
        "mia, a, b are denied modify_table on lake.orders:eu and everything below it",
    ):  # fmt: skip
        assert expected in html, expected


def test_a_name_is_wrong_only_once_it_cannot_be_completed(admin: Client, ids: Ids) -> None:
    for typed in ("ri", "mia, RIT"):
        page = grant(admin, ids["eu"], part=True, more=typed)
        assert "nobody's here" not in page, typed
    assert "“ri” is the beginning of a name here" in grant(admin, ids["eu"], part=True, more="ri")
    wrong: list[dict[str, Any]] = [{"more": "rix"}, {"more": "ri, mia"}]
    for sent in (*wrong, {"more": "ri", "act": "preview"}, {"principal": "ri"}):
        assert "1 name is nobody's here" in grant(admin, ids["eu"], part=True, **sent), sent
    assert "1 name is nobody's here" in grant(admin, ids["eu"], 422, more="mia, ri", act="apply", token="x")


@each(
    "sent, expected",
    [
        ({"more": "nobody, mia"}, "1 name is nobody's here: nobody."),
        ({"more": "both"}, "both is a user and a group: write user:both or group:both."),
        ({"paste": "\n".join(f"n{n}" for n in range(10_000))}, "10,000 names are too many: up to 200"),
        ({"more": "mia", "ends": "2020-01-01T10:00"}, "It ends in the past."),
        ({"more": "mia", "starts": "2020-01-01T10:00"}, "It starts in the past: leave it empty to begin at once."),
        ({"more": "mia", "starts": "2999-01-02T10:00", "ends": "2999-01-01T10:00"}, "It has to end after it starts."),
        ({"more": "mia", "ends": "soon"}, "This is no moment: choose a day and a time."),
        ({"more": "mia", "ends": "9999-12-31T23:59-14:00"}, "This is no moment"),
        ({"more": "mia", "level": "chosen", "privilege": "fly"}, "There is no privilege fly."),
        ({"more": "mia", "level": "chosen", "privilege": "use_catalog"}, "use_catalog is not granted on a schema."),
        ({"more": "mia", "level": "chosen"}, "Choose at least one privilege."),
        ({"more": "mia", "level": "king"}, "There is no such level."),
        ({"more": "mia", "role": "no spaces allowed"}, "cannot be a role name"),
        ({"more": "\x00"}, "Null characters are not allowed"),
        ({}, "Name a user or a group, and what will happen shows here."),
    ],
)
def test_what_is_wrong_is_said_in_place(admin: Client, ids: Ids, sent: dict[str, Any], expected: str) -> None:
    if sent.get("more") == "both":
        people.add_user(actor("admin"), "demo", "both")
        people.add_group(actor("admin"), "demo", "both")
    html = grant(admin, ids["eu"], **sent)
    assert expected in html
    assert 'name="token"' not in html, "there is nothing to apply"
    if "paste" in sent:
        assert "n9999" in html, "what was pasted stays"


def test_htmx_gets_the_preview_and_every_message(admin: Client, ids: Ids) -> None:
    part = grant(admin, ids["eu"], part=True, more="mia", rights_of=str(ids["eu"]))
    assert "<html" not in part and "<form" not in part and READS in part
    assert '<p class="error" id="grant-more-error" hx-swap-oob="true"></p>' in part
    assert 'id="grant-rights"' not in part, "the ticks that have the focus stay"
    part = grant(admin, ids["eu"], part=True, more="mia", rights_of=str(ids["eu"]), on=str(ids["lake"]))
    assert 'id="grant-rights" hx-swap-oob="true"' in part
    assert "mia may read lake and everything below it" in part
    drawer = admin.get(f"/objects/{ids['eu']}/grant", headers={"HX-Request": "true"}).content.decode()
    assert 'id="grant-title"' in drawer and "<html" not in drawer


def test_hidden_objects_are_missing_and_others_cannot_be_granted_on(rita: Client, ids: Ids) -> None:
    assert rita.get(f"/objects/{ids['payroll']}/grant").status_code == 404
    assert rita.get(f"/objects/{ids['payroll']}/grant/people?more=m").status_code == 404
    for path in ("grant", "grant/people?more=m", "revoke?role=reader&privilege=use_schema"):
        assert rita.get(f"/objects/{ids['eu']}/{path}").status_code == 403
    answer = rita.post(f"/objects/{ids['eu']}/grant", {"more": "mia"})
    assert answer.status_code == 403


def test_names_are_suggested_to_who_may_find_them(admin: Client, ids: Ids) -> None:
    people.add_group(actor("admin"), "demo", "mixers")
    names = admin.get(f"/objects/{ids['eu']}/grant/people?more=mi").content.decode()
    assert re.findall(r'value="([^"]*)"', names) == ["user:mia", "group:mixers"]
    give("rita", Kind.SCHEMA, "lake.orders:eu", "manage_grants", role="eu-granters")
    answer = sign_in("rita").get(f"/objects/{ids['eu']}/grant/people?more=mi")
    assert (answer.status_code, answer.content.strip()) == (200, b""), "she may not list people"


def test_an_ended_session_leads_back_to_the_filled_form(admin: Client, ids: Ids) -> None:
    path, sent = f"/objects/{ids['eu']}/grant", {"more": "mia", "level": "writer", "token": "x", "act": "apply"}
    admin.logout()
    answer = admin.post(path, sent)
    assert (answer.status_code, answer["Location"]) == (
        302,
        f"/login?{urlencode({'next': path})}%3Fmore%3Dmia%26level%3Dwriter",
    )
    assert admin.post(path, {"paste": "n" * 10_000})["Location"] == f"/login?{urlencode({'next': path})}&cut=1"


# Who may not do all of it


@pytest.fixture
def owner(ids: Ids) -> Client:
    """rita owns the schema eu, and may neither make nor assign roles."""
    from authz.services import owners

    owners.set_owner(actor("admin"), "demo", Kind.SCHEMA, "lake.orders:eu", "rita", "user")
    return sign_in("rita")


def test_a_schemas_owner_is_told_what_to_ask_whom_for(owner: Client, admin: Client, ids: Ids) -> None:
    html = grant(owner, ids["eu"], more="mia")
    assert "You cannot do this alone" in html
    assert "<h2>mia is to read lake.orders:eu</h2>" in html, "what a DENY below leaves of it is not known"
    assert 'name="token"' not in html
    links = re.findall(r'<input readonly value="http://testserver(/objects/\d+/grant\?[^"]*)"', html)
    assert links
    for link in links:
        assert ("principal", "user:mia") in parse_qsl(link.partition("?")[2])
        opened = admin.get(link).content.decode()
        assert 'name="token"' in opened, "who may do it applies it as it is"


# The same without a page


def test_the_recipes_make_the_same_changes(admin: Client, ids: Ids) -> None:
    html = grant(admin, ids["eu"], more="mia")
    calls, file = (
        re.search(rf'<pre id="grant-{name}" tabindex="0">(.*?)</pre>', html, re.DOTALL) for name in ("calls", "file")
    )
    assert calls and file
    assert "$METALAKE_TOKEN" in calls[1] and "/api/metalakes/demo/access/changes" in calls[1]
    assert fields(html)["token"] not in calls[1]
    changes = yaml.safe_load(file[1])["changes"]
    assert changes[0]["change"] == "createRole"
    assert {"change": "assign", "role": changes[0]["role"], "user": "mia"} in changes
    from access.plans.plan_file import ChangesFile
    from metalake.wire import read

    planned = plan.plan_changes(actor("admin"), "demo", read(ChangesFile, {"changes": changes}).wanted())
    assert [change.change for change in planned.changes] == [change["change"] for change in changes]


# Revoking


@pytest.mark.store
def test_a_grant_is_revoked_and_given_back(admin: Client, ids: Ids) -> None:
    path = f"/objects/{ids['eu']}/revoke?role=reader&privilege=select_table"
    html = admin.get(path).content.decode()
    assert re.search(
        r'<td role="cell" data-label="lost by">rita <span class="kind">on 1 table and 1 schema</span>', html
    )
    sent = {"role": "reader", "privilege": "select_table", "effect": "allow", **fields(html)}
    answer = admin.post(f"/objects/{ids['eu']}/revoke", sent)
    assert answer.status_code == 302
    assert Privilege.SELECT_TABLE.value not in effective("rita", "lake", "orders", "eu")
    page = admin.get(answer["Location"]).content.decode()
    assert "Role reader no longer has allow select_table on eu." in page
    admin.post(*undo_in(page))
    assert Privilege.SELECT_TABLE.value in effective("rita", "lake", "orders", "eu")
    answer = admin.post(f"/objects/{ids['eu']}/revoke", sent)
    assert answer.status_code == 409
    assert "was applied at" in answer.content.decode()


def test_a_revoke_of_nothing_says_so(admin: Client, ids: Ids) -> None:
    html = admin.get(f"/objects/{ids['eu']}/revoke?role=reader&privilege=modify_table").content.decode()
    assert "there is nothing to revoke" in html
    assert admin.get(f"/objects/{ids['eu']}/revoke?role=none&privilege=use_schema").status_code == 404
    assert admin.get(f"/objects/{ids['eu']}/revoke?privilege=fly").status_code == 400


def test_a_dropped_object_is_gone(admin: Client, ids: Ids) -> None:
    html = grant(admin, ids["payroll"], more="mia")
    schemas.drop_schema(actor("admin"), Address(metalake="demo", catalog="lake", schema=("payroll",)))
    assert apply(admin, ids["payroll"], html, more="mia").status_code == 404
    assert roles.load_role(actor("admin"), "demo", "reader") is not None


@pytest.mark.store
def test_what_is_not_counted_to_its_end_is_at_least_so_much(
    admin: Client, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(8):
        add_table("orders", "eu", f"t{n}")
    monkeypatch.setattr(blast_radius, "PREVIEW", 9)
    change_people = f"/metalakes/{ids['demo']}/people/change"
    for html in (
        grant(admin, ids["eu"], more="mia"),
        admin.get(f"/objects/{ids['eu']}/revoke?role=reader&privilege=select_table").content.decode(),
        admin.post(change_people, {"what": "unassign", "user": "rita", "role": "reader"}).content.decode(),
    ):
        assert "on at least" in html or "More than could be counted in time" in html
        assert '<span class="kind">nobody</span>' not in html


def test_a_pasted_list_says_what_is_twice_and_what_is_spelled_otherwise(admin: Client, ids: Ids) -> None:
    html = grant(admin, ids["eu"], paste="\n\n mia \n\nrita\r\nmia,,;\n")
    assert "Named more than once, and counted once: mia." in html and 'value="user:rita" checked' in html
    html = grant(admin, ids["eu"], more="MIA, nobody", paste="rita")
    assert "2 names are nobody's here: MIA, nobody. Did you mean mia?" in html
    assert 'value="MIA, nobody"' in html and 'value="user:rita" checked' in html, "nothing is lost"
    give("rita", Kind.SCHEMA, "lake.orders:eu", "manage_grants", role="eu-granters")
    html = grant(sign_in("rita"), ids["eu"], more="MIA")
    assert "nobody's here: MIA." in html and "Did you mean" not in html, "she may not list people"


def test_the_same_grant_in_two_tabs_is_made_once(admin: Client, ids: Ids) -> None:
    tabs = [grant(admin, ids["eu"], more="mia") for _ in range(2)]
    assert apply(admin, ids["eu"], tabs[0], more="mia").status_code == 302
    answer = apply(admin, ids["eu"], tabs[1], more="mia")
    html = answer.content.decode()
    assert answer.status_code == 409 and "All of it is effective already." in html
    assert 'value="user:mia" checked' in html and "Role lake_orders_eu_reader already exists" in html
    assert fields(html).get("token") is None or "undo" in html
