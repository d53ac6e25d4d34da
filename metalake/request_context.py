"""Context variables of a request: its id (for logs, events and audit rows), client address, API and engine."""

import contextvars
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")

# The client address for counting failed sign-ins (metalake.client_address.client_of); "" outside requests.
address: contextvars.ContextVar[str] = contextvars.ContextVar("address", default="")


def this_process() -> str:
    """The host and id of this process, as stored in rows."""
    return f"{socket.gethostname()[:80]} {os.getpid()}"


class Door(NamedTuple):
    """A request's API ("native", "iceberg", "page" or "worker") and the engine that sent it.

    `asked` are the permission checks made so far; None where only one is possible.
    """

    wire: str
    engine: str
    asked: set[Any] | None


NO_REQUEST = Door("worker", "", None)
door: contextvars.ContextVar[Door] = contextvars.ContextVar("door", default=NO_REQUEST)


@contextmanager
def for_request(asked: str) -> Iterator[None]:
    """A context for work on behalf of the request with this id: later, in another process, or within the request."""
    is_itself = bool(asked) and request_id.get() == asked
    came_by = door.set(door.get() if is_itself else Door("worker", "", set()))
    token = request_id.set(asked)
    try:
        yield
    finally:
        request_id.reset(token)
        door.reset(came_by)
