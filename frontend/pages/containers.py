"""The pages that create a metalake, and a schema with its missing parents."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from authz import operations, policy
from authz.actor import Actor
from catalogs.services import browsing, metalakes, schemas
from frontend import toasts
from frontend.forms.containers import MetalakeForm, SchemaForm
from frontend.page_decorators import may_make_schema, signed_in, takes_schemas
from metalake.errors import Forbidden, MetalakeError, NotFound
from metalake.hierarchy import configured_separator
from metalake.lineage import Address, Located


@require_http_methods(["GET", "POST"])
@signed_in
def make_metalake(request: HttpRequest, actor: Actor) -> HttpResponse:
    """A new metalake, for service administrators, who own it."""
    metalakes.require_maker(actor)
    form = MetalakeForm(request.POST if request.method == "POST" else None, initial=request.GET.dict())
    if form.is_valid():
        try:
            given = form.cleaned_data
            row = metalakes.create_metalake(actor, given["name"], given["comment"] or None, {})
        except MetalakeError as refusal:
            form.add_error("name", refusal.message)
        else:
            toasts.add(request, f"Metalake {row.name} is made. Register a catalog in it, and add its people.")
            return redirect("frontend:object", row.pk)
    return render(request, "frontend/metalake_form.html", {"form": form}, status=422 if form.errors else 200)


@require_http_methods(["GET", "POST"])
@signed_in
def make_schema(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    """A new schema in a catalog or schema; missing parents are shown before anything is made (`act=make`)."""
    target = browsing.locate(actor, object_id)
    if not takes_schemas(target):
        raise NotFound("Schemas are made in catalogs, and in schemas of catalogs that nest them.")
    if not may_make_schema(actor, target):
        raise policy.refusal(actor.name, operations.CREATE_SCHEMA, target)
    form = SchemaForm(
        request.POST if request.method == "POST" else None, configured_separator() if target.nested else None
    )
    form.initial = request.GET.dict()  # the input from before signing in again
    context: dict[str, Any] = {"target": target, "form": form}
    if form.is_valid():
        address = _address(target, form.cleaned_data["name"])
        try:
            new = schemas.to_be_made(actor, address)
            if len(new) == 1 or request.POST.get("act") == "make":
                row = schemas.create_schema(actor, address, form.cleaned_data["comment"] or None, {}).row
                toasts.add(request, f"Schema {new[-1].logical()} is made.")
                return redirect("frontend:object", row.pk)
            context["new"] = new
        except Forbidden:
            raise
        except MetalakeError as refusal:
            form.add_error("name", refusal.message)
    return render(request, "frontend/schema_form.html", context, status=422 if form.errors else 200)


def _address(target: Located, name: str) -> Address:
    above = target.path.segments
    logical = configured_separator().join((target.path.logical(), name)) if above else name
    return Address(metalake=target.metalake.name, catalog=target.catalog.name, schema=logical)
