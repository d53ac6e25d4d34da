"""The findings of a metalake on their page, each with the click that mends it."""

from __future__ import annotations

import re
from datetime import timedelta

from django.test import Client
from django.utils import timezone

from authz.models import Role, User
from authz.services import grants, people
from metalake.kinds import Kind
from metalake.models import Securable
from tests.demo import actor, give

LINK = re.compile(r'<a class="button[^"]*" href="([^"]+)" aria-label="([^"]+)"')


def links(client: Client, demo: int) -> dict[str, str]:
    """The mending pages by what their links say."""
    page = client.get(f"/metalakes/{demo}/access/findings").content.decode()
    return {about: url.replace("&amp;", "&") for url, about in LINK.findall(page)}


def test_each_finding_has_the_click_that_mends_it(admin: Client, ids: dict[str, int]) -> None:
    assert links(admin, ids["demo"]) == {}
    give("mia", Kind.SCHEMA, "lake.orders:eu", "select_table", role="half")
    give("rita", Kind.CATALOG, "lake", "select_table", role="wide")
    give(None, Kind.CATALOG, "lake", "use_catalog", role="empty")
    owner, ends = actor("admin"), timezone.now() + timedelta(days=3)
    grants.grant_privileges(
        owner, "demo", "reader", Kind.TABLE, "lake.orders:eu.sales", [("modify_table", "allow", None, ends)]
    )
    Securable.objects.filter(pk=ids["payroll"]).update(owner_user=User.objects.get(username="otto"))
    mends = links(admin, ids["demo"])
    assert sorted(mends) == [
        "Drop role empty",
        "Extend modify_table of role reader on lake.orders:eu.sales",
        "Grant use_catalog, so that select_table of role half on lake.orders:eu counts",
        "Hand over lake.payroll",
        "Revoke select_table of role half on lake.orders:eu",
        "Revoke select_table of role reader on lake.orders:eu",
    ]
    opened = {about.partition(" ")[0]: admin.get(url) for about, url in mends.items()}
    assert {answer.status_code for answer in opened.values()} == {200}
    assert "Drop role empty?" in opened["Drop"].content.decode()
    for act in ("Grant", "Extend", "Revoke"):
        assert 'name="token"' in opened[act].content.decode(), act
    path, _, _ = mends["Hand over lake.payroll"].partition("?")
    sent = {"what": "own", "object": ids["payroll"], "act": "apply"}
    assert "User admin owns lake.payroll." in admin.post(path, sent, follow=True).content.decode()
    assert Securable.objects.get(pk=ids["payroll"]).owner_user == User.objects.get(username="admin")


def test_only_who_reads_everybodys_access_gets_the_page(rita: Client, otto: Client, ids: dict[str, int]) -> None:
    paths = [f"/metalakes/{ids['demo']}/access/findings{more}" for more in ("", "/mend?what=own")]
    assert [rita.get(path).status_code for path in paths] == [403, 403]
    assert [otto.get(path).status_code for path in paths] == [404, 404]


def test_only_who_may_hand_an_object_over_can(rita: Client, admin: Client, ids: dict[str, int]) -> None:
    """A hidden object, a missing one and no id at all are answered alike."""
    give("rita", Kind.METALAKE, "demo", "manage_grants")
    path = f"/metalakes/{ids['demo']}/access/findings/mend"
    people.add_user(actor("admin"), "demo", "otto")
    seen = {rita.get(path, {"what": "own", "object": id}).content for id in (ids["payroll"], 10_000_000, "x", "")}
    assert {b"There is no such object." in body for body in seen} == {True}
    assert Role.objects.exists() and "Hand over lake.payroll" not in links(rita, ids["demo"])
