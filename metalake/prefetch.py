"""What a request's first statement read beside its caller, for the look-up of the same object that follows.

A transaction forgets it before it checks rights, so that nothing that was read outside decides inside.
"""

from __future__ import annotations

import threading

from metalake.kinds import LEAVES
from metalake.lineage import Address, Located

_here = threading.local()


class ReadAhead:
    """A context in which this thread's next look-up of an address is answered by what was read of it a moment ago.

    With `again`, so is the one after it. What was read of a leaf answers for its schema, too, any number of times.
    """

    def __init__(self, address: Address, located: Located | None, *, again: bool = False) -> None:
        self.address, self.located, self.again = address, located, again

    def __enter__(self) -> None:
        _here.ahead = self

    def __exit__(self, *error: object) -> None:
        _here.ahead = None


def take(address: Address) -> ReadAhead | None:
    """What was read ahead of this address, if anything: a missing object as well as one that exists, with its nearest.

    Both take as many statements then, so that nobody learns from the time which of them is hidden.
    """
    ahead: ReadAhead | None = getattr(_here, "ahead", None)
    if ahead is None:
        return None
    if ahead.address == address:
        _here.ahead = ReadAhead(address, ahead.located) if ahead.again else None
        return ahead
    return _home_in(ahead, address)


def _home_in(ahead: ReadAhead, address: Address) -> ReadAhead | None:
    """What is known of the schema of the leaf that was read ahead, if that is what the address leads to."""
    if ahead.address.leaf is None or ahead.address.of_schema() != address:
        return None
    located = ahead.located
    return ReadAhead(address, located.above() if located is not None and located.kind in LEAVES else located)


def forget() -> None:
    _here.ahead = None
