"""Decorators of every page: authentication, htmx parts, and errors rendered as a page or a part."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.cache import add_never_cache_headers, patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django_htmx.http import HttpResponseClientRedirect

from authz import operations, policy
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.objects import by_ids
from authz.operations import Operation
from authz.sessions import note_seen
from catalogs.secrets import is_secret
from catalogs.stores import leaf_kinds
from frontend.error_pages import is_partial, refuse, signed_out, stays_open
from frontend.forms.catalogs import PROPERTY
from frontend.forms.jobs import VALUE
from metalake.errors import Forbidden, MetalakeError, NotFound, StoreUnavailable
from metalake.kinds import Kind
from metalake.lineage import Lineage, Located
from metalake.logs import note_failure
from metalake.refusal_audit import refused
from metalake.rest.exceptions import shape_of

LONGEST = 2000  # characters of a URL: Django redirects to at most 2,048
UNTYPED = ("csrfmiddlewaretoken", "token", "plan", "act", "shown")
__all__ = [
    "home", "is_partial", "keeps_form", "local_path", "may_make_schema", "may_make_table", "may_make_view", "permits",
    "require", "signed_in", "takes_schemas", "takes_views",
]  # fmt: skip
Page = Callable[..., HttpResponse]


def home() -> str:
    """The path of the first page."""
    return reverse("frontend:home")


def local_path(path: str | None) -> str:
    """The path if it is a page of this server, else the home page."""
    if not path or not path.startswith("/") or path.startswith("//") or not path.isprintable():
        return home()
    return path if url_has_allowed_host_and_scheme(path, allowed_hosts=None) else home()


def signed_in(page: Page) -> Page:
    """Pass the page its actor, redirect anonymous users to sign in, and render our errors. Nothing is cached."""

    @wraps(page)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            response = _to_login(request)
        else:
            note_seen(request)
            actor = request.__dict__["caller"] = actor_of(request.user)  # for the top bar
            try:
                response = page(request, actor, *args, **kwargs)
            except MetalakeError as failure:
                response = _failure(request, failure)
        add_never_cache_headers(response)
        patch_vary_headers(response, ["HX-Request"])
        return response

    return guarded


def keeps_form(page: Page) -> Page:
    """After the session expired, lead the user back to the filled form: the page also takes its form as a query."""

    @wraps(page)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated or request.method != "POST" or is_partial(request):
            return page(request, *args, **kwargs)
        response = redirect(_login_url(*_filled(request, request.get_full_path())))
        add_never_cache_headers(response)
        return response

    return guarded


def permits(request: HttpRequest, operation: Operation, target: Lineage) -> bool:
    """Whether the user may do this, by Django's has_perm; authz.backends calls the evaluator."""
    user: Any = request.user
    return user.has_perm(f"authz.{operation.name}", target)


def require(request: HttpRequest, operation: Operation, target: Lineage) -> None:
    """Raise Forbidden unless the user may do this on an object that they see."""
    if not permits(request, operation, target):
        raise policy.refusal(request.user.get_username(), operation, target)


def may_make_schema(actor: Actor, target: Located) -> bool:
    """Whether the actor may create a schema in this object, including missing parents."""
    creations = operations.CREATE_SCHEMA, operations.BOOTSTRAP_SCHEMA
    return takes_schemas(target) and any(policy.permits(actor, each, target) for each in creations)


def takes_schemas(target: Located) -> bool:
    """Whether schemas may lie directly in this object."""
    return target.kind == Kind.CATALOG or (target.kind == Kind.SCHEMA and target.nested)


def may_make_view(actor: Actor, target: Located) -> bool:
    """Whether the actor may create a view directly in this object."""
    return takes_views(target) and policy.permits(actor, operations.CREATE_VIEW, target)


def takes_views(target: Located) -> bool:
    """Whether views may lie directly in this object."""
    return target.kind == Kind.SCHEMA and Kind.VIEW in leaf_kinds(target)


def may_make_table(actor: Actor, target: Located) -> bool:
    """Whether the actor may create a table directly in this object."""
    takes_tables = target.kind == Kind.SCHEMA and Kind.TABLE in leaf_kinds(target)
    return takes_tables and policy.permits(actor, operations.CREATE_TABLE, target)


def _to_login(request: HttpRequest) -> HttpResponse:
    """Redirect to the sign-in, which leads back to the open page; a form that was filled stays on it."""
    if is_partial(request):
        if stays_open(request):
            return signed_out(request)
        return HttpResponseClientRedirect(_login_url(_page_of(request, "HX-Current-URL")))
    pages = [request.get_full_path()] if request.method == "GET" else _filled(request, _page_of(request, "Referer"))
    return redirect(_login_url(*pages))


def _page_of(request: HttpRequest, header: str) -> str:
    """The page that a request was sent from, or home where that is not known or not ours."""
    try:
        page = urlsplit(request.headers.get(header, ""))
    except ValueError:
        return home()
    return page._replace(scheme="", netloc="").geturl() if page.netloc == request.get_host() else home()


def _filled(request: HttpRequest, path: str) -> list[str]:
    """The page with the form input as its query, without secrets, and the page as it was."""
    if path == home() or hasattr(request, "sensitive_post_parameters"):
        return [path]
    page, _, before = path.partition("?")
    query = QueryDict(before, mutable=True)
    for name, values in request.POST.lists():
        plain = name.removeprefix(VALUE).removeprefix(PROPERTY)
        if name not in UNTYPED and not any(is_secret(plain, value) for value in values):
            query.setlist(name, values)
    return [f"{page}?{query.urlencode()}" if query else page, path]


def _login_url(*pages: str) -> str:
    """The sign-in that leads to the first of the pages whose address is short enough; `cut` if that is another one."""
    login = reverse("frontend:login")
    for page in (*pages, pages[-1].partition("?")[0]):
        query = {"next": page} if page == pages[0] else {"next": page, "cut": "1"}
        url = f"{login}?{urlencode(query)}"
        if page != home() and len(url) <= LONGEST:
            return url
    return login


def _failure(request: HttpRequest, failure: MetalakeError) -> HttpResponse:
    """Render a failure; a full page for 404 or 403 gives no further details."""
    note_failure(failure)
    if isinstance(failure, StoreUnavailable):
        request.__dict__.pop("caller", None)  # the top bar would ask the store
    status, _, _ = shape_of(failure)
    says_no_more = isinstance(failure, NotFound | Forbidden) and not is_partial(request)
    title = "" if says_no_more else "That did not work"
    more = {}
    if isinstance(failure, Forbidden):
        _note_refusal(request, failure)
    if isinstance(failure, Forbidden) and failure.object_id:
        path = reverse("frontend:request", args=[failure.object_id])
        more = {"link": f"{path}?{urlencode({'for': failure.operation})}", "link_text": "Ask for access"}
    return refuse(request, status, "" if says_no_more else failure.message, title=title, **more)


def _note_refusal(request: HttpRequest, failure: Forbidden) -> None:
    """Audit what was refused, as the APIs do: in the metalake of the object."""
    known = by_ids([failure.object_id]) if failure.object_id else {}
    metalakes = [one.nodes[0].name for one in known.values()]
    refused(request.user.get_username(), f"{request.method} {request.path}", failure, *metalakes)
