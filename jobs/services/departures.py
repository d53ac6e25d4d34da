"""Clean-up of runs, their tokens and schedules when a user leaves a metalake, or templates are dropped."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet
from django.utils import timezone

from authz.actor import SERVER
from authz.models import Token
from jobs.models import JobRun, Schedule
from jobs.services.pinning import stop_clocks
from jobs.services.runs import cancel_rows
from metalake.events import Event, record


def end_tokens(ids: Iterable[int | None]) -> None:
    """Revoke the tokens of runs, in the caller's transaction."""
    rows = list(Token.objects.select_related("user").filter(pk__in=[*ids], revoked_at__isnull=True))
    Token.objects.filter(pk__in=[row.pk for row in rows]).update(revoked_at=timezone.now())
    record(*(row.event("token.revoked", SERVER.name) for row in rows))


def follow(events: list[Event]) -> None:
    """Cancel the runs of removed members, in the transaction that removes them, after revoking the runs' tokens."""
    for event in events:
        if event.name == "user.removed" and event.metalake_id is not None:
            live = JobRun.objects.filter(metalake_id=event.metalake_id, user_id=event.object_id, status__in=JobRun.LIVE)
            end_tokens(_tokens_of(live))
            cancel_rows(SERVER, live)


def end_runs_below(ids: QuerySet) -> None:
    """Revoke the tokens of runs in metalakes to be dropped; the watcher of each run ends its process."""
    live = JobRun.objects.filter(metalake_id__in=ids, status__in=JobRun.LIVE)
    end_tokens(_tokens_of(live))


def _tokens_of(runs: QuerySet[JobRun]) -> list[int | None]:
    return [each for pair in runs.values_list("token_id", "system_token_id") for each in pair]


def hand_over_schedules(metalake_id: int, given: tuple[int | None, int | None], to: object) -> None:
    """Disable a leaving user's schedules: nobody else's rights are used without consent."""
    user_id, _ = given
    if user_id is not None:
        rows = Schedule.objects.filter(metalake_id=metalake_id, user_id=user_id)
        rows.update(enabled=False)
        stop_clocks(rows.values_list("pk", flat=True))
