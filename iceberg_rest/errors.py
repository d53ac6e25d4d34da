"""Renders our errors as Iceberg's. Source: Iceberg REST specification, "IcebergErrorResponse".

After a 5xx on a commit clients keep its files, since it may have succeeded. So only an unknown outcome and an
unexpected exception are reported as 500.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import UnreadablePostError
from pydantic import ValidationError

from formats.iceberg import updates
from iceberg_rest.replies import Reply
from metalake import errors
from metalake.database_errors import unavailable
from metalake.errors import MetalakeError, NotFound
from metalake.kinds import KINDS, IcebergWords, Kind
from metalake.logs import note_failure
from metalake.rest.exceptions import message_of
from metalake.wire import explain

log = logging.getLogger(__name__)

CHALLENGE = 'Basic realm="Metalake", Bearer realm="Metalake"'

_WORDS: dict[str, IcebergWords] = {kind: declared.iceberg for kind, declared in KINDS.items() if declared.iceberg}
_OBJECTS = {Kind.METALAKE, *_WORDS}


@dataclass(frozen=True)
class Subject:
    """The object of a request, as named in it."""

    kind: Kind
    name: str

    def missing(self) -> NotFound:
        """The Iceberg REST error for a missing object; also for a hidden one, and for one below either."""
        return NotFound(f"{_WORDS[self.kind].noun} does not exist: {self.name}", kind=self.kind)

    def reported(self, error: Exception) -> Exception:
        """The error to report: any missing object on the path is reported as the missing subject."""
        return self.missing() if isinstance(error, NotFound) and error.kind in _OBJECTS else error


def render_error(error: Exception, *, commits: bool = False, of_view: bool = False) -> Reply:
    """The reply to any error; `commits`: the request would have changed a table's or view's metadata.

    `of_view`: for 404, 409 and a commit's 500 on views, the specification's schema has the bare error object, but its
    examples and all clients the wrapped one: the reply contains both.
    """
    known = _known(error)
    if known is None:
        log.error("unexpected exception", exc_info=error)
        known = MetalakeError("The server failed; the request's id is in its log.")
    note_failure(known)
    status, type_ = shape_of(known, commits=commits)
    is_both = of_view and (status in (404, 409) or (status == 500 and commits))
    reply = error_reply(status, type_, message_of(known), is_both=is_both)
    if status == 401:
        reply.headers["WWW-Authenticate"] = CHALLENGE
    if status in (429, 503) and isinstance(known, errors.ProviderUnavailable | errors.TooManyRequests):
        reply.headers["Retry-After"] = str(known.retry_after)
    return reply


def error_reply(status: int, type_: str, message: str, *, is_both: bool = False) -> Reply:
    error = {"message": message, "type": type_, "code": status}
    return Reply(status, orjson.dumps({"error": error, **(error if is_both else {})}))


def _known(error: Exception) -> MetalakeError | None:
    match error:
        case MetalakeError():
            return error
        case ValidationError():
            return errors.Invalid(explain(error))
        case RequestDataTooBig():
            return errors.TooLarge("The request body is too large.")
        case UnreadablePostError():
            return errors.Invalid("The request body did not arrive.")
    return unavailable(error)  # failures inside a write's transaction were converted there


def shape_of(error: MetalakeError, *, commits: bool = False) -> tuple[int, str]:
    """HTTP status and exception type."""
    match error:
        case errors.Unauthenticated():
            return 401, "NotAuthorizedException"
        case errors.TooManyRequests():
            return 429, "TooManyRequestsException"
        case errors.Forbidden() | errors.NotInUse():
            return 403, "ForbiddenException"
        case errors.NotFound():
            return 404, _WORDS[error.kind].missing if error.kind in _WORDS else "NotFoundException"
        case errors.AlreadyExists():
            return 409, "AlreadyExistsException"
        case errors.NotEmpty():
            return 409, "NamespaceNotEmptyException"
        case errors.Conflict() | errors.InUse():
            return 409, "CommitFailedException"
        case errors.TooLarge(kind=None):
            return 413, "BadRequestException"
        case errors.Unprocessable():
            return 422, "UnprocessableEntityException"
        case errors.Invalid(kind=updates.REFERENCE_TEXT):
            return 400, "IllegalArgumentException"
        case errors.Invalid():
            return 400, "BadRequestException"
        case errors.Unsupported():
            return 406, "UnsupportedOperationException"
        case errors.StoreUnavailable():
            return 503, "ServiceUnavailableException"  # clients retry after Retry-After
        case errors.ProviderUnavailable():
            # The commit certainly did not happen, so the client may clean up and retry.
            return (409, "CommitFailedException") if commits else (503, "ServiceUnavailableException")
    return 500, "CommitStateUnknownException" if commits else "ServiceFailureException"
