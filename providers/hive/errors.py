"""Translate a metastore's errors and connection failures to ours."""

from __future__ import annotations

import re
from typing import NamedTuple

from hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidInputException,
    InvalidObjectException,
    InvalidOperationException,
    InvalidPartitionException,
    MetaException,
    NoSuchLockException,
    NoSuchObjectException,
    NoSuchTxnException,
    TxnAbortedException,
    UnknownDBException,
    UnknownTableException,
)
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from metalake.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    MetalakeError,
    NotEmpty,
    NotFound,
    OutcomeUnknown,
    ProviderTimeout,
    ProviderUnavailable,
    Unsupported,
)
from providers.network.response_budget import ResponseTooLarge

MISSING = (NoSuchObjectException, UnknownDBException, UnknownTableException)
LOCKS = (NoSuchLockException, NoSuchTxnException, TxnAbortedException)
WRONG = (InvalidObjectException, InvalidOperationException, InvalidInputException, InvalidPartitionException)
# The connection can be reused after these errors: the response was read completely.
ANSWERS_WHOLE = (*MISSING, *LOCKS, *WRONG, AlreadyExistsException, MetaException, TApplicationException)

# A metastore raises one exception for many errors; its text tells them apart.
ERRORS_BY_TEXT: list[tuple[re.Pattern[str], type[MetalakeError]]] = [
    (re.compile(r"is not empty"), NotEmpty),
    (re.compile(r"already exists"), AlreadyExists),
    (re.compile(r"not found|doesn't exist|does not exist"), NotFound),
    (re.compile(r"has been modified"), Conflict),
    (re.compile(r"No FileSystem for scheme|not a valid|[Rr]elative path"), Invalid),
]
INCOMPATIBLE = re.compile(r"types incompatible with the existing columns")
HOW_TO_CHANGE = (
    "A metastore compares columns by their position while its setting hive.metastore.disallow.incompatible.col.type."
    "changes is true, the default: set it to false in the metastore's hive-site.xml and restart it. With it, columns "
    "may only be added at the end, renamed and given wider types."
)
DENIED = re.compile(r"permission|access ?control|not authorized|unauthorized|denied", re.IGNORECASE)
IN_VAIN = "it may be no Hive metastore, or one that asks for Kerberos or TLS, which are not offered"
MAX_TEXT = 500


class About(NamedTuple):
    """The object of a call, for messages: `table`, `flights.delays`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Refused(ProviderUnavailable):
    """The metastore reported that the call failed."""


def is_write(method: str) -> bool:
    return method.startswith(("create", "alter", "drop", "add"))


def translated(failure: Exception, method: str, about: About, where: str) -> MetalakeError:
    """Our error for an exception from a metastore call.

    A write without a response, or with an unspecific failure, is an OutcomeUnknown; a rejected write was not done.
    """
    text = " ".join((getattr(failure, "message", None) or str(failure)).split())[:MAX_TEXT]
    thing = f"{about.kind.capitalize()} {about.name}"
    match failure:
        case NoSuchObjectException() | UnknownDBException() | UnknownTableException():
            return NotFound(f"{thing} does not exist.", kind=about.kind)
        case AlreadyExistsException():
            return AlreadyExists(f"{thing} already exists.", kind=about.kind)
        case InvalidObjectException() | InvalidOperationException() | InvalidInputException():
            return _by_text(text, about) or Invalid(f"Hive refused {about}: {text}", kind=about.kind)
        case NoSuchLockException() | NoSuchTxnException() | TxnAbortedException():
            return NotFound(f"The lock of {about} is gone.", kind=about.kind)
        case InvalidPartitionException():
            return Invalid(f"Hive refused {about}: {text}", kind=about.kind)
        case MetaException():
            return _by_text(text, about) or _refused(text, method, about)
        case TApplicationException(type=TApplicationException.UNKNOWN_METHOD):
            return Unsupported(f"What answers at {where} knows no {method}: {IN_VAIN}.", kind=about.kind)
        case TApplicationException():
            return _refused(text, method, about)
    return _unanswered(failure, method, where)


def _by_text(text: str, about: About) -> MetalakeError | None:
    if INCOMPATIBLE.search(text):
        return Invalid(f"Hive refused {about}: {text}. {HOW_TO_CHANGE}", kind=about.kind)
    error = next((error for pattern, error in ERRORS_BY_TEXT if pattern.search(text)), None)
    return error(f"Hive refused {about}: {text}", kind=about.kind) if error else None


def _refused(text: str, method: str, about: About) -> MetalakeError:
    """The error of a call that the metastore reports as failed; a write may be done, as listeners can fail after it."""
    if DENIED.search(text):
        message = f"The metastore does not permit {method} of {about} to this server: {text}"
        return Refused(message, kind=about.kind, retryable=False)
    message = f"The metastore could not do {method} of {about}: {text}"
    return OutcomeUnknown(message, kind=about.kind) if is_write(method) else Refused(message, kind=about.kind)


def _unanswered(failure: Exception, method: str, where: str) -> MetalakeError:
    code = failure.type if isinstance(failure, TTransportException) else None
    retryable = True
    if code == TTransportException.TIMED_OUT:
        message = f"{where} did not answer {method} in time."
    elif code == TTransportException.END_OF_FILE:
        message = f"{where} ended the connection instead of answering {method}; if it always does, {IN_VAIN}."
    elif isinstance(failure, ResponseTooLarge):
        message, retryable = f"The answer of {where} to {method} {failure}.", False
    elif isinstance(failure, OverflowError):
        longer = "a list or text that is longer than a million things or METALAKE_MAX_ANSWER"
        message, retryable = f"The answer of {where} to {method} has {longer}.", False
    elif code is not None or isinstance(failure, OSError):
        message = f"The connection to {where} broke before {method} was answered."
    else:
        message, retryable = f"What answers at {where} does not speak as a metastore does: {IN_VAIN}.", False
    if is_write(method):
        return OutcomeUnknown(message, kind="catalog")
    if code == TTransportException.TIMED_OUT:
        return ProviderTimeout(message, kind="catalog")
    return ProviderUnavailable(message, kind="catalog", retryable=retryable)
