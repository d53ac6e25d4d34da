"""Every way a request can fail, said once; each wire renders it in its own shape.

MetalakeError
├── Unauthenticated      nobody we know
├── TooManyRequests      it failed too often of late: wait
├── Forbidden            seen, but not allowed
├── NotFound             absent, or unseen by the caller
├── AlreadyExists        the name is taken
├── NotEmpty             it still holds something
├── InUse                must be disabled first
├── NotInUse             disabled, so nothing below it answers
├── Invalid              the request is wrong
│   ├── TooLarge         over one of our limits
│   └── Unprocessable    well formed, but contradicts itself
├── Unsupported          this catalog cannot do it
├── Conflict             a stale write; load again and retry
├── ProviderUnavailable  the outside world refused the call or could not be reached
│   ├── ProviderBusy     it is not asked now: too many wait for it, it throttles, or it kept failing
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
    """`kind` names what the failure is about: a Kind value, or "user", "group", "role", "privilege" and the like."""

    def __init__(self, message: str, *, kind: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind


class Unauthenticated(MetalakeError):
    """The caller did not prove who they are; without a message of its own, no credential was sent."""

    def __init__(self, message: str = NO_CREDENTIAL, *, kind: str | None = None) -> None:
        super().__init__(message, kind=kind)


class TooManyRequests(MetalakeError):
    """The caller tried and failed too often, or too many try at this moment: again in `retry_after` seconds."""

    def __init__(self, message: str, *, kind: str | None = None, retry_after: int = 60) -> None:
        super().__init__(message, kind=kind)
        self.retry_after = retry_after


class Forbidden(MetalakeError):
    """The caller sees the object but may not do this."""


class NotFound(MetalakeError):
    """No such object for this caller."""


class AlreadyExists(MetalakeError):
    """An object of that name is there already."""


class NotEmpty(MetalakeError):
    """The object holds others, seen or unseen by the caller."""


class InUse(MetalakeError):
    """The metalake or catalog must be disabled, or writes to its outside system must end, before it is dropped."""


class NotInUse(MetalakeError):
    """The metalake or catalog is disabled."""


class Invalid(MetalakeError):
    """The request is wrong; the message says where and what would be right."""


class TooLarge(Invalid):
    """Over a limit that the message names."""


class Unprocessable(Invalid):
    """Well formed, but contradicts itself."""


class Unsupported(MetalakeError):
    """This catalog or wire cannot do that; the message says why."""


class Conflict(MetalakeError):
    """Somebody else changed the object since the caller last saw it."""


class ProviderUnavailable(MetalakeError):
    """A remote system or a storage could not be asked: the call certainly changed nothing there.

    `retryable` says whether trying again may help, `retry_after` in how many seconds.
    """

    retry_after = 5

    def __init__(self, message: str, *, kind: str | None = None, retryable: bool = True) -> None:
        super().__init__(message, kind=kind)
        self.retryable = retryable


class ProviderBusy(ProviderUnavailable):
    """A remote system is spared now: it throttles, it kept failing, or too many callers wait for it already."""


class ProviderTimeout(ProviderUnavailable):
    """A remote system did not answer a read in time."""


class StoreUnavailable(ProviderUnavailable):
    """Our own database did not do it, too many wait for it already, or our disk is full: nothing was changed.

    `retry_after` says when to try again.
    """


class OutcomeUnknown(MetalakeError):
    """The write may have happened; look before writing again: it should be known in `retry_after` seconds."""

    retry_after = 15


@contextmanager
def at(place: str) -> Iterator[None]:
    """Put a place in the request, such as `roles[3].grants[2]`, before what a refusal says."""
    try:
        yield
    except MetalakeError as refusal:
        if not place:
            raise
        raise type(refusal)(f"{place}: {refusal.message}", kind=refusal.kind) from None


def as_json(error: MetalakeError) -> dict[str, Any]:
    """A failure to keep, or to tell another process."""
    known = next(each.__name__ for each in type(error).__mro__ if each.__module__ == __name__)
    said: dict[str, Any] = {"class": known, "message": error.message, "kind": error.kind}
    if isinstance(error, ProviderUnavailable):
        said |= {"retryable": error.retryable, "retry_after": error.retry_after}
    return said


def from_json(said: dict[str, Any]) -> MetalakeError:
    error: MetalakeError = globals()[said["class"]](said["message"], kind=said["kind"])
    if isinstance(error, ProviderUnavailable):
        error.retryable, error.retry_after = said["retryable"], said["retry_after"]
    return error
