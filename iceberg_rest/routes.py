"""The Iceberg REST route table, from which URLs, the `endpoints` of /v1/config and authorization are derived."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from django.http import HttpRequest, HttpResponse, QueryDict
from pydantic import BaseModel

from authz import operations
from authz.actor import Actor
from authz.callers.identity import authenticate
from authz.operations import Operation
from catalogs.caller_lookup import caller_at
from catalogs.services.admission import admit_to
from iceberg_rest import names
from iceberg_rest.errors import Subject, error_reply, render_error
from iceberg_rest.names import Levels, dotted
from iceberg_rest.replies import Reply
from metalake import listeners
from metalake.bodies import before_reading, parse
from metalake.errors import Forbidden, Invalid, MetalakeError, Unsupported
from metalake.kinds import LEAVES, Kind
from metalake.lineage import Address, logical
from metalake.refusal_audit import refused
from metalake.rest.declarations import Declaration
from metalake.rest.replies import age_of


class Sent(Protocol):
    """A request as endpoints use it: Django's, or the fast path's, which has only the headers that reads use."""

    META: Any
    method: str | None
    path: str

    @property
    def GET(self) -> QueryDict: ...
    @property
    def body(self) -> bytes: ...


@dataclass
class Call:
    """One request with its decoded path and its caller.

    Endpoints may change `subject`, the object named in a 404, and set `taken_at`, when a remote system responded.
    """

    request: Sent
    metalake: str
    catalog: str = ""
    levels: Levels = ()
    leaf: str = ""  # the table or view of the path
    leaf_kind: Kind = Kind.TABLE
    actor: Actor = field(init=False)
    taken_at: datetime | None = field(default=None, init=False)
    _subject: Subject | None = field(default=None, init=False)
    _others: list[Levels] = field(default_factory=list, init=False)  # namespaces of the body

    @property
    def subject(self) -> Subject:
        if self._subject is None:
            self._subject = self._subject_of_path()
        return self._subject

    @subject.setter
    def subject(self, subject: Subject) -> None:
        self._subject = subject

    def _subject_of_path(self) -> Subject:
        if self.leaf:
            return self.about_leaf(self.levels, self.leaf)
        return self.about_namespace(self.levels) if self.levels else self.about_warehouse(self.catalog)

    @property
    def query(self) -> QueryDict:
        return self.request.GET

    @property
    def names(self) -> dict[str, str]:
        """The names in the path by kind, as in the native API."""
        names = {Kind.METALAKE: self.metalake, Kind.CATALOG: self.catalog, Kind.SCHEMA: logical(self.levels)}
        return {kind.value: name for kind, name in (names | {self.leaf_kind: self.leaf}).items() if name}

    def ident(self, levels: Levels | None = None, leaf: str | None = None) -> Address:
        """The address of the path's own object, or of another in the same catalog."""
        schema = (self.levels or None) if levels is None else levels
        name = (self.leaf or None) if levels is None else leaf
        if levels is not None:
            self._others.append(levels)
        return Address(metalake=self.metalake, catalog=self.catalog, schema=schema, leaf=name, leaf_kind=self.leaf_kind)

    def choice(self, parameter: str, *choices: str) -> str:
        """A query parameter with one of these values, case-insensitive; the first one if absent. Raises Invalid."""
        if not self.request.META.get("QUERY_STRING"):
            return choices[0]
        given = self.query.get(parameter) or choices[0]
        if given.lower() not in choices:
            raise Invalid(f"Query parameter {parameter} is {' or '.join(choices)}, not {given!r:.40}.")
        return given.lower()

    @property
    def refresh(self) -> bool:
        """Whether to call a remote system even if its cached response is fresh."""
        return self.choice("refresh", "false", "true") == "true"

    def about_warehouse(self, catalog: str) -> Subject:
        return Subject(Kind.CATALOG, f"{catalog} in metalake {self.metalake}")

    def about_namespace(self, levels: Levels) -> Subject:
        return Subject(Kind.SCHEMA, dotted(levels))

    def about_leaf(self, levels: Levels, name: str) -> Subject:
        return Subject(self.leaf_kind, dotted((*levels, name)))

    def in_dots(self, error: Exception) -> Exception:
        """The error with the request's namespaces dotted in its message: engines do not know the native separator."""
        if isinstance(error, MetalakeError):
            for levels in sorted({self.levels, *self._others}, key=len, reverse=True):
                for depth in range(len(levels), 1, -1):
                    native, dots = re.escape(logical(levels[:depth])), dotted(levels[:depth])
                    error.message = re.sub(rf"(?<!\w){native}(?!\w)", dots.replace("\\", r"\\"), error.message)
        return error

    def require_own(self, levels: Iterable[str], name: str) -> None:
        """Raise Invalid unless the body names the table or view of the path."""
        if (tuple(levels), name) != (self.levels, self.leaf):
            other = dotted((*levels, name))
            raise Invalid(
                f"identifier: {other} is not the {self.leaf_kind} of the path, {self.subject.name}.",
                kind=self.leaf_kind,
            )


Endpoint = Callable[..., Reply]
"""A function of a call, and of its body if one is declared."""


