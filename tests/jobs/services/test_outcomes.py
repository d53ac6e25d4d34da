"""What runs found: a report that was delivered while they ran, for those who may read it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from access.usage import reports
from authz.models import User
from authz.services.change import enter
from jobs.models import JobRun
from jobs.services import outcomes
from metalake.kinds import Kind
from tests.demo import actor, add_member, give, make_demo

pytestmark = [pytest.mark.store, pytest.mark.django_db]
PAST = datetime(2026, 3, 1, tzinfo=UTC)


def ended(template: str, **fields: Any) -> JobRun:
    now = timezone.now()
    given = {"started_at": now - timedelta(seconds=5), "finished_at": now + timedelta(seconds=5), "user_name": "admin"}
    given |= {"status": JobRun.Status.SUCCEEDED, "metalake_id": enter(actor("admin"), "demo").id}
    return JobRun.objects.create(
        template_name=template, user=User.objects.get(username="admin"), **given | fields
    )  # fmt: skip


def says(run: JobRun, name: str = "admin") -> str | None:
    outcome = outcomes.outcome_of(actor(name), enter(actor(name), "demo"), run)
    return outcome.says if outcome else None


def test_a_run_found_what_was_delivered_while_it_ran() -> None:
    make_demo()
    add_member("mia")
    before = ended(outcomes.REVIEW, started_at=PAST, finished_at=PAST)
    run, failed = ended(outcomes.REVIEW), ended(outcomes.REVIEW, status=JobRun.Status.FAILED)
    rollup = ended(outcomes.ROLLUP)
    reports.deliver(actor("admin"), "demo", reports.ReviewReport(PAST, 1, 90, None, PAST, 1200, 2, 3, []))
    reports.deliver(actor("admin"), "demo", reports.DormancyReport(PAST, 90, 7, 1, [], []))
    assert says(run) == "Grants: 1,200 unused, 2 redundant, 3 shadowed"
    assert says(rollup) == "Not used for 90 days: 7 objects, 1 person"
    assert says(before) == "A later run replaced what it found"
    assert says(failed) is None
    assert says(ended(outcomes.REVIEW, user_name="mia")) == "A later run replaced what it found"
    assert says(run, "mia") is None, "who may not read everybody's access"


def test_views_and_catalogs_are_found_as_the_reader_sees_them() -> None:
    make_demo()
    add_member("mia")
    assert says(ended(outcomes.VIEWS)) == "No view that you may load is broken"
    harvest = ended(outcomes.HARVEST, conf={"catalog": "lake"})
    assert says(harvest) == "Catalog lake is brought up to its system"
    assert says(harvest, "mia") is None
    give("mia", Kind.CATALOG, "lake", "use_catalog")
    assert says(harvest, "mia") is None
    assert says(ended(outcomes.HARVEST, conf={"catalog": "none"})) is None
