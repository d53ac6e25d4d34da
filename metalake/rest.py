"""The native wire's manners: decoded path segments, checked bodies, the envelope, and every error in one shape.

Source: the native wire reference, section 1.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any
from urllib.parse import unquote, unquote_plus

import orjson
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.urls import URLPattern, re_path
from django.utils import timezone
from pydantic import BaseModel, ValidationError
from rest_framework.exceptions import APIException
from rest_framework.views import APIView

from metalake import errors
from metalake.bodies import before_reading, holds_nul, require_few_values
from metalake.causes import unavailable
from metalake.errors import Forbidden, Invalid, MetalakeError
from metalake.kinds import KINDS, Kind
from metalake.logs import note_failure
from metalake.refusals import refused
from metalake.wire import AnyBody, Reply, explain, quote, read

log = logging.getLogger(__name__)

JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """What an endpoint's method is: its row of the operation table, its body and reply, its name in the description."""

    operation: str
    body: type[BaseModel] | None
    reply: dict[str, Any] | None
    query: tuple[str, ...]
    id: str | None
    body_is_optional: bool


def answers(
    operation: str,
    *,
    body: type[BaseModel] | None = None,
    reply: dict[str, Any] | None = None,
    query: tuple[str, ...] = (),
    id: str | None = None,
    body_is_optional: bool = False,
    reader: Callable[[HttpRequest], Any] | None = None,
    asks: Callable[[Any], None] | None = None,
) -> Callable:
    """Declare an endpoint method: it gets the actor, its decoded path names and its body, and returns the payload.

    `operation` names a row of the operation table, or a family of rows where the request names the object's kind, or
    is "anyone" or "caller" where no object is asked about.
    `reply` maps each payload key to its type, one that may be None to a key that may be left out; None is a reply
    without the envelope. `query` names the parameters it reads, `id` the operation in the API's description. An
    optional body that is not sent is None. `reader` reads a body that may be more than JSON; its model describes it.
    Before a body is read, whom the operation on the path's object is not for is refused, and whom `asks` refuses.
    """

    def declare(method: Callable) -> Callable:
        @wraps(method)
        def endpoint(self: Endpoint, request: Any, **raw: str) -> HttpResponseBase:
            given: dict[str, Any] = {name: decode(value) for name, value in raw.items()}
            if body is not None:
                sent = request._request
                with before_reading(sent):
                    _admission[0](self.actor, operation, given)
                    if asks is not None:
                        asks(self.actor)
                left_out = body_is_optional and not sent.body
                if left_out:
                    require_own_page(sent)
                given["body"] = None if left_out else reader(sent) if reader else parse(sent, body)
            response = taken(envelope(method(self, self.actor, **given)), self.taken_at)
            if self.files_kept:
                response["X-Metalake-Files-Kept"] = self.files_kept
            return response

        endpoint.answer = Answer(operation, body, reply, query, id, body_is_optional)  # type: ignore[attr-defined]
        return endpoint

    return declare


Authenticate = Callable[[str | None, str | None, str | None], Any]
_authenticators: list[Authenticate] = []


def authenticate_with(authenticate: Authenticate) -> None:
    """Set what makes an actor of two headers and the metalake of the path; authz does at start."""
    _authenticators[:] = [authenticate]


Admit = Callable[[Any, str, dict[str, str]], None]
_admission: list[Admit] = []


def admit_with(admit: Admit) -> None:
    """Set what refuses an actor an operation by the names in the path, before a body is read; catalogs does so."""
    _admission[:] = [admit]


_VERSIONED = re.compile(r"application/vnd\.gravitino\.v(\d+)\+json")


