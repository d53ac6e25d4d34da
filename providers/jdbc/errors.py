"""Our errors for a database's, which each driver has by numbers of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from metalake.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    MetalakeError,
    NotEmpty,
    NotFound,
    ProviderBusy,
    ProviderTimeout,
    ProviderUnavailable,
)
from metalake.kinds import Kind

ACCOUNT = re.compile(r"'[^']*'@'[^']*'")  # MySQL's spelling of a login
QUOTED = re.compile("[\"'](.+)[\"']")


class Failure(Enum):
    """What a call failed by; it did nothing."""

    EXISTS = auto()
    MISSING = auto()
    NO_SCHEMA = auto()  # the object's, or that of a type
    DEPENDS = auto()  # other objects depend on it
    DENIED = auto()
    SLOW = auto()
    LOCKED = auto()
    BUSY = auto()
    LOGIN = auto()
    REFUSED = auto()  # the statement is wrong
    NO_TLS = auto()
    SILENT = auto()


@dataclass(frozen=True)
class About:
    """What a call is about, for its errors."""

    kind: Kind
    name: str


def error_of(failure: Failure, about: About, where: str, words: str) -> MetalakeError:
    """`where` is the host and port, `words` the database's own."""
    printable = "".join(letter if letter.isprintable() else " " for letter in ACCOUNT.sub("the account", words))
    what, reason = f"{about.kind.capitalize()} {about.name}", " ".join(printable.split())[:300].rstrip(".")
    match failure:
        case Failure.EXISTS:
            return AlreadyExists(f"{what} already exists.", kind=about.kind)
        case Failure.MISSING:
            return NotFound(f"{what} does not exist.", kind=about.kind)
        case Failure.NO_SCHEMA:
            named = QUOTED.search(words)
            if named and f"{about.name}.".startswith(f"{named[1]}."):
                return NotFound(f"Schema {named[1]} does not exist.", kind=Kind.SCHEMA)
            return error_of(Failure.REFUSED, about, where, words)
        case Failure.DEPENDS:
            error = NotEmpty if about.kind is Kind.SCHEMA else Conflict
            return error(f"{what} is still used in the database: {reason}.", kind=about.kind)
        case Failure.DENIED:
            return ProviderUnavailable(
                f"The catalog's account may not do that: {reason}.", kind=about.kind, retryable=False
            )
        case Failure.SLOW:
            return ProviderTimeout(f"{where} took too long, and ended the statement.", kind=Kind.CATALOG)
        case Failure.LOCKED:
            return ProviderBusy(f"{what} is locked by others in the database.", kind=about.kind)
        case Failure.BUSY:
            return ProviderBusy(f"{where} is busy: {reason}.", kind=Kind.CATALOG)
        case Failure.LOGIN:
            return ProviderUnavailable(
                f"{where} refused jdbc-user and jdbc-password, or has no such database.",
                kind=Kind.CATALOG,
                retryable=False,
            )
        case Failure.REFUSED:
            return Invalid(f"The database refused it: {reason}.", kind=about.kind)
        case Failure.NO_TLS:
            message = f"{where} does not speak the TLS that the URL asks for, or its certificate is not valid."
            return ProviderUnavailable(message, kind=Kind.CATALOG, retryable=False)
        case Failure.SILENT:
            return ProviderUnavailable(f"{where} did not answer, or is another product.", kind=Kind.CATALOG)
