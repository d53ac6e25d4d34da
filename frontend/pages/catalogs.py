"""The pages that register and change a catalog: its provider's form, with a test of the connection before saving."""

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
from frontend import toasts
from frontend.confusables import spelled
from frontend.forms.catalogs import PROPERTY, STALE, CatalogForm, choices
from frontend.page_decorators import is_partial, require, signed_in
from metalake.errors import AlreadyExists, Forbidden, Invalid, MetalakeError, NotFound, ProviderUnavailable
from metalake.kinds import Kind
from metalake.lineage import Located
from providers.registry import PROVIDERS, provider_class
from providers.settings import NESTED

WORKS = "The connection works."
ANYWAY = "anyway"  # registers without trying the connection, after it was tried in vain
UNNAMED = "untitled"  # for testing a connection before the catalog has a name


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@signed_in
def register(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The page of a new catalog: first a choice of providers, then the form that the provider declares."""
    target = located(actor, metalake_id, Kind.METALAKE)
    require(request, operations.CREATE_CATALOG, target)
    name = (request.POST or request.GET).get("provider", "")
    if name not in PROVIDERS:
        context = {"target": target, "choices": choices(), "unknown": name}
        return render(request, "frontend/providers.html", context, status=400 if name else 200)
    form = CatalogForm(provider_class(name), request.POST if request.method == "POST" else None)
    context = {"target": target, "form": form, "provider_name": name, "label": form.provider.label}
    if request.method == "GET":
        return render(request, "frontend/catalog_form.html", context)
    metalake, type_ = target.metalake.name, form.provider.catalog_type

    def try_it() -> str:
        chosen = form.cleaned_data.get("name") or UNNAMED
        connections.test_connection(actor, metalake, chosen, type_, name, form.properties())
        return WORKS

    def keep() -> HttpResponse:
        comment = form.cleaned_data["comment"] or None
        outcome = "" if request.POST.get("act") == ANYWAY else f" {try_it()}"
        row = catalogs.create_catalog(
            actor, metalake, form.cleaned_data["name"], type_, name, comment, form.properties()
        )
        toasts.add(request, f"Catalog {spelled(row.name)} is registered.{outcome}")
        return _moved_on(request, row.pk)

    return _answer(request, form, context, try_it, keep)


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@signed_in
def change(request: HttpRequest, actor: Actor, catalog_id: int) -> HttpResponse:
    """The page that changes a catalog: the same form with its values; secrets left empty stay as they are."""
    target = located(actor, catalog_id, Kind.CATALOG)
    require(request, operations.ALTER_CATALOG, target)
    metalake, name = target.metalake.name, target.catalog.name
    row = catalogs.load_catalog(actor, metalake, name)
    form = CatalogForm(provider_class(row.provider), request.POST if request.method == "POST" else None, row)
    if not row.nested and PROPERTY + NESTED in form.fields:
        asked = {
            "hx-get": reverse("frontend:nesting", args=[target.id]),
            "hx-target": "#nesting",
            "hx-trigger": "change",
        }
        form.fields[PROPERTY + NESTED].widget.attrs.update(asked)
    context = {"target": target, "form": form, "row": row, "label": form.provider.label, "nests": PROPERTY + NESTED}
    if request.method == "GET":
        return render(request, "frontend/catalog_form.html", context)

    def try_it() -> str:
        connections.test_altered_connection(actor, metalake, name, form.alteration())
        return WORKS

    def keep() -> HttpResponse:
        catalogs.alter_catalog(actor, metalake, name, form.alteration())
        return _moved_on(request, target.id)

    return _answer(request, form, context, try_it, keep)


@require_safe
@signed_in
def check_nesting(request: HttpRequest, actor: Actor, catalog_id: int) -> HttpResponse:
    """Shows what prevents a catalog from nesting schemas, before anything is saved."""
    target = located(actor, catalog_id, Kind.CATALOG)
    is_wanted = request.GET.get(PROPERTY + NESTED, "true") == "true"
    checked = nesting.check(actor, target)
    context = {"target": target, "checked": checked, "is_wanted": is_wanted and not target.nested}
    return render(request, "frontend/nesting.html" if is_partial(request) else "frontend/nesting_page.html", context)


def located(actor: Actor, securable_id: int, kind: Kind) -> Located:
    """The object of this kind. Raises NotFound, the same for a hidden object as for a missing one."""
    target = browsing.locate(actor, securable_id)
    if target.kind != kind:
        raise NotFound("There is no such object.")
    return target


def _answer(
    request: HttpRequest,
    form: CatalogForm,
    context: dict[str, Any],
    try_it: Callable[[], str],
    keep: Callable[[], HttpResponse],
) -> HttpResponse:
    """Test or save what was typed; errors are shown at their fields, and no secret is sent back."""
    tries = request.POST.get("act") == "test"
    form.full_clean()
    if tries and "name" in form.errors and form.row is None and not form.data.get("name"):
        del form.errors["name"]
    message, works = "", False
    if form.is_stale:
        form.errors.clear()  # they compare with the current catalog, not with the one the form shows
        message = STALE
    elif not form.errors:
        try:
            if not tries:
                return keep()
            message, works = try_it(), True
        except (Forbidden, NotFound):
            raise
        except (Invalid, AlreadyExists) as refusal:
            form.refuse(refusal)
        except MetalakeError as failure:
            message = form.hushed(failure.message)
            context["may_insist"] = form.row is None and isinstance(failure, ProviderUnavailable)
    if form.errors and not message:
        message = "That is not right yet: see what is said at the fields."
    context |= {"message": message, "works": works}
    status = 200 if works else 422
    if is_partial(request):
        return render(request, "frontend/form_answer.html", context, status=status)
    return render(request, "frontend/catalog_form.html", context | {"form": form.without_secrets()}, status=status)


def _moved_on(request: HttpRequest, securable_id: int) -> HttpResponse:
    path = reverse("frontend:object", args=[securable_id])
    return HttpResponseClientRedirect(path) if is_partial(request) else redirect(path)
