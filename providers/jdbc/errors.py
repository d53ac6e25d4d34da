"""Our errors for a database's, which each driver has by numbers of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import partial

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
Refused = partial(ProviderUnavailable, retryable=False)


@dataclass(frozen=True)
class About:
    """What a call is about, for its errors."""

    kind: Kind
    name: str


class Failure(Enum):
    """What a call failed by, which did nothing: our error and its message, of a catalog if that names the server."""

    EXISTS = AlreadyExists, "{what} already exists."
    MISSING = NotFound, "{what} does not exist."
    NO_SCHEMA = NotFound, "Schema {what} does not exist."  # the object's, or that of a type
    DEPENDS = Conflict, "{what} is still used in the database: {reason}."
    DENIED = Refused, "The catalog's account may not do that: {reason}."
    SLOW = ProviderTimeout, "{where} took too long, and ended the statement."
    LOCKED = ProviderBusy, "{what} is locked by others in the database."
    BUSY = ProviderBusy, "{where} is busy: {reason}."
    LOGIN = Refused, "{where} refused jdbc-user and jdbc-password, or has no such database."
    REFUSED = Invalid, "The database refused it: {reason}."  # the statement is wrong
    NO_TLS = Refused, "{where} does not speak the TLS that the URL asks for, or its certificate is not valid."
    SILENT = ProviderUnavailable, "{where} did not answer, or is another product."

    def error(self, about: About, where: str, words: str = "") -> MetalakeError:
        """`where` is the host and port, `words` the database's own."""
        printable = "".join(letter if letter.isprintable() else " " for letter in ACCOUNT.sub("the account", words))
        what, reason = f"{about.kind.capitalize()} {about.name}", " ".join(printable.split())[:300].rstrip(".")
        raised, message = self.value
        kind = Kind.CATALOG if "{where}" in message else about.kind
        if self is Failure.NO_SCHEMA:
            named = QUOTED.search(words)
            if named is None or not f"{about.name}.".startswith(f"{named[1]}."):
                return Failure.REFUSED.error(about, where, words)
            what, kind = named[1], Kind.SCHEMA
        if self is Failure.DEPENDS and about.kind is Kind.SCHEMA:
            raised = NotEmpty
        error: MetalakeError = raised(message.format(what=what, where=where, reason=reason), kind=kind)
        return error
