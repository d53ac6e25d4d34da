"""The sheet of all components, in every state."""

from __future__ import annotations

from datetime import UTC, datetime

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from authz.actor import Actor
from frontend.forms.point_in_time import MomentField
from frontend.page_decorators import signed_in
from frontend.svg import Stop

PATH = [
    Stop("person", "rita", "ok"),
    Stop("group", "analysts", "ok"),
    Stop("role", "travel_readers", "ok"),
    Stop("allow select_table on schema", "travel", "ok"),
    Stop("schema", "nyc", "ok"),
    Stop("table", "flights", "ok"),
]
BROKEN = [
    Stop("person", "rita", "ok"),
    Stop("role", "travel_readers", "ok"),
    Stop("allow select_table on schema", "travel", "ok"),
    Stop("no use_schema on", "travel", "missing"),
    Stop("table", "flights", "bad"),
]
NAMES = [
    "analyst",
    "an\u0430lyst",
    "analyst\u200b",
    "analyst ",
    "tsylana\u202e",
    "\u0441\u043e\u0440\u0435",
    "\u30c7\u30fc\u30bf",
]


class MomentForm(forms.Form):
    ends = MomentField(label="Until")


SCHEMES = ("system", "light", "dark")


@require_safe
@signed_in
def components(request: HttpRequest, actor: Actor) -> HttpResponse:
    scheme = request.GET.get("scheme", "")
    context = {
        "schemes": SCHEMES,
        "scheme": scheme if scheme in SCHEMES else SCHEMES[0],
        "path": PATH,
        "broken": BROKEN,
        "names": NAMES,
        "moment_form": MomentForm(),
        "at": datetime(2026, 3, 29, 12, 30, tzinfo=UTC),
    }
    return render(request, "frontend/components.html", context)
