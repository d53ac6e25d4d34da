"""What other apps say of who makes something in a container, or moves it there."""

from __future__ import annotations

from collections.abc import Callable

from authz.actor import Actor
from metalake.lineage import Located

_checks: list[Callable[[Actor, Located], None]] = []


def check_home_with(check: Callable[[Actor, Located], None]) -> None:
    """Register a function that raises if the actor, who has the right, still makes and moves nothing there.

    Hot paths call it: it makes no statement unless it must.
    """
    if check not in _checks:
        _checks.append(check)


def check_home(actor: Actor, home: Located) -> None:
    """Raise what the checks raise for a table, view or schema that is to be made below `home`, or moved there."""
    for check in _checks:
        check(actor, home)
