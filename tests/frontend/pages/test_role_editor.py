"""The page that edits a role: what it holds and who holds it, as one plan, applied once and undone."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

import pytest
from django.test import Client

from access.plans.apply import apply_plan
from access.plans.desired import Change
from access.plans.plan import plan_changes
from authz.models import Role
from authz.services import roles
from authz.services.grant_entries import Ask, Given
from metalake.errors import ProviderUnavailable
from metalake.kinds import Kind
from metalake.privileges import Effect, Privilege
from tests.demo import actor, add_member, give
from tests.frontend.conftest import add_table, add_view, sign_in
from tests.frontend.pages.test_granting import undo_in
from tests.frontend.test_moved_plans import marks

pytestmark = pytest.mark.django_db
Ids = dict[str, int]


def path(ids: Ids, role: str = "reader") -> str:
    return f"/metalakes/{ids['demo']}/people/roles/{Role.objects.get(name=role).pk}/edit"


def text(answer: Any, status: int = 200) -> str:
    html = unescape(re.sub(r"[ \t]+", " ", answer.content.decode()))
    assert answer.status_code == status, re.findall(r'(?:error|alert)"[^>]*>[^<]+', html)
    return html


def send(client: Client, ids: Ids, act: str = "preview", status: int = 200, role: str = "reader", **sent: Any) -> str:
    return text(client.post(path(ids, role), {"act": act, **sent}), status)


def part(html: str) -> dict[str, str]:
    """The hidden fields of the parts and of the plan."""
    return dict(re.findall(r'<input type="hidden" name="(part|on-\d+|token|shown)" value="([^"]*)"', html))


def apply(client: Client, ids: Ids, html: str, role: str = "reader", **sent: Any) -> Any:
    return client.post(path(ids, role), {**part(html), **sent, "act": "apply"})


def standing(role: str = "reader") -> dict[str, dict[str, str]]:
    """The effects of what a role holds, by full name and privilege."""
    record = roles.load_role(actor("admin"), "demo", role)
    return {on.full_name: {p.value: given.effect.value for p, given in on.entries.items()} for on in record.grants}


def test_grants_and_holders_change_in_one_plan_that_is_undone(ids: Ids, admin: Client) -> None:
    before = standing()
    opened = send(admin, ids, "add", objects="lake.orders:eu.sales\nlake.payroll", open="schema lake.orders:eu")
    numbers = dict(re.findall(r'name="on-(\d)" value="(\w+) ', opened))
    assert sorted(numbers.values()) == ["schema", "table"], "two schemas are one part"
    by_kind = {kind: number for number, kind in numbers.items()}
    schemas, table = by_kind["schema"], by_kind["table"]
    assert "not the same on all" in opened and 'name="p-' + table + "-use_catalog" not in opened
    lines = dict(re.findall(r'name="(on-\d)" value="([^"]+)"', opened))
    chosen: dict[str, Any] = {
        "part": [schemas, table],
        **lines,
        f"p-{schemas}-select_table": "none",
        f"p-{table}-modify_table": "deny",
        f"ends-{table}": "2090-01-01T00:00",
        "more": "mia",
        "unassign": "user:rita",
    }
    shown = send(admin, ids, **chosen)
    for expected in ("DENY", "2090-01-01", "User <strong>mia</strong> gets role", "loses role", "Lost by"):
        assert expected.casefold() in shown.casefold(), expected
    assert standing() == before, "a preview changes nothing"
    answer = apply(admin, ids, shown, **chosen)
    assert answer.status_code == 302, text(answer)
    assert standing() == {"lake.orders:eu": {"use_schema": "allow"}, "lake.orders:eu.sales": {"modify_table": "deny"}}
    page = admin.get(answer["Location"]).content.decode()
    assert "Role reader is changed." in page and "mia" in page
    admin.post(*undo_in(page))
    assert standing() == before


def test_only_what_was_chosen_is_sent_and_changed(ids: Ids, admin: Client) -> None:
    """Somebody else's change of the same object meanwhile stays."""
    html = text(admin.get(path(ids) + "?open=" + quote("schema lake.orders:eu")))
    add = Change("grant", "reader", Privilege.CREATE_TABLE, Given(Effect.ALLOW), on=(Kind.SCHEMA, "lake.orders:eu"))
    apply_plan(actor("admin"), "demo", plan_changes(actor("admin"), "demo", [add]).token)
    chosen: dict[str, Any] = {**part(html), "p-1-modify_table": "allow"}
    shown = send(admin, ids, **chosen)
    assert "create_table" in shown and shown.count('<li class="grant">') == 1
    assert apply(admin, ids, shown, **chosen).status_code == 302
    assert set(standing()["lake.orders:eu"]) == {"use_schema", "select_table", "modify_table", "create_table"}


