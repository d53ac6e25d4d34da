"""Prefetch: a request's first statement reads its object with its caller, for the lookup that follows.

A transaction discards it before checking permissions, so that no decision inside relies on a read outside.
"""

from __future__ import annotations

import threading

from metalake.kinds import LEAVES
from metalake.lineage import Address, Located

_here = threading.local()


class ReadAhead:
    """A context in which this thread's next lookup of an address uses the prefetched object.

    With `again`, the next two. A prefetched leaf also serves lookups of its schema, any number of times.
    """

    def __init__(self, address: Address, located: Located | None, *, again: bool = False) -> None:
        self.address, self.located, self.again = address, located, again

    def __enter__(self) -> None:
        _here.ahead = self

    def __exit__(self, *error: object) -> None:
        _here.ahead = None


def take(address: Address) -> ReadAhead | None:
    """The prefetched result for this address, if any: an object, or the nearest ancestor of a missing one.

    Both cost the same statements, so that response times do not reveal hidden objects.
    """
    ahead: ReadAhead | None = getattr(_here, "ahead", None)
    if ahead is None:
        return None
    if ahead.address == address:
        _here.ahead = ReadAhead(address, ahead.located) if ahead.again else None
        return ahead
    return _schema_of(ahead, address)


def _schema_of(ahead: ReadAhead, address: Address) -> ReadAhead | None:
    """The schema of the prefetched leaf, if it is at this address."""
    if ahead.address.leaf is None or ahead.address.of_schema() != address:
        return None
    located = ahead.located
    return ReadAhead(address, located.above() if located is not None and located.kind in LEAVES else located)


def forget() -> None:
    _here.ahead = None
