"""The first page: what needs somebody and what is new, of what the reader may see, in a few statements."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from authz.models import AccessReview
from authz.services import roles
from authz.services.grant_entries import Ask
from jobs.models import JobRun
from metalake.kinds import Kind
from tests.demo import actor, add_user
from tests.frontend.conftest import add_outside, add_stuck_intent, sign_in
from tests.providers.world import World

pytestmark = pytest.mark.django_db
Ids = dict[str, int]


def needs(client: Client) -> dict[str, str]:
    """The text of each card of the first page, by its title."""
    _, _, page = unescape(client.get("/").content.decode()).partition("<main")
    cards = re.findall(r'<h2 id="[\w-]+">(.*?)</h2>(.*?)</section>', page, re.DOTALL)
    return dict([" ".join(re.sub(r"<[^>]*>", " ", part).split()) for part in card] for card in cards)


def add_needs(ids: Ids, world: World) -> None:
    now, owner = timezone.now(), actor("admin")
    until = [("select_table", "allow", None, now + timedelta(days=3))]
    roles.create_role(owner, "demo", "temps", securables=[Ask(Kind.SCHEMA, "lake.payroll", until)])
    add_stuck_intent(add_outside(world))
    failed = {"status": JobRun.Status.FAILED, "metalake_id": ids["demo"], "user_id": owner.id, "user_name": "admin"}
    for number in range(6):
        JobRun.objects.create(template_name=f"nightly-{number}", finished_at=now, **failed)
    JobRun.objects.create(template_name="of last month", finished_at=now - timedelta(days=30), **failed)
    counts = {"unused_count": 3, "redundant_count": 0, "shadowed_count": 1, "findings": []}
    moments = {"as_of": now, "complete_until": now, "at": now}
    AccessReview.objects.create(pk=ids["demo"], place=1, days=90, by="admin", **counts, **moments)


def test_the_owner_sees_what_needs_somebody_and_others_what_is_theirs(
    admin: Client, rita: Client, ids: Ids, world: World
) -> None:
    assert set(needs(admin)) == {"Your metalakes", "New objects"}
    add_needs(ids, world)
    cards = needs(admin)
    assert list(cards)[:4] == ["Grants that end soon 1", "Stuck writes 1", "Failed runs 6", "Grants to review 4"]
    assert "temps lake.payroll" in cards["Grants that end soon 1"]
    assert "nightly-0 as admin" in cards["Failed runs 6"] and "1 more" in cards["Failed runs 6"]
    assert "3 unused, 1 shadowed" in cards["Grants to review 4"]
    assert "station 1 to decide about" in cards["Stuck writes 1"]
    assert set(needs(rita)) == {"Your metalakes", "New objects"}
    assert "payroll" in cards["New objects"] and "payroll" not in needs(rita)["New objects"]


def test_a_newcomer_sees_where_to_begin(ids: Ids, admin: Client, world: World) -> None:
    add_user("newcomer")
    page = sign_in("newcomer").get("/").content.decode()
    assert "You belong to no metalake yet" in page and '<details class="card begin" open>' in page
    add_needs(ids, world)
    page = admin.get("/").content.decode()
    assert "What needs you" in page and '<details class="card begin">' in page, "it is folded for who has work"


def test_the_first_page_takes_few_statements(
    admin: Client, ids: Ids, world: World, django_assert_max_num_queries: Any
) -> None:
    add_needs(ids, world)
    admin.get("/")
    with django_assert_max_num_queries(20):
        admin.get("/")
