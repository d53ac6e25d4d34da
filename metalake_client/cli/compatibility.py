"""Servers of other versions: errors for requests that one does not support or answers differently.

Fields that this `gcli` does not know are printed as they come, and those that are not there are left out of a table.
The version is only asked for where something failed, so that it costs nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metalake_client.failures import Exit, Failure

WIRE = "1.3"
"""The version of the native wire that this `gcli` was made for (`GET /api/version`)."""
_UNKNOWN_PATH = "NotFoundException"  # for an object that is not there, the kind is part of this word
_MAY_BE_OF_VERSION = (400, 405)


def explained(wrong: Failure | KeyError, ask: Callable[[], dict[str, Any]]) -> Failure:
    """The failure, with the versions of both sides if they may be the cause; `ask` requests the server's."""
    if isinstance(wrong, KeyError):
        failure = Failure(f"The server's answer has no {wrong}.")
    elif wrong.status in _MAY_BE_OF_VERSION or (wrong.status == 404 and wrong.kind == _UNKNOWN_PATH):
        failure = wrong
    else:
        return wrong
    theirs = version_of(ask)
    if theirs is None or distance(theirs) == 0:
        return failure
    words = str(failure)
    if failure.kind == _UNKNOWN_PATH:
        words, failure.exit_code = "The server does not know what this command asks for.", Exit.USAGE
    return Failure(f"{words} {sentence(theirs)}", failure.exit_code, status=failure.status, kind=failure.kind)


def version_of(ask: Callable[[], dict[str, Any]]) -> str | None:
    """The server's API version; None if it does not report one."""
    try:
        return str(ask()["version"]["version"])
    except (Failure, KeyError, TypeError):
        return None


def distance(theirs: str) -> int | None:
    """How many minor versions a server is ahead of this `gcli`, or behind it; None for another major one."""
    try:
        major, minor = map(int, theirs.split(".")[:2])
    except ValueError:
        return None
    ours = tuple(map(int, WIRE.split(".")))
    return minor - ours[1] if major == ours[0] else None


def sentence(theirs: str) -> str:
    """What the versions of both sides mean for their user."""
    apart = distance(theirs)
    if apart is None or abs(apart) > 1:
        return f"It speaks version {theirs}, and this gcli {WIRE}: they do not go together, install one nearer to it."
    return f"It speaks version {theirs}, and this gcli {WIRE}: what only one of them has does not work."
