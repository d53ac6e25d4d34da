"""Why a request came to nothing, in one line, with the exit code that `gcli` ends with."""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """Exit codes of `gcli` (docs/gcli.md)."""

    DONE = 0
    FAILED = 1  # the server failed, or its response is invalid
    USAGE = 2  # the command line, or what it asks for, is wrong
    REFUSED = 3  # who asks is unknown, or may not
    MISSING = 4  # what was named does not exist, or may not be seen
    CONFLICT = 5  # it exists already, is in use, is not empty, or changed meanwhile
    UNREACHABLE = 6  # no answer from the server, or from the system behind it
    INTERRUPTED = 130


class Failure(Exception):
    """A request or a command that failed; the message is one line for people.

    `status` is the HTTP status of a refusal, and `kind` the server's word for it; None where no server spoke.
    """

    def __init__(
        self, message: str, exit_code: Exit = Exit.FAILED, *, status: int | None = None, kind: str | None = None
    ) -> None:
        super().__init__(message)
        self.exit_code, self.status, self.kind = exit_code, status, kind


_BY_STATUS = {400: Exit.USAGE, 405: Exit.USAGE, 413: Exit.USAGE, 401: Exit.REFUSED, 403: Exit.REFUSED} | {
    404: Exit.MISSING,
    409: Exit.CONFLICT,
    429: Exit.REFUSED,
    502: Exit.UNREACHABLE,
    503: Exit.UNREACHABLE,
    504: Exit.UNREACHABLE,
}


def of_status(status: int, message: str, kind: str | None = None) -> Failure:
    """The failure that an HTTP status and the server's own words say."""
    return Failure(message, _BY_STATUS.get(status, Exit.FAILED), status=status, kind=kind)
