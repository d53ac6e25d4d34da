"""The moments when access changed, each with a link to the same page as of then."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from django.http import QueryDict
from django.urls import reverse
from django.utils.http import urlencode

from access.explain.timeline import EARLIEST, Moment, Moments
from metalake.full_names import dotted
from metalake.lineage import Located
from metalake.wire import written

MOST_MOMENTS = 200
JUST_BEFORE = timedelta(milliseconds=1)
AS_OF = "asOf"  # as in the API
OF = "of"  # of a query: the page of an object that moments lead back to


class Then(NamedTuple):
    """The page that a moment is chosen for, with its query but for the moment; `part` is what its answer replaces."""

    path: str
    query: QueryDict
    part: str

    @property
    def asked(self) -> list[tuple[str, str]]:
        """The query as the fields of a form."""
        return [(name, str(value)) for name, values in self.query.lists() for value in values]

    def url(self, at: datetime) -> str:
        query = self.query.copy()
        query[AS_OF] = written(at)
        return f"{self.path}?{query.urlencode()}"


class Change(NamedTuple):
    """A moment with the pages of what was then, and of what it changed; `on` is the object, if there are several."""

    moment: Moment
    at: str
    then_url: str
    compare_url: str
    on: str


class Timeline(NamedTuple):
    """The newest changes first; `since`: changes before that moment are left out, None if there are none."""

    changes: list[Change]
    since: datetime | None


def changes_url(target: Located, page: str, query: QueryDict) -> str:
    """The moments when access to an object changed, which lead back to a page of it that was asked this."""
    asked = query.copy()
    asked.pop("after", None)  # pagination differs by moment
    asked[OF] = page
    return f"{reverse('frontend:changes', args=[target.id])}?{asked.urlencode()}"


def page_then(path: str, query: QueryDict, part: str) -> Then:
    """The page at this path with the rest of a query, to be shown as of moments."""
    asked = query.copy()
    for name in (AS_OF, OF, "csrfmiddlewaretoken"):
        asked.pop(name, None)
    return Then(path, asked, part)


def timeline(histories: Iterable[Moments], then: Then) -> Timeline:
    """The changes of one or several objects; a change described alike for several of them is listed once."""
    every = list(histories)
    changes: dict[tuple[datetime, str], Change] = {}
    for history in every:
        on = dotted(history.target.full_name) if len(every) > 1 else ""
        for moment in history.moments:
            changes.setdefault((moment.at, moment.says), _change(history.target, moment, then, on))
    since = max((history.since for history in every), default=EARLIEST)
    newest = sorted((one for one in changes.values() if one.moment.at > since), key=_at, reverse=True)
    return Timeline(newest, since if since > EARLIEST else None)


def _at(change: Change) -> datetime:
    return change.moment.at


def _change(target: Located, moment: Moment, then: Then, on: str) -> Change:
    span = urlencode({"from": written(moment.at - JUST_BEFORE), "to": written(moment.at)})
    compare_url = f"{reverse('frontend:compare', args=[target.id])}?{span}"
    return Change(moment, written(moment.at), then.url(moment.at), compare_url, on)
