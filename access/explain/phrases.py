"""Phrases of the palette, such as "analyst reads travel:nyc until Friday". Nothing is looked up here."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from metalake.levels import Level
from metalake.privileges import Privilege
from metalake.wire import utc

LONGEST = 512  # characters
_LEVELS = {"read": Level.READER, "writ": Level.WRITER, "mana": Level.MANAGER}  # by their first letters
_VERB = r"(?:(?:may|can)\s+)?(read|write|manage)s?"
_MAY = r"(?:can(?:not|'t)?|may(?:\s+not)?)"
_UNITS = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24, "year": 365 * 24}  # hours
_LONGEST_SPAN = 100 * _UNITS["year"]
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


_WISH = _pattern(rf"(\S.*?)\s+{_VERB}\s+(\S.*)")
_WHO = _pattern(rf"who\s+(?:{_VERB}|reaches|has\s+access\s+to)\s+(\S.*)")
_WHY = _pattern(rf"why\s+(?:{_MAY}\s+)?(\S.*?)\s+(?:{_MAY}\s+)?(read|write|manage)s?\s+(\S.*)")
_WHY_BARE = _pattern(r"why\s+(\S.*)\s+(\S+)")
_GRANT = _pattern(r"grant\s+(?:(\w+)\s+)?on\s+(\S.*?)(?:\s+to\s+(\S.*))?")
_GRANT_BARE = _pattern(r"grant\s+(\S.*)")
_UNTIL = _pattern(r"(.*\S)\s+until\s+(\S.*)")
_FOR = _pattern(r"(.*\S)\s+for\s+(?:(\d{1,4})|an?|one)\s+(hour|day|week|month|year)s?")


class Act(StrEnum):
    """What a phrase asks for."""

    GRANT = "grant"
    WHO = "who"
    WHY = "why"


class Phrase(NamedTuple):
    """What is asked about the object of the name or path `what`.

    `who` is a name, "" for nobody yet. `level` is None where a privilege is named, or any will do. `unread` is an end
    that was not understood.
    """

    act: Act
    what: str
    who: str = ""
    level: Level | None = None
    privilege: Privilege | None = None
    ends: datetime | None = None
    unread: str = ""


def read_phrase(text: str, now: datetime) -> Phrase | None:
    """The parts of a phrase; None if the text is none, or longer than a search. Of several verbs, the first counts."""
    text = text.strip()
    if len(text) > LONGEST:
        return None
    if match := _WHO.fullmatch(text):
        return Phrase(Act.WHO, match[2], level=_level(match[1]))
    if match := _WHY.fullmatch(text):
        return Phrase(Act.WHY, match[3], match[1], _level(match[2]))
    if match := _WHY_BARE.fullmatch(text):
        return Phrase(Act.WHY, match[2], match[1], Level.READER)
    rest, ends, unread = _split_end(text, now)
    phrase = _grant(rest)
    return phrase._replace(ends=ends, unread=unread) if phrase else None


def _grant(text: str) -> Phrase | None:
    if match := _GRANT.fullmatch(text):
        right = (match[1] or "read").lower()
        if right in set(Privilege):
            return Phrase(Act.GRANT, match[2], match[3] or "", privilege=Privilege(right))
        return Phrase(Act.GRANT, match[2], match[3] or "", _level(right) or Level.READER)
    bare = _GRANT_BARE.fullmatch(text)
    if match := _WISH.fullmatch(bare[1] if bare else text):
        return Phrase(Act.GRANT, match[3], match[1], _level(match[2]))
    return Phrase(Act.GRANT, bare[1], level=Level.READER) if bare else None


def _level(word: str | None) -> Level | None:
    return _LEVELS.get(word[:4].lower()) if word else None


def _split_end(text: str, now: datetime) -> tuple[str, datetime | None, str]:
    """The text before an end, the end, and what of it was not understood."""
    if match := _FOR.fullmatch(text):
        hours = int(match[2] or 1) * _UNITS[match[3].lower()]
        if hours <= _LONGEST_SPAN:
            return match[1], now + timedelta(hours=hours), ""
        return match[1], None, text[match.end(1) :].partition("for")[2].strip()
    if match := _UNTIL.fullmatch(text):
        ends = _until(match[2].strip().lower(), now)
        return match[1], ends, "" if ends else match[2]
    return text, None, ""


def _until(text: str, now: datetime) -> datetime | None:
    """The end of a day by name or date, in UTC; or the moment itself, if it is written with a time."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if text in ("today", "tomorrow"):
        return today + timedelta(days=1 if text == "today" else 2)
    weekday = next((number for number, day in enumerate(_DAYS) if len(text) > 1 and day.startswith(text)), None)
    if weekday is not None:  # a week from now where it is the same day
        return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 2)
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC) + timedelta(days=1)
        return utc(text.upper()) if re.match(r"\d{4}-\d\d-\d\d.\d\d:", text) else None
    except (ValueError, OverflowError):
        return None
