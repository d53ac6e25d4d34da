"""Wishes in words, such as "analyst reads travel:nyc": who, at which level, and the objects that may be meant."""

from __future__ import annotations

import re
from typing import NamedTuple

from access.explain import search
from access.explain.search import Result
from authz import operations, policy
from authz.actor import Actor
from authz.objects import by_ids
from metalake.levels import Level

_VERBS = {"read": Level.READER, "write": Level.WRITER, "manage": Level.MANAGER}
_PHRASE = re.compile(r"(\S.*?)\s+(?:(?:may|can)\s+)?(read|write|manage)s?\s+(\S.*)", re.IGNORECASE | re.DOTALL)


class Phrase(NamedTuple):
    """Somebody by name, a level, and the name or path of an object."""

    who: str
    level: Level
    what: str


class Meant(NamedTuple):
    """An object that a phrase may mean, and that the caller may grant on."""

    who: str
    level: Level
    on: Result


def read_phrase(text: str) -> Phrase | None:
    """The parts of a phrase; None if the text is none, or longer than a search. Of several verbs, the first counts."""
    match = _PHRASE.fullmatch(text.strip()) if len(text) <= search.LONGEST else None
    return Phrase(match[1], _VERBS[match[2].lower()], match[3]) if match else None


def objects_meant(actor: Actor, text: str, limit: int = 5) -> list[Meant]:
    """The objects that a phrase may mean among those that the caller may grant on, the best first.

    The name of the person is not looked up: the form that is filled with it does that.
    """
    phrase = read_phrase(text)
    if phrase is None:
        return []
    objects = search.search(actor, None, phrase.what, 4 * limit).objects
    located = by_ids([one.id for one in objects])
    may = [
        one
        for one in objects
        if one.id in located and policy.permits(actor, operations.grant_on(located[one.id].kind), located[one.id])
    ]
    return [Meant(phrase.who, phrase.level, one) for one in may[:limit]]