def test_what_moved_is_marked_and_what_was_typed_is_not_applied_unseen(ids: Ids, admin: Client) -> None:
    html = text(admin.get(path(ids) + "?open=" + quote("schema lake.orders:eu")))
    chosen: dict[str, Any] = {**part(html), "p-1-select_table": "none", "p-1-use_schema": "none"}
    shown = send(admin, ids, **chosen)
    other = text(apply(admin, ids, shown, **{**chosen, "p-1-use_schema": ""}), 422)
    assert "was changed after this was shown" in other
    roles.assign_roles(actor("admin"), "demo", "user", "mia", ["reader"])
    again = text(apply(admin, ids, shown, **chosen), 409)
    assert "Rights have changed since you looked" in again
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    third = text(apply(admin, ids, again, **chosen), 409)
    assert any(line.startswith(("changed", "new")) for line in marks(third))
    assert apply(admin, ids, third, **chosen).status_code == 302


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("lake.nowhere", "Schema lake.nowhere does not exist."),
        ("a.b.c.d", "is no object"),
        ("metalake other", "Metalake other does not exist."),
        ("lake..x", "is not the full name of a table"),
        ("lake.a\x00b", "Schema lake.ab does not exist."),
    ],
)
def test_a_line_that_names_nothing_stays_and_the_others_are_added(
    ids: Ids, admin: Client, lines: str, sentence: str
) -> None:
    html = send(admin, ids, "add", 422, objects=f"lake\n{lines}")
    assert sentence in html and 'name="on-1" value="catalog lake"' in html
    (left,) = re.findall(r'<textarea id="objects"[^>]*>([^<]*)<', html)
    assert left.strip() == lines.replace("\x00", "")


def test_what_an_outside_system_does_not_tell_leaves_the_rest_of_the_form(ids: Ids, admin: Client) -> None:
    with patch("access.explain.grantable.locate_anywhere", side_effect=ProviderUnavailable("Glue does not answer.")):
        html = send(admin, ids, "add", 422, **{"part": "1", "on-1": "catalog lake", "objects": "lake.remote"})
    for expected in ("Glue does not answer.", 'name="on-1" value="catalog lake"', "lake.remote</text"):
        assert expected in html


def test_other_mistakes_are_said_at_their_fields(ids: Ids, admin: Client) -> None:
    base: dict[str, Any] = {"part": "1", "on-1": "catalog lake"}
    past = send(admin, ids, status=422, **base, **{"p-1-use_catalog": "allow", "ends-1": "2001-01-01T00:00"})
    assert "This is in the past." in past and 'value="2001-01-01T00:00' in past
    assert "Choose what is allowed or denied" in send(admin, ids, status=422, **base, **{"ends-1": "2090-01-01T00:00"})
    assert "This is no moment" in send(admin, ids, status=422, **base, **{"ends-1": "soon", "p-1-use_catalog": "deny"})
    nobody = send(admin, ids, status=422, more="nobody, MIA")
    assert "No user or group has this name: nobody, MIA. Did you mean mia?" in nobody and "nobody, MIA" in nobody
    many = send(admin, ids, "add", 422, objects="\n".join(f"lake.s{n}" for n in range(1001)))
    assert "at most 1,000 are added" in many and "lake.s1000" in many
    assert "Nothing is changed yet" in send(admin, ids, **base)
    assert "nothing changes" in send(admin, ids, more="rita")
    assert send(admin, ids, status=404, unassign="user:nobody").count("User nobody does not exist.") == 1


