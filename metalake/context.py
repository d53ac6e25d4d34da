"""Context variables of a request: its id, for logs, events and audit rows, and its client's address."""

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")

# The address by which failed sign-ins are counted (metalake.addresses.client_of); "" outside of requests.
address: contextvars.ContextVar[str] = contextvars.ContextVar("address", default="")


@contextmanager
def for_request(asked: str) -> Iterator[None]:
    """A context for work that is done later, or by another process, for the request of this id."""
    token = request_id.set(asked)
    try:
        yield
    finally:
        request_id.reset(token)
