"""The sessions of the pages and the admin: Django's, in keys that begin with the account's id.

So the sessions of an account are found by the primary key alone. What a session knows of itself (since when, last seen,
browser) is in its data. It ends SESSION_COOKIE_AGE after the sign-in, however much it is used.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends import base, db
from django.contrib.sessions.models import Session
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import get_random_string

SINCE, SEEN, BROWSER = "since", "seen", "browser"
EVERY = timedelta(minutes=10)  # how exactly "last seen" is known: each time is a write
MOST_LISTED = 100
_RANDOM = 26  # characters of 36, 134 bits; a key has 40, of which the id takes up to 13
_LONGEST_BROWSER = 300


class SessionStore(db.SessionStore):
    """Database sessions whose keys name their account; one of another form signs nobody in."""

    def _get_new_session_key(self) -> str:
        user_id = getattr(self, "_session_cache", {}).get(SESSION_KEY)
        while True:
            key = _prefix(user_id) + get_random_string(_RANDOM, base.VALID_KEY_CHARS)
            if not self.exists(key):
                return key

    def load(self) -> dict[str, Any]:
        data: dict[str, Any] = super().load()
        if SESSION_KEY in data and not (self.session_key or "").startswith(_prefix(data[SESSION_KEY])):
            self._session_key = None  # of a version before this one: it could not be listed or ended
            return {}
        return data


def _prefix(user_id: object) -> str:
    return f"{user_id}-" if user_id else "-"


def begin(sender: object, request: HttpRequest, user: Any, **_: object) -> None:
    """Receiver of user_logged_in: the session gets a key of the account, and notes when it began, and where."""
    session = request.session
    now = timezone.now()
    browser = request.headers.get("User-Agent", "")[:_LONGEST_BROWSER]
    session.update({SINCE: now.isoformat(), SEEN: now.isoformat(), BROWSER: browser})
    session.set_expiry(now + timedelta(seconds=settings.SESSION_COOKIE_AGE))
    session.cycle_key()


def note_seen(request: HttpRequest) -> None:
    """Note that the session is used, every ten minutes at most."""
    now = timezone.now()
    if now - _moment(request.session.get(SEEN)) > EVERY:
        request.session[SEEN] = now.isoformat()


@dataclass(frozen=True)
class Shown:
    """A session without its key. `browser` is the User-Agent header that it began with."""

    id: str
    since: datetime
    seen: datetime
    browser: str
    is_this: bool


def list_sessions(user: Any, this: str | None) -> list[Shown]:
    """The account's live sessions, the one with the key `this` first, then by last use; the newest MOST_LISTED."""
    rows = _of(user.pk).filter(expire_date__gt=timezone.now()).order_by("-expire_date")[:MOST_LISTED]
    good = user.get_session_auth_hash()  # those of a former password are of no use
    shown = [
        _shown(row, data, row.session_key == this)
        for row, data in ((row, row.get_decoded()) for row in rows)
        if data.get(HASH_SESSION_KEY) == good
    ]
    return sorted(shown, key=lambda one: (not one.is_this, -one.seen.timestamp()))


def _shown(row: Session, data: dict[str, Any], is_this: bool) -> Shown:
    since, seen = _moment(data.get(SINCE)), _moment(data.get(SEEN))
    return Shown(_id_of(row.session_key), since, seen, data.get(BROWSER, ""), is_this)


def end_session(user_id: int, id: str, *, but: str | None) -> bool:
    """End a session of the account, not the one with the key `but`; False if it has none of this id."""
    for key in _of(user_id).exclude(session_key=but).values_list("session_key", flat=True):
        if _id_of(key) == id:
            return bool(_of(user_id).filter(session_key=key).delete()[0])
    return False


def end_other_sessions(user_id: int, this: str | None) -> int:
    """End all sessions of the account but the one with this key; how many were live."""
    others = _of(user_id).exclude(session_key=this)
    live = others.filter(expire_date__gt=timezone.now()).count()
    others.delete()
    return live


def _of(user_id: int) -> QuerySet[Session]:
    return Session.objects.filter(session_key__startswith=_prefix(user_id))


def _id_of(key: str) -> str:
    """What a page calls a session, which does not give its key away."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _moment(text: str | None) -> datetime:
    return datetime.fromisoformat(text) if text else datetime.fromtimestamp(0, timezone.get_default_timezone())