def test_what_the_caller_may_not_grant_is_disabled_with_the_reason(ids: Ids, admin: Client, rita: Client) -> None:
    html = text(rita.get(path(ids) + "?open=" + quote("schema lake.orders:eu")))
    assert "You may not grant there." in html and "grant-more" not in html
    boxes = re.findall(r'<input type="radio" name="p-1-[^>]+>', html)
    assert boxes and all("disabled" in box for box in boxes)
    chosen: dict[str, Any] = {"part": "1", "on-1": "schema lake.orders:eu", "p-1-modify_table": "allow"}
    assert "rita may not " in send(rita, ids, status=403, **chosen)
    for hidden in ("lake.payroll", "lake.no_such"):
        assert f"Schema {hidden} does not exist." in send(rita, ids, "add", 422, objects=hidden)
    give(None, Kind.CATALOG, "lake", "use_catalog", role="secret")
    assert rita.get(path(ids, "secret")).status_code == 404
    give("mia", Kind.SCHEMA, "lake.orders:eu", "manage_grants")
    roles.assign_roles(actor("admin"), "demo", "user", "mia", ["reader", "visitor"])
    html = text(sign_in("mia").get(path(ids) + "?open=" + quote("schema lake.orders:eu")))
    assert html.count("Only owners give it") == 1, "manage_grants"


def test_objects_are_chosen_from_the_tree(ids: Ids, admin: Client, rita: Client) -> None:
    add_view("orders", "eu", "totals")
    html = send(admin, ids, "", into=str(ids["eu"]))
    picks = re.findall(r'name="pick" value="([^"]+)"', html)
    assert picks == ["table lake.orders:eu.sales", "view lake.orders:eu.totals"]
    html = send(admin, ids, "add", at=str(ids["eu"]), pick=picks)
    assert all(f'value="{pick}"' in html for pick in picks) and 'name="p-2-select_view"' in html
    assert "payroll" not in send(rita, ids, "", into=str(ids["lake"]))
    assert "does not exist" not in send(rita, ids, "", into=str(ids["payroll"]))


def test_a_large_role_is_paged_and_the_form_carries_what_is_edited(ids: Ids, admin: Client) -> None:
    allow = [(Privilege.SELECT_TABLE.value, "allow")]
    names = [f"lake.orders:eu.{add_table('orders', 'eu', f't{n}') and f't{n}'}" for n in range(3)]
    roles.create_role(actor("admin"), "demo", "large", securables=[Ask(Kind.TABLE, name, allow) for name in names])
    with patch("frontend.pages.role_editor.PAGE", 2):
        first = text(admin.get(path(ids, "large")))
        assert "on 3 objects" in first and "eu.t1" in first and "eu.t2" not in first
        sent: dict[str, Any] = {"part": "1", "on-1": "table lake.orders:eu.t0", "p-1-select_table": "deny"}
        second = send(admin, ids, "show", role="large", **{**sent, "from": "2"})
        assert "eu.t2" in second and 'value="deny" checked' in second
        assert "eu.t2" in send(admin, ids, "show", role="large", q="EU.T2", **sent)
        assert send(admin, ids, role="large", **sent).count('<li class="grant">') == 1


def test_a_role_is_made_with_properties_and_then_filled(ids: Ids, admin: Client) -> None:
    add = f"/metalakes/{ids['demo']}/people/roles"
    assert "not of the form" in text(admin.post(add, {"name": "new", "properties": "team"}), 422)
    answer = admin.post(add, {"name": "new", "properties": "team=lake"})
    assert answer["Location"] == path(ids, "new")
    assert "Nothing yet." in text(admin.get(answer["Location"]))
    page = text(admin.get(path(ids, "new").removesuffix("/edit")))
    assert "team" in page and "the API does not change them" in page


def test_access_leads_to_the_role_of_a_grant(ids: Ids, admin: Client) -> None:
    page = text(admin.get(f"/objects/{ids['sales']}/access?q=rita"))
    links = set(re.findall(r'href="(/metalakes/\d+/people/roles/\d+/edit\?[^"]+)"', page))
    assert links and 'name="on-1" value="schema lake.orders:eu"' in "".join(text(admin.get(link)) for link in links)
    add_member("nora")
    assert "/edit?" not in text(sign_in("rita").get(f"/objects/{ids['sales']}/access"))
