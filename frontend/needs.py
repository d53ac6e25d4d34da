"""What the first page says needs somebody, and what is new: each only where the reader may see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from access.explain.ending import SOON, ending_soon
from access.requests.deciding import open_requests
from access.usage.reports import reviews_of
from authz.actor import Actor
from catalogs.services import browsing
from jobs.services import runs
from metalake.full_names import dotted
from metalake.lineage import Located
from outside import monitoring

FAILED = timedelta(days=7)
NEW = timedelta(days=30)
SHOWN, MOST = 5, 50  # lines at once, and when unfolded


class Item(NamedTuple):
    """A line: a name with its page, what it is about, and when."""

    name: str
    url: str
    says: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class Need:
    """One thing that needs somebody: the first MOST lines of `count`."""

    title: str
    icon: str
    help: str
    items: list[Item]
    count: int

    @property
    def shown(self) -> list[Item]:
        return self.items[:SHOWN]

    @property
    def folded(self) -> list[Item]:
        return self.items[SHOWN:]


def _url(page: str, *ids: int, **query: str) -> str:
    path = reverse(f"frontend:{page}", args=ids)
    return f"{path}?{urlencode(query)}" if query else path


def _ending(actor: Actor, tops: Sequence[Located]) -> Need:
    endings = ending_soon(actor, SOON)
    items = [
        Item(one.role, _url("access", one.on.id, by="role", q=one.role), dotted(one.on.full_name), one.ends)
        for one in endings[:MOST]
    ]
    return Need("Grants that end soon", "clock", "Within 14 days. They end by themselves.", items, len(endings))


def _requested(actor: Actor, tops: Sequence[Located]) -> Need:
    waiting = open_requests(actor)
    items = [
        Item(one.who, _url("decide", one.on.metalake.id, one.row.pk), dotted(one.on.full_name), one.row.asked_at)
        for one in waiting[:MOST]
    ]
    help = "Somebody asks for access that you may give."
    return Need("Requests for access", "shield-plus", help, items, len(waiting))


def _reviewed(actor: Actor, tops: Sequence[Located]) -> Need:
    items, total = list[Item](), 0
    for top, review in reviews_of(actor, tops):
        counts = {"unused": review.unused_count, "redundant": review.redundant_count, "shadowed": review.shadowed_count}
        total += sum(counts.values())
        says = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
        if says:
            items.append(Item(top.name, _url("reviewed", top.id), says, review.as_of))
    return Need("Grants to review", "list-checks", "What the last access review would take back.", items[:MOST], total)


def _stuck(actor: Actor, tops: Sequence[Located]) -> Need:
    waiting = monitoring.undecided_writes(actor)
    items = [Item(on.name, _url("object", on.id), f"{count:,} to decide about") for on, count in waiting[:MOST]]
    help = "Nobody can write to these names until somebody decides."
    return Need("Stuck writes", "octagon-alert", help, items, sum(count for _, count in waiting))


def _failed(actor: Actor, tops: Sequence[Located]) -> Need:
    failed = runs.failed_since(actor, tops, timezone.now() - FAILED)
    items = [
        Item(run.template_name, _url("run", run.metalake_id, run.pk), f"as {run.user_name}", run.finished_at)
        for run in failed[:MOST]
    ]
    return Need("Failed runs", "circle-x", "Jobs that failed in the last 7 days.", items, len(failed))


NEEDS: tuple[Callable[[Actor, Sequence[Located]], Need], ...] = (_requested, _ending, _stuck, _failed, _reviewed)


def needs_of(actor: Actor, tops: Sequence[Located]) -> list[Need]:
    """What needs somebody in these metalakes, of what the actor may see."""
    return [need for need in (read(actor, tops) for read in NEEDS) if need.count] if tops else []


def new_objects(actor: Actor, tops: Sequence[Located]) -> list[tuple[Located, datetime]]:
    """The last objects that were made, the newest first."""
    return browsing.made_since(actor, tops, timezone.now() - NEW, SHOWN + 1) if tops else []
