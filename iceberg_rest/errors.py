"""Our errors in Iceberg's shape. Source: Iceberg REST specification, "IcebergErrorResponse".

Clients keep the files of a commit that was answered with 5xx, since it may have happened: only an outcome that is
unknown, or a failure that we did not foresee, is told so.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import orjson
from django.core.exceptions import RequestDataTooBig
from django.http import HttpResponse, UnreadablePostError
from pydantic import ValidationError

from metalake import errors
from metalake.bodies import JSON
from metalake.causes import unavailable
from metalake.errors import MetalakeError, NotFound
from metalake.kinds import KINDS, IcebergWords, Kind
from metalake.logs import note_failure
from metalake.wire import explain

log = logging.getLogger(__name__)

CHALLENGE = 'Basic realm="Metalake", Bearer realm="Metalake"'

_WORDS: dict[str, IcebergWords] = {kind: declared.iceberg for kind, declared in KINDS.items() if declared.iceberg}
_OBJECTS = {Kind.METALAKE, *_WORDS}


@dataclass(frozen=True)
class Subject:
    """What a request is about, by the names it used itself."""

    kind: Kind
    name: str

    def missing(self) -> NotFound:
        """A miss in this wire's words: the same whether it is absent, hidden, or below something that is."""
        return NotFound(f"{_WORDS[self.kind].noun} does not exist: {self.name}", kind=self.kind)

    def told(self, error: Exception) -> Exception:
        """The error; a miss of any object on the way is told as a miss of what was asked for."""
        return self.missing() if isinstance(error, NotFound) and error.kind in _OBJECTS else error


def render_error(error: Exception, *, commits: bool = False) -> HttpResponse:
    """Any failure as the response; `commits` says that the request would have changed a table's metadata."""
    known = _known(error)
    if known is None:
        log.error("unforeseen failure", exc_info=error)
        known = MetalakeError("The server failed; the request's id is in its log.")
    note_failure(known)
    status, type_ = shape_of(known, commits=commits)
    response = error_response(status, type_, known.message)
    if status == 401:
        response["WWW-Authenticate"] = CHALLENGE
    if status in (429, 503) and isinstance(known, errors.ProviderUnavailable | errors.TooManyRequests):
        response["Retry-After"] = str(known.retry_after)
    return response


def error_response(status: int, type_: str, message: str) -> HttpResponse:
    body = orjson.dumps({"error": {"message": message, "type": type_, "code": status}})
    return HttpResponse(body, status=status, content_type=JSON)


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
    return unavailable(error)  # the one transaction of a write answers for itself; this failed before it


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
        case errors.Invalid():
            return 400, "BadRequestException"
        case errors.Unsupported():
            return 406, "UnsupportedOperationException"
        case errors.StoreUnavailable():
            return 503, "ServiceUnavailableException"  # clients send the same again after Retry-After
        case errors.ProviderUnavailable():
            # Known not to have happened: a client that is told so may clean up and try again.
            return (409, "CommitFailedException") if commits else (503, "ServiceUnavailableException")
    return 500, "CommitStateUnknownException" if commits else "ServiceFailureException"