class Endpoint(APIView):
    """Base of the native wire's endpoints."""

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    anonymous = False
    actor: Any = None
    taken_at: datetime | None = None  # when an outside system was asked for what is answered
    files_kept: str | None = None  # why an outside system was not told to delete files with what was dropped

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        self.request = request
        self.format_kwarg = None
        accepted = request.META.get("HTTP_ACCEPT", "")
        if (version := _VERSIONED.search(accepted)) and version[1] != "1":
            raise Invalid(f"Version {version[1]} of the wire is not supported; 1 is.")
        if not self.anonymous:
            metalake = kwargs.get("metalake")
            self.actor = _authenticators[0](
                request.META.get("HTTP_AUTHORIZATION"),
                request.META.get("HTTP_X_GRAVITINO_ACTIVE_ROLES"),
                decode(metalake) if metalake else None,
            )

    def flag(self, name: str) -> bool:
        """A query parameter read as a boolean, in any case; absent is false."""
        value = (self.text(name) or "false").lower()
        if value not in ("true", "false"):
            raise Invalid(f"Query parameter {name} is true or false, not {quote(value)}.")
        return value == "true"

    def text(self, name: str) -> str | None:
        """A query parameter, None where it is absent."""
        value = self.request.GET.get(name)
        if value is not None and "\0" in value:
            raise Invalid(f"Query parameter {name} holds a NUL character.")
        return value

    def place(self) -> tuple[Kind, str] | None:
        """The object that the query names by type and fullName; None where it names none."""
        type_, full_name = self.text("type"), self.text("fullName")
        if type_ is None and full_name is None:
            return None
        if type_ is None or full_name is None:
            raise Invalid("Name an object by type and fullName, or leave out both for all.", kind="object")
        return kind_of(type_), full_name


def route(path: str, door: type[Endpoint]) -> URLPattern:
    """A path of the wire: each <name> is one segment as it was sent, and a trailing slash makes no difference."""
    pattern = re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", path)
    return re_path(rf"^{pattern}/?$", door.as_view())


def decode(raw: str, *, form: bool = False) -> str:
    """One path segment, decoded once. `form` reads + as a space, as the Iceberg clients write it."""
    if raw.isascii() and raw.isalnum():
        return raw
    try:
        name = (unquote_plus if form else unquote)(raw, errors="strict")
    except UnicodeDecodeError:
        raise Invalid(f"Path segment {quote(raw)} is not UTF-8.") from None
    if "\0" in name:
        raise Invalid(f"Path segment {quote(raw)} holds a NUL character.")
    return name


def read_json(request: HttpRequest) -> Any:
    """The body as data. Raises TooLarge for too many values, Invalid for no JSON and NUL, which no database keeps."""
    require_few_values(request.body, settings.METALAKE_MAX_BODY_VALUES)
    try:
        data = orjson.loads(request.body)
    except orjson.JSONDecodeError as wrong:
        raise Invalid(f"The request body is not JSON: {wrong}.") from None
    if holds_nul(request.body):
        raise Invalid("The request body holds a NUL character.")
    return data


def require_own_page(request: HttpRequest) -> None:
    """Raise Forbidden where a page of another site sends what has no body: browsers add the credentials they know, and
    say of every POST whose page it comes from (Fetch, "Origin header").
    """
    origin = request.META.get("HTTP_ORIGIN")
    if origin is not None and origin.partition("://")[2] != request.META.get("HTTP_HOST"):
        raise Forbidden("This request comes from a page of another site; send {} as its body, as JSON.")


def parse(request: HttpRequest, body: type[AnyBody]) -> AnyBody:
    """The body as its model. Raises Invalid naming the field."""
    # A page of another site can send a form with the browser's credentials, but not this type.
    if not (request.content_type or "").endswith(("/json", "+json")):
        raise Invalid(f"Send the body with Content-Type: {JSON}.")
    return read(body, read_json(request))


def envelope(payload: dict[str, Any] | HttpResponseBase) -> HttpResponseBase:
    if isinstance(payload, HttpResponseBase):
        return payload
    return HttpResponse(orjson.dumps({"code": 0, **payload}), content_type=JSON)


