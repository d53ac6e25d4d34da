"""The sections of the top bar. Each is a page of one metalake: that of the shown object, else one to choose."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from authz.actor import Actor
from catalogs.services import browsing
from frontend.page_decorators import home, signed_in
from metalake.errors import NotFound


@dataclass(frozen=True)
class Section:
    """A page of a metalake by its route, with the routes of all pages that are part of it."""

    label: str
    route: str
    pages: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.label.lower()

    def url(self, metalake_id: int | None) -> str:
        if metalake_id is None:
            return reverse("frontend:choose", args=[self.name])
        return reverse(f"frontend:{self.route}", args=[metalake_id])


@dataclass(frozen=True)
class Link:
    """A section as the top bar shows it; `is_open` if the page is part of it."""

    label: str
    url: str
    is_open: bool


PEOPLE = frozenset({"people", "change-people", "add-user", "user", "invite", "add-group", "group", "add-role", "role"})
JOBS = frozenset({"jobs", "findings", "start-job", "run", "change-schedule", "change-jobs", "edit-template"})
SECTIONS = (
    Section("People", "people", PEOPLE),
    Section("Access", "access", frozenset({"matrix", "matrix-changes", "reviewed", "undo"})),
    Section("Jobs", "jobs", JOBS),
)


def links(request: HttpRequest, metalake_id: int | None) -> list[Link]:
    """The sections of this metalake, or of one to choose, after the objects, which all other pages are part of."""
    page = request.resolver_match.url_name if request.resolver_match else None
    sections = []
    for one in SECTIONS:
        url = one.url(metalake_id)
        sections.append(Link(one.label, url, page in one.pages or request.path == url))
    is_object = request.path == home() or "/objects/" in request.path
    return [Link("Objects", home(), is_object and not any(link.is_open for link in sections)), *sections]


@require_safe
@signed_in
def choose(request: HttpRequest, actor: Actor, section: str) -> HttpResponse:
    """The metalakes to choose from for a section; the only one is chosen."""
    wanted = next((one for one in SECTIONS if one.name == section), None)
    if wanted is None:
        raise NotFound("There is no such page.")
    metalakes = [(one, wanted.url(one.id)) for one in browsing.top_level(actor).children]
    if len(metalakes) == 1:
        return redirect(metalakes[0][1])
    return render(request, "frontend/choose.html", {"section": wanted, "metalakes": metalakes})
