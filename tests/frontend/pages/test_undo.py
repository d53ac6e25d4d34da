"""What changed lately in rights, on the pages of objects: with Undo for who did it."""

from __future__ import annotations

import html
import re
from datetime import timedelta

from django.test import Client

from access.plans import apply, plan
from access.plans.desired import Change
from authz.models import Plan
from authz.services.grant_entries import Given
from metalake.kinds import Kind
from metalake.privileges import Effect, Privilege
from tests.demo import actor, give
from tests.frontend.conftest import add_schema, sign_in

Ids = dict[str, int]
EU, PAYROLL = (Kind.SCHEMA, "lake.orders:eu"), (Kind.SCHEMA, "lake.payroll")


def grant(who: str, on: tuple[Kind, str], *privileges: Privilege, role: str = "reader") -> None:
    given = Given(Effect.ALLOW)
    changes = [Change("grant", role, each, given, on) for each in privileges]
    planned = plan.plan_changes(actor(who), "demo", changes)
    apply.apply_plan(actor(who), "demo", planned.token)


def card(client: Client, object_id: int) -> str:
    page = client.get(f"/objects/{object_id}").content.decode()
    found = re.search(r'aria-labelledby="lately-title".*?</section>', page, re.DOTALL)
    return html.unescape(found.group()) if found else ""


def test_a_change_is_undone_from_the_pages_it_concerns(admin: Client, ids: Ids) -> None:
    assert not card(admin, ids["eu"])
    grant("admin", EU, Privilege.MODIFY_TABLE, Privilege.CREATE_TABLE)
    says = "Grant create_table, modify_table on schema lake.orders:eu to role reader"
    for name in ("sales", "eu", "orders", "lake", "demo"):
        assert says in card(admin, ids[name]), name
    assert not card(admin, ids["payroll"])
    (number,) = re.findall(r'name="number" value="(\d+)"', card(admin, ids["sales"]))
    done = admin.post(f"/metalakes/{ids['demo']}/undo?back=/objects/{ids['eu']}", {"number": number}, follow=True)
    assert "Undone: revoke create_table" in done.content.decode()
    assert done.redirect_chain == [(f"/objects/{ids['eu']}", 302)]
    after = card(admin, ids["eu"])
    assert after.count(">undone<") == 1 and after.index("Revoke") < after.index(">undone<"), "the undo can be undone"


def test_others_read_what_they_may_and_undo_nothing(admin: Client, ids: Ids) -> None:
    grant("admin", EU, Privilege.MODIFY_TABLE)
    grant("admin", PAYROLL, Privilege.USE_SCHEMA)
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    give("mia", Kind.SCHEMA, "lake.orders", "use_schema", "manage_grants")
    mia, rita = sign_in("mia"), sign_in("rita")
    assert not card(rita, ids["eu"]), "reads no access"
    theirs = card(mia, ids["eu"])
    assert "modify_table" in theirs and "admin" in theirs and 'name="number"' not in theirs
    assert not card(mia, ids["demo"]) and not card(mia, ids["lake"])
    number = str(Plan.objects.filter(user__username="admin").latest("applied_at").pk)
    tried = mia.post(f"/metalakes/{ids['demo']}/undo", {"number": number}, follow=True).content.decode()
    assert "mia has no such plan" in tried and "use_schema" in card(admin, ids["payroll"])


def test_only_those_of_the_last_hour(admin: Client, ids: Ids) -> None:
    grant("admin", EU, Privilege.MODIFY_TABLE)
    row = Plan.objects.latest("applied_at")
    assert row.applied_at
    Plan.objects.update(applied_at=row.applied_at - timedelta(hours=1))
    assert not card(admin, ids["eu"])
    for number in ("", "x", "-1", "9" * 30, str(row.pk)):
        says = admin.post(f"/metalakes/{ids['demo']}/undo", {"number": number}, follow=True).content.decode()
        assert "It was not undone." in says


def test_roles_of_people_are_of_the_metalake(admin: Client, ids: Ids) -> None:
    assigned = plan.plan_changes(actor("admin"), "demo", [Change("assign", "reader", holder=("user", "mia"))])
    apply.apply_plan(actor("admin"), "demo", assigned.token)
    assert "Assign role reader to user mia" in card(admin, ids["demo"])
    assert not card(admin, ids["eu"])


def test_hostile_names_are_text(admin: Client, ids: Ids) -> None:
    name = "<img src=x onerror=alert(1)>"
    add_schema(name)
    grant("admin", (Kind.SCHEMA, f"lake.{name}"), Privilege.USE_SCHEMA)
    page = admin.get(f"/objects/{ids['lake']}").content.decode()
    assert "on schema lake.&lt;img src=x" in page and "<img" not in page
