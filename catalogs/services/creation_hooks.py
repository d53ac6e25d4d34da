"""Hooks by which other apps can refuse creating an object in a container or moving it there."""

from __future__ import annotations

from collections.abc import Callable

from authz.actor import Actor
from metalake.lineage import Located

_checks: list[Callable[[Actor, Located], None]] = []


def check_home_with(check: Callable[[Actor, Located], None]) -> None:
    """Register a check that raises if the actor, despite having the right, may not create or move anything there.

    It runs on hot paths, so it should avoid queries.
    """
    if check not in _checks:
        _checks.append(check)


def check_home(actor: Actor, home: Located) -> None:
    """Run the checks for a table, view or schema to be created in or moved to `home`; raises what they raise."""
    for check in _checks:
        check(actor, home)