def taken(response: HttpResponseBase, moment: datetime | None) -> HttpResponseBase:
    """Say how old an answer is that an outside system gave (RFC 9111, Age)."""
    if moment is not None:
        response["Age"] = str(max(0, round((timezone.now() - moment).total_seconds())))
        response["X-Metalake-Taken-At"] = moment_text(moment)
    return response


class AuditReply(Reply):
    """Who made it and who changed it last, in UTC; what is unset is left out."""

    creator: str
    create_time: str
    last_modifier: str | None = None
    last_modified_time: str | None = None


def audit_of(row: Any) -> dict[str, Any]:
    """AuditInfo as the wire has it; what is unset is left out."""
    audit = {"creator": row.creator, "createTime": moment_text(row.create_time)}
    if row.last_modifier:
        audit |= {"lastModifier": row.last_modifier, "lastModifiedTime": moment_text(row.last_modified_time)}
    return audit


def moment_text(moment: Any) -> str:
    """As the wire writes a time: UTC, microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


# Errors: our vocabulary in the wire's shape.

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
# Their handlers in the Python client know no code above 1010 but 1100 (reference 1.2, decision 21).
_OLD_CODES = {"partition", "statistic", *(kind for kind, declared in KINDS.items() if declared.old_codes)}


def shape_of(error: MetalakeError) -> tuple[int, int, str]:
    """HTTP status, wire code and exception type."""
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


def told(error: MetalakeError) -> dict[str, Any]:
    """The wire's body of a failure."""
    _, code, type_ = shape_of(error)
    # The Python client formats messages with the % operator, so none may hold a percent sign.
    return {"code": code, "type": type_, "message": error.message.replace("%", " percent ")}


def error_response(error: MetalakeError) -> HttpResponse:
    status, _, _ = shape_of(error)
    response = HttpResponse(orjson.dumps(told(error)), status=status, content_type=JSON)
    if status == 401:
        response["WWW-Authenticate"] = 'Basic realm="Metalake"'
    if isinstance(error, errors.ProviderUnavailable | errors.OutcomeUnknown | errors.TooManyRequests):
        response["Retry-After"] = str(error.retry_after)
    return response


def told_to_both(error: MetalakeError) -> HttpResponse:
    """A refusal of what may have been meant for either wire: the clients of both take it for an error."""
    status, _, _ = shape_of(error)
    one = told(error)
    both = one | {"error": {"message": one["message"], "type": "BadRequestException", "code": status}}
    return HttpResponse(orjson.dumps(both), status=status, content_type=JSON)


def render_error(error: Exception, context: Any = None) -> HttpResponse:
    """Any failure in the wire's shape; what we did not foresee is logged and told as such."""
    if isinstance(error, errors.Forbidden) and context and (actor := context["view"].actor):
        refused(actor.name, f"{context['request'].method} {context['request'].path}", error)
    if isinstance(error, MetalakeError):
        note_failure(error)
        return error_response(error)
    if isinstance(error, ValidationError):
        return error_response(Invalid(explain(error)))
    if isinstance(error, UnreadablePostError):
        return error_response(Invalid("The request body did not arrive."))
    if failed := unavailable(error):  # the one transaction of a write answers for itself; this failed before it
        note_failure(failed)
        return error_response(failed)
    if isinstance(error, Http404):
        return error_response(errors.NotFound("There is nothing at this path."))
    if isinstance(error, APIException) and error.status_code == 405:
        return error_response(errors.Unsupported(f"{error.detail}"))
    if isinstance(error, APIException) and error.status_code < 500:
        return error_response(Invalid(f"{error.detail}"))
    log.error("unforeseen failure", exc_info=error)
    return error_response(MetalakeError("The server failed; the request's id is in its log."))


def kind_of(word: str) -> Kind:
    """The kind that a path or body names, in any case."""
    try:
        return Kind(word.lower())
    except ValueError:
        raise Invalid(f"{word!r} is no object type; known are {', '.join(Kind)}.", kind="object") from None
