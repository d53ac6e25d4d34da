"""The page of what the last access review says of grants: seen by who may read all access, each revoked by a plan."""

from __future__ import annotations

import html
import re
from datetime import timedelta

from django.test import Client
from django.utils import timezone

from access.usage import reports
from access.usage.reports import Finding, ReviewReport
from authz import snapshot
from authz.models import Grant, Role
from metalake.kinds import Kind
from tests.demo import actor, add_member, add_user, give
from tests.frontend.conftest import sign_in

Ids = dict[str, int]


def deliver(ids: Ids, *findings: Finding) -> None:
    then = timezone.now() - timedelta(minutes=1)
    reports.deliver(actor("admin"), "demo", ReviewReport(then, 1, 90, then, then, 1, 1, 1, findings))


def finding(ids: Ids, **more: object) -> Finding:
    give(None, Kind.CATALOG, "lake", "select_table", role="readers")
    role = Role.objects.get(name="readers").pk
    return Finding(role, ids["lake"], "select_table", "allow", True)._replace(**more)  # type: ignore[arg-type]


def test_each_leads_to_the_plan_that_revokes_it(admin: Client, ids: Ids) -> None:
    path = f"/metalakes/{ids['demo']}/reviewed"
    assert "No review was made yet" in admin.get(path).content.decode()
    deliver(ids, finding(ids, verdict="redundant", by=ids["demo"]))
    assert path in admin.get(f"/metalakes/{ids['demo']}/access/findings").content.decode()
    page = admin.get(path).content.decode()
    assert "Its role has the same on demo" in page and "Not in the record" in page and "90 days" in page
    link = html.unescape(re.search(r'href="(/objects/\d+/revoke[^"]+)"', page)[1])
    plan = admin.get(link).content.decode()
    assert "readers" in plan and "select_table" in plan
    token = re.search(r'name="token" value="([^"]+)"', plan)[1]
    form = {"role": "readers", "privilege": "select_table", "effect": "allow", "token": token}
    assert admin.post(link.partition("?")[0], form).status_code == 302
    assert not Grant.objects.filter(group__role__name="readers").exists()
    assert "No grant here is left to revoke" in admin.get(path).content.decode()


def test_long_lists_have_pages(admin: Client, ids: Ids) -> None:
    path, one = f"/metalakes/{ids['demo']}/reviewed", finding(ids)
    deliver(ids, *[one] * 150)
    assert "?after=100" in admin.get(path).content.decode()
    rest = admin.get(f"{path}?after=100").content.decode()
    assert rest.count("Revoke select_table") == 50 and "?after=" not in rest
    assert admin.get(f"{path}?after=x").status_code == 200


def test_others_are_refused(admin: Client, ids: Ids) -> None:
    deliver(ids, finding(ids))
    add_user("sam")
    add_member("ivo")
    snapshot.forget()
    path, jobs = (f"/metalakes/{ids['demo']}/{page}" for page in ("reviewed", "jobs"))
    assert sign_in("sam").get(path).status_code == 404
    otto = sign_in("ivo")
    assert otto.get(path).status_code == 403 and path not in otto.get(jobs).content.decode()