@dataclass(frozen=True, kw_only=True)
class Route(Declaration):
    """An endpoint with its declaration."""

    endpoint: Endpoint
    of_several: bool = False  # commits to several tables at once

    def error(self, error: Exception) -> Reply:
        """The reply to an error of this route."""
        of_view = self.needs is Kind.VIEW and self.operation != operations.REGISTER_VIEW.name
        return render_error(error, commits=self.commits, of_view=of_view)

    def __str__(self) -> str:
        """The route in the format of `endpoints` of /v1/config."""
        return f"{self.method} {self.path}"


ROUTES: list[Route] = []
"""All routes; endpoint modules register theirs, and `iceberg_rest.urls` imports all of them."""


def route(
    method_and_path: str,
    operation: Operation,
    *,
    body: type[BaseModel] | None = None,
    needs: Kind | None = Kind.SCHEMA,
    commits: bool = False,
    of_several: bool = False,
    looks_up: Callable[[Call], Address] | None = None,
) -> Callable[[Endpoint], Endpoint]:
    """Register an endpoint for a method and a path of the specification, such as "GET /v1/config"."""
    method, path = method_and_path.split(" ")

    def add(endpoint: Endpoint) -> Endpoint:
        declared = Route(
            method=method,
            path=path,
            operation=operation.name,
            endpoint=endpoint,
            body=body,
            needs=needs,
            commits=commits,
            of_several=of_several,
            looks_up=looks_up,
        )
        ROUTES.append(declared)
        return endpoint

    return add


def view_of(routes: Mapping[str, Route]) -> Callable[..., HttpResponse]:
    """The Django view of one path, from its routes by method."""

    def view(request: HttpRequest, **raw: str) -> HttpResponse:
        matched = routes.get(request.method or "")
        if matched is None:
            return _not_allowed(request, sorted(routes)).as_response()
        answer = _announced if listeners.listeners else _answer
        return answer(matched, request, raw).as_response()

    return view


def _announced(matched: Route, request: HttpRequest, raw: dict[str, str]) -> Reply:
    with listeners.announcing("iceberg", matched.operation) as announcer:
        reply = _answer(matched, request, raw, announcer)
        announcer.answers(reply.status)
        return reply


def _answer(
    matched: Route, request: HttpRequest, raw: dict[str, str], announcer: listeners.Announcer | None = None
) -> Reply:
    call: Call | None = None
    try:
        call, ahead = _read(matched, request, **raw)
        if announcer:
            announcer.begins(call.actor.name, call.names)
        with ahead:
            if matched.method == "POST":
                with before_reading(request):
                    admit_to(call.actor, matched.operation, call.ident())
            return perform(matched, call, *(() if matched.body is None else (parse(request, matched.body),)))
    except Exception as error:
        if announcer:
            announcer.error = error
        if call and isinstance(error, Forbidden):
            refused(call.actor.name, f"{request.method} {request.path}", error, call.metalake)
        return matched.error(call.in_dots(call.subject.reported(error)) if call else error)


def perform(matched: Route, call: Call, *body: BaseModel) -> Reply:
    """The endpoint's reply, with Age headers if a remote system responded."""
    reply = matched.endpoint(call, *body)
    if call.taken_at is not None:
        reply.headers |= age_of(call.taken_at)
    return reply


def _read(
    matched: Route, request: HttpRequest, metalake: str, **others: str
) -> tuple[Call, AbstractContextManager[object]]:
    """The call of a request, and a context with its prefetched object (metalake/prefetch.py)."""
    metalake = names.name_in(metalake, Kind.METALAKE)
    sent = request.META
    try:
        call = call_of(request, matched.needs, metalake, **others)
        address = matched.looks_up(call) if matched.looks_up else call.ident()
    except MetalakeError:  # reported to authenticated callers only
        authenticate(sent.get("HTTP_AUTHORIZATION"), sent.get("HTTP_X_GRAVITINO_ACTIVE_ROLES"), metalake)
        raise
    if arrived := caller_at(sent, address, again=matched.method == "POST"):
        call.actor, ahead = arrived
        return call, ahead
    call.actor = authenticate(sent.get("HTTP_AUTHORIZATION"), sent.get("HTTP_X_GRAVITINO_ACTIVE_ROLES"), metalake)
    return call, nullcontext()


def call_of(
    request: Sent, needs: Kind | None, metalake: str, prefix: str = "", namespace: str = "", **leaf: str
) -> Call:
    """The call of a request, without its actor; `leaf` has the name of the table or view in the path.

    Raises Invalid for invalid names, Unsupported for the parameter `cascade`.
    """
    if request.META.get("QUERY_STRING") and any(parameter.lower() == "cascade" for parameter in request.GET):
        raise Unsupported("Cascade is not supported: drop what the namespace holds first.", kind=Kind.SCHEMA)
    kind = needs if needs in LEAVES else Kind.TABLE
    return Call(
        request,
        metalake,
        names.catalog_in(prefix) if prefix else "",
        names.levels_in(namespace) if namespace else (),
        names.name_in(leaf[kind], kind) if leaf else "",
        kind,
    )


def _not_allowed(request: HttpRequest, methods: list[str]) -> Reply:
    message = f"{request.method} is not supported here; {', '.join(methods)} is."
    reply = error_reply(405, "UnsupportedOperationException", message)
    reply.headers["Allow"] = ", ".join(methods)
    return reply
