"""The sections of the top bar. Each is a page of one metalake: that of the shown object, else one to choose."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from authz import policy
from authz.actor import Actor
from authz.operations import READ_ACCESS_TO_METALAKE
from catalogs.services import browsing
from frontend.page_decorators import home, signed_in
from metalake.errors import NotFound
from metalake.lineage import Located, Node


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


PEOPLE = frozenset(
    {"people", "change-people", "compare-people", "add-user", "user", "invite", "add-group", "group", "add-role"}
    | {"role", "edit-role"}
)
ACCESS = frozenset(
    {"matrix", "matrix-changes", "reviewed", "undo", "plan", "download-grants", "access-findings", "mend", "request"}
    | {"requests", "decide", "withdraw"}
)
ACCESS_PAGES = (
    Section("Who has access", "access", frozenset({"why"})),
    Section("Requests", "requests"),
    Section("Findings", "access-findings"),
    Section("Matrix", "matrix", frozenset({"matrix-changes"})),
    Section("Grants as a file", "plan"),
    Section("Changes", "changes", frozenset({"compare"})),
)
"""The pages of Access, which all have the same tabs."""
OF_READERS = ("access-findings", "changes")  # for whoever may read everybody's access
JOBS = frozenset({"jobs", "findings", "start-job", "run", "change-schedule", "change-jobs", "edit-template"})
SECTIONS = (
    Section("People", "people", PEOPLE),
    Section("Access", "access", ACCESS),
    Section("Jobs", "jobs", JOBS),
    Section("Audit", "audit"),
)
OBJECTS = ("/objects/", "/catalogs/", "/metalakes/new")  # in the paths of pages about objects


@dataclass(frozen=True)
class Bar:
    """The top bar: its sections, the metalake that they are about (None: one to choose), and the page of each of
    several metalakes to switch to: that of the open section, else the metalake itself.
    """

    links: list[Link]
    metalake: Node | None = None
    metalakes: tuple[tuple[str, str], ...] = ()  # name and URL

    @classmethod
    def without_store(cls, *, is_signed_in: bool) -> Bar:
        """The top bar of a page that knows no actor, such as that of a refused method."""
        sections = [Link(one.label, one.url(None), is_open=False) for one in SECTIONS if is_signed_in]
        return cls([Link("Objects", home(), is_open=False), *sections])


def bar(request: HttpRequest, actor: Actor, shown: Node | None) -> Bar:
    """The top bar of a page about this metalake, or about none: then the only one that the actor has is meant."""
    metalakes = [child.node for child in first_level(request, actor).children]
    metalake = shown or (metalakes[0] if len(metalakes) == 1 else None)
    page = request.resolver_match.url_name if request.resolver_match else None
    sections = []
    for one in SECTIONS:
        url = one.url(metalake and metalake.id)
        sections.append(Link(one.label, url, page in one.pages or f"{request.path}/".startswith(f"{url}/")))
    is_object = request.path == home() or any(part in request.path for part in OBJECTS)
    links = [Link("Objects", home(), is_object and not any(link.is_open for link in sections)), *sections]
    opened = next((one for one, link in zip(SECTIONS, sections, strict=True) if link.is_open), None)
    others = tuple((node.name, _same_page(opened, node.id)) for node in metalakes) if len(metalakes) > 1 else ()
    return Bar(links, metalake, others)


def access_links(request: HttpRequest, actor: Actor, metalake: Located) -> list[Link]:
    """The tabs of the metalake's access that the actor may open."""
    page = request.resolver_match.url_name if request.resolver_match else None
    reads = policy.permits(actor, READ_ACCESS_TO_METALAKE, metalake)
    pages = [one for one in ACCESS_PAGES if reads or one.route not in OF_READERS]
    return [Link(one.label, one.url(metalake.id), page == one.route or page in one.pages) for one in pages]


def _same_page(opened: Section | None, metalake_id: int) -> str:
    return opened.url(metalake_id) if opened else reverse("frontend:object", args=[metalake_id])


def first_level(request: HttpRequest, actor: Actor) -> browsing.Level:
    """The actor's metalakes, read once for the top bar, the tree and the page."""
    shared: dict[str, browsing.Level] = request.__dict__.setdefault("first_level", {})
    if "level" not in shared:
        shared["level"] = browsing.top_level(actor)
    return shared["level"]


@require_safe
@signed_in
def choose(request: HttpRequest, actor: Actor, section: str) -> HttpResponse:
    """The metalakes to choose from for a section; the only one is chosen."""
    wanted = next((one for one in SECTIONS if one.name == section), None)
    if wanted is None:
        raise NotFound("There is no such page.")
    metalakes = [(one, wanted.url(one.id)) for one in first_level(request, actor).children]
    if len(metalakes) == 1:
        return redirect(metalakes[0][1])
    return render(request, "frontend/choose.html", {"section": wanted, "metalakes": metalakes})
