"""Registering a catalog and changing one: the form of its provider, its connection tried before anything is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import HttpResponseClientRedirect

from authz import operations
from authz.actor import Actor
from catalogs.services import browsing, catalogs, connections, nesting
from frontend.catalog_forms import PROPERTY, STALE, CatalogForm, choices
from frontend.guarding import is_partial, require, signed_in
from metalake.errors import AlreadyExists, Forbidden, Invalid, MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from providers.registry import PROVIDERS, provider_class

NESTED = "nested-namespaces"
WORKS = "The connection works."
UNNAMED = "untitled"  # a connection may be tried before the catalog has a name


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@signed_in
def register(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """A new catalog: first its provider, then what that declares."""
    found = located(actor, metalake_id, Kind.METALAKE)
    require(request, operations.CREATE_CATALOG, found)
    name = (request.POST or request.GET).get("provider", "")
    if name not in PROVIDERS:
        context = {"found": found, "choices": choices(), "unknown": name}
        return render(request, "frontend/providers.html", context, status=400 if name else 200)
    form = CatalogForm(provider_class(name), request.POST if request.method == "POST" else None)
    context = {"found": found, "form": form, "provider_name": name, "label": form.provider.label}
    if request.method == "GET":
        return render(request, "frontend/catalog_form.html", context)
    metalake, type_ = found.metalake.name, form.provider.catalog_type

    def try_it() -> str:
        chosen = form.cleaned_data.get("name") or UNNAMED
        connections.test_connection(actor, metalake, chosen, type_, name, form.properties())
        return WORKS

    def keep() -> HttpResponse:
        said = form.cleaned_data["comment"] or None
        row = catalogs.create_catalog(actor, metalake, form.cleaned_data["name"], type_, name, said, form.properties())
        return _moved_on(request, row.pk)

    return _answer(request, form, context, try_it, keep)


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@signed_in
def change(request: HttpRequest, actor: Actor, catalog_id: int) -> HttpResponse:
    """The same form with what the catalog has; secrets that are left alone are kept."""
    found = located(actor, catalog_id, Kind.CATALOG)
    require(request, operations.ALTER_CATALOG, found)
    metalake, name = found.metalake.name, found.catalog.name
    row = catalogs.load_catalog(actor, metalake, name)
    form = CatalogForm(provider_class(row.provider), request.POST if request.method == "POST" else None, row)
    if not row.nested and PROPERTY + NESTED in form.fields:
        asked = {
            "hx-get": reverse("frontend:nesting", args=[found.id]),
            "hx-target": "#nesting",
            "hx-trigger": "change",
        }
        form.fields[PROPERTY + NESTED].widget.attrs.update(asked)
    context = {"found": found, "form": form, "row": row, "label": form.provider.label}
    if request.method == "GET":
        return render(request, "frontend/catalog_form.html", context)

    def try_it() -> str:
        connections.test_altered_connection(actor, metalake, name, form.alteration())
        return WORKS

    def keep() -> HttpResponse:
        catalogs.alter_catalog(actor, metalake, name, form.alteration())
        return _moved_on(request, found.id)

    return _answer(request, form, context, try_it, keep)


@require_safe
@signed_in
def check_nesting(request: HttpRequest, actor: Actor, catalog_id: int) -> HttpResponse:
    """What stands in the way of schemas inside schemas, before anything is saved."""
    found = located(actor, catalog_id, Kind.CATALOG)
    is_wanted = request.GET.get(PROPERTY + NESTED, "true") == "true"
    checked = nesting.check(actor, found)
    context = {"found": found, "checked": checked, "is_wanted": is_wanted and not found.nested}
    return render(request, "frontend/nesting.html" if is_partial(request) else "frontend/nesting_page.html", context)


def located(actor: Actor, securable_id: int, kind: Kind) -> Located:
    """The object of this kind. Raises NotFound, the same for a hidden one as for none."""
    found = browsing.locate(actor, securable_id)
    if found.kind != kind:
        raise NotFound("There is no such object.")
    return found


def _answer(
    request: HttpRequest,
    form: CatalogForm,
    context: dict[str, Any],
    try_it: Callable[[], str],
    keep: Callable[[], HttpResponse],
) -> HttpResponse:
    """Try or keep what was typed; what is wrong is said where it is, and no secret comes back."""
    tries = request.POST.get("act") == "test"
    form.full_clean()
    if tries and "name" in form.errors and form.row is None and not form.data.get("name"):
        del form.errors["name"]
    said, works = "", False
    if form.is_stale:
        form.errors.clear()  # they would be about the catalog as it is now
        said = STALE
    elif not form.errors:
        try:
            if not tries:
                return keep()
            said, works = try_it(), True
        except (Forbidden, NotFound):
            raise
        except (Invalid, AlreadyExists) as refusal:
            form.refuse(refusal)
        except MetalakeError as failure:
            said = form.hushed(failure.message)
    if form.errors and not said:
        said = "That is not right yet: see what is said at the fields."
    context |= {"said": said, "works": works}
    status = 200 if works else 422
    if is_partial(request):
        return render(request, "frontend/form_answer.html", context, status=status)
    return render(request, "frontend/catalog_form.html", context | {"form": form.without_secrets()}, status=status)


def _moved_on(request: HttpRequest, securable_id: int) -> HttpResponse:
    path = reverse("frontend:object", args=[securable_id])
    return HttpResponseClientRedirect(path) if is_partial(request) else redirect(path)
