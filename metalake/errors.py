"""All errors of requests; each API renders them in its own format.

MetalakeError
├── Unauthenticated      missing or invalid credentials
├── TooManyRequests      too many failures recently: wait
├── Forbidden            the caller sees the object, but may not do this
├── NotFound             missing, or hidden from the caller
├── AlreadyExists        the name is in use
├── NotEmpty             it still contains objects
├── InUse                must be disabled first
├── NotInUse             disabled, so nothing below it can be used
├── Invalid              the request is wrong
│   ├── TooLarge         over one of our limits
│   └── Unprocessable    well formed, but contradicts itself
├── Unsupported          this catalog cannot do it
├── Conflict             a stale write; load again and retry
├── ProviderUnavailable  a remote system refused the call or could not be reached
│   ├── ProviderBusy     not called now: too many callers wait, it throttles, or its circuit breaker is open
│   ├── ProviderTimeout  it did not answer in time
│   └── StoreUnavailable our own database or disk cannot do it now: the request changed nothing there
└── OutcomeUnknown       a write may or may not have happened
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NO_CREDENTIAL = "Send an Authorization header: Basic with a user name and password, or Bearer with a token."


class MetalakeError(Exception):
    """`kind` is the kind of object concerned: a Kind value, or "user", "group", "role", "privilege" and the like."""

    def __init__(self, message: str, *, kind: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind


class Unauthenticated(MetalakeError):
    """Missing or invalid credentials; the default message is for requests without a credential."""

    def __init__(self, message: str = NO_CREDENTIAL, *, kind: str | None = None) -> None:
        super().__init__(message, kind=kind)


class TooManyRequests(MetalakeError):
    """Too many failed or concurrent attempts: retry in `retry_after` seconds."""

    def __init__(self, message: str, *, kind: str | None = None, retry_after: int = 60) -> None:
        super().__init__(message, kind=kind)
        self.retry_after = retry_after


class Forbidden(MetalakeError):
    """The caller sees the object but may not do this.

    `object_id` and `operation` are what a grant might allow, a row of authz.operations; the id is 0 where none does.
    """

    def __init__(self, message: str, *, kind: str | None = None, object_id: int = 0, operation: str = "") -> None:
        super().__init__(message, kind=kind)
        self.object_id = object_id
        self.operation = operation


class NotFound(MetalakeError):
    """No such object for this caller."""


class AlreadyExists(MetalakeError):
    """An object with that name already exists."""


class NotEmpty(MetalakeError):
    """The object contains others, possibly hidden from the caller."""


class InUse(MetalakeError):
    """The metalake or catalog must be disabled, or writes to its outside system must end, before it is dropped."""


class NotInUse(MetalakeError):
    """The metalake or catalog is disabled."""


class Invalid(MetalakeError):
    """The request is wrong; the message says where and what would be right."""


class TooLarge(Invalid):
    """Over a limit named in the message."""


class Unprocessable(Invalid):
    """Well formed, but contradicts itself."""


class Unsupported(MetalakeError):
    """This catalog or API does not support it; the message says why."""


class Conflict(MetalakeError):
    """The object changed since the caller last loaded it."""


class ProviderUnavailable(MetalakeError):
    """A remote system or storage could not be reached: the call certainly changed nothing there.

    `retryable` says whether a retry may help, `retry_after` in how many seconds.
    """

    retry_after = 5

    def __init__(self, message: str, *, kind: str | None = None, retryable: bool = True) -> None:
        super().__init__(message, kind=kind)
        self.retryable = retryable


class ProviderBusy(ProviderUnavailable):
    """A remote system was not called: it throttles, its circuit breaker is open, or too many callers wait."""


class ProviderTimeout(ProviderUnavailable):
    """A remote system did not answer a read in time."""


class StoreUnavailable(ProviderUnavailable):
    """Our own database failed, too many callers wait for it, or our disk is full: nothing was changed.

    Retry after `retry_after` seconds.
    """


class OutcomeUnknown(MetalakeError):
    """The write may have happened: load the object before retrying, in about `retry_after` seconds."""

    retry_after = 15


@contextmanager
def at(place: str) -> Iterator[None]:
    """Prefix errors raised inside with a path in the request, such as `roles[3].grants[2]`."""
    try:
        yield
    except MetalakeError as refusal:
        if not place:
            raise
        raise type(refusal)(f"{place}: {refusal.message}", kind=refusal.kind) from None


def as_json(error: MetalakeError) -> dict[str, Any]:
    """An error as JSON, to store it or send it to another process."""
    known = next(each.__name__ for each in type(error).__mro__ if each.__module__ == __name__)
    data: dict[str, Any] = {"class": known, "message": error.message, "kind": error.kind}
    if isinstance(error, ProviderUnavailable):
        data |= {"retryable": error.retryable, "retry_after": error.retry_after}
    return data


def from_json(data: dict[str, Any]) -> MetalakeError:
    error: MetalakeError = globals()[data["class"]](data["message"], kind=data["kind"])
    if isinstance(error, ProviderUnavailable):
        error.retryable, error.retry_after = data["retryable"], data["retry_after"]
    return error
