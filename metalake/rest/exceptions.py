"""Renders errors for the native API; Django REST framework's exception handler."""

from __future__ import annotations

import logging
from typing import Any

import orjson
from django.conf import settings
from django.http import Http404, HttpResponse, UnreadablePostError
from django.urls import reverse
from pydantic import ValidationError
from rest_framework.exceptions import APIException, MethodNotAllowed, NotAuthenticated, PermissionDenied

from metalake import errors
from metalake.bodies import JSON
from metalake.database_errors import unavailable
from metalake.errors import Invalid, MetalakeError
from metalake.headers import NEVER_STORED
from metalake.kinds import KINDS
from metalake.logs import note_failure
from metalake.refusal_audit import refused
from metalake.wire import explain

log = logging.getLogger(__name__)

CHALLENGE = 'Basic realm="Metalake"'

_NAMES: dict[str, str] = {kind: declared.label for kind, declared in KINDS.items()} | {
    "partition": "Partition",
    "user": "User",
    "group": "Group",
    "object": "MetadataObject",
}
_ILLEGAL = {
    "privilege": "IllegalPrivilegeException",
    "role": "IllegalRoleException",
    "object": "IllegalMetadataObjectException",
}
# Their error handlers in the Python client know no code above 1010 but 1100.
_OLD_CODES = {"partition", "statistic", *(kind for kind, declared in KINDS.items() if declared.old_codes)}


def shape_of(error: MetalakeError) -> tuple[int, int, str]:
    """HTTP status, native error code and exception type."""
    kind = error.kind or ""
    name = _NAMES.get(kind, "")
    match error:
        case errors.Unauthenticated():
            return 401, 1100 if kind in _OLD_CODES else 1011, "UnauthorizedException"
        case errors.TooManyRequests():
            return 429, 1000, "TooManyRequestsException"
        case errors.Forbidden():
            return 403, 1008, "ForbiddenException"
        case errors.NotFound():
            return 404, 1003, f"NoSuch{name}Exception" if name else "NotFoundException"
        case errors.AlreadyExists():
            return 409, 1004, f"{name}AlreadyExistsException" if name else "AlreadyExistsException"
        case errors.NotEmpty():
            return 409, 1005, f"NonEmpty{name}Exception" if name else "NotEmptyException"
        case errors.InUse():
            return 409, 1010, f"{name}InUseException"
        case errors.NotInUse():
            return 409, 1009, f"{name}NotInUseException"
        case errors.TooLarge():
            return 413, 1001, "IllegalArgumentException"
        case errors.Invalid():
            return 400, 1001, _ILLEGAL.get(kind, "IllegalArgumentException")
        case errors.Unsupported():
            return 405, 1006, "UnsupportedOperationException"
        case errors.Conflict():
            return 409, 1100 if kind in _OLD_CODES else 1012, "OptimisticLockException"
        case errors.ProviderBusy() | errors.StoreUnavailable():
            return 503, 1007, "ConnectionFailedException"
        case errors.ProviderTimeout():
            return 504, 1007, "ConnectionFailedException"
        case errors.ProviderUnavailable():
            return 502, 1007, "ConnectionFailedException"
        case errors.OutcomeUnknown():
            return 504, 1002, "InternalError"
    return 500, 1002, "InternalError"


def message_of(error: MetalakeError) -> str:
    """The error's message; a 403 that a grant may mend has the page to ask for it, if METALAKE_PUBLIC_URL is set."""
    if not (isinstance(error, errors.Forbidden) and error.object_id and settings.METALAKE_PUBLIC_URL):
        return error.message
    path = reverse("frontend:request", args=[error.object_id])
    return f"{error.message} To ask for it: {settings.METALAKE_PUBLIC_URL}{path}?for={error.operation}"


def error_body(error: MetalakeError) -> dict[str, Any]:
    """The native API's error body."""
    _, code, type_ = shape_of(error)
    # The Python client formats messages with the % operator, so they must not contain a percent sign.
    return {"code": code, "type": type_, "message": message_of(error).replace("%", " percent ")}


def error_response(error: MetalakeError) -> HttpResponse:
    """The error as a response, with WWW-Authenticate or Retry-After (seconds) where it applies."""
    status, _, _ = shape_of(error)
    response = HttpResponse(orjson.dumps(error_body(error)), status=status, content_type=JSON)
    if status == 401:
        response["WWW-Authenticate"] = CHALLENGE
    if isinstance(error, errors.ProviderUnavailable | errors.OutcomeUnknown | errors.TooManyRequests):
        response["Retry-After"] = str(error.retry_after)
    return response


def error_response_to_both(error: MetalakeError) -> HttpResponse:
    """The response to a request that may be meant for either API; clients of both read it as an error."""
    status, _, _ = shape_of(error)
    one = error_body(error)
    both = one | {"error": {"message": one["message"], "type": "BadRequestException", "code": status}}
    return HttpResponse(orjson.dumps(both), status=status, content_type=JSON, headers={"Cache-Control": NEVER_STORED})


def render_error(error: Exception, context: Any = None) -> HttpResponse:
    """Any exception as an error response; an unexpected one is logged and reported as an internal error."""
    if isinstance(error, errors.Forbidden) and context and (actor := getattr(context["view"], "actor", None)):
        view, request = context["view"], context["request"]
        refused(actor.name, f"{request.method} {request.path}", error, view.readable_names.get("metalake"))
    known = _known(error)
    if known is None:
        log.error("unexpected exception", exc_info=error)
        return error_response(MetalakeError("The server failed; the request's id is in its log."))
    note_failure(known)
    return error_response(known)


def error_line(error: Exception) -> bytes:
    """An error as the last line of an NDJSON response."""
    return b'{"error":' + render_error(error).content + b"}\n"


def _known(error: Exception) -> MetalakeError | None:
    """The exception as one of our errors; None if it is unexpected."""
    match error:
        case MetalakeError():
            return error
        case ValidationError():
            return Invalid(explain(error))
        case UnreadablePostError():
            return Invalid("The request body did not arrive.")
        case Http404():
            return errors.NotFound("There is nothing at this path.")
        case NotAuthenticated():
            return errors.Unauthenticated()
        case PermissionDenied():
            return errors.Forbidden(f"{error.detail}")
        case MethodNotAllowed():
            return errors.Unsupported(f"{error.detail}")
        case APIException() if error.status_code < 500:
            return Invalid(f"{error.detail}")
    return unavailable(error)  # failures inside a write's transaction were converted there
