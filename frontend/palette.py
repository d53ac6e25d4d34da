"""What the palette offers: pages and commands as links, and what a phrase means. It links only to pages that exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from access.explain import search
from access.explain.phrases import Act, Phrase, read_phrase
from access.explain.search import Meant
from authz import operations, policy
from authz.actor import Actor
from authz.operations import Operation
from catalogs.services import browsing
from catalogs.services.browsing import Child
from frontend.page_decorators import may_make_schema, may_make_view
from frontend.sections import SECTIONS
from metalake.kinds import CONTAINERS
from metalake.lineage import Located
from metalake.wire import written

MOST = 8
MOST_METALAKES = 3  # whose pages are offered where none is shown
_SEE_AS = re.compile(r"see\s+as\s+(\S.*)", re.IGNORECASE)
_NEW_IN = re.compile(r"new\s+(schema|view)\s+(?:in\s+)?(\S.*)", re.IGNORECASE)


@dataclass(frozen=True)
class Hit:
    """A page that what is typed may mean; `of` is the metalake that it is about."""

    label: str
    url: str
    icon: str = "arrow-right"
    of: str = ""


@dataclass(frozen=True)
class Command:
    """A page of a metalake, for whoever may do there what it is for."""

    label: str
    route: str
    query: str = ""
    operation: Operation | None = None


_PEOPLE = "people"
COMMANDS = (
    *(Command(one.label, one.route) for one in SECTIONS),
    Command("Users", _PEOPLE, "sort=users"),
    Command("Groups", _PEOPLE, "sort=groups"),
    Command("Roles", _PEOPLE, "sort=roles"),
    Command("Job templates", "jobs", "sort=templates"),
    Command("Schedules", "jobs", "sort=schedules"),
    Command("Broken views", "findings"),
    Command("Dormant objects", "findings", "of=objects", operations.READ_ACCESS_TO_METALAKE),
    Command("Unused and redundant grants", "reviewed", "", operations.READ_ACCESS_TO_METALAKE),
    Command("Register a catalog", "register", "", operations.CREATE_CATALOG),
    Command("New catalog", "register", "", operations.CREATE_CATALOG),
    Command("Add a user", _PEOPLE, "sort=users", operations.MANAGE_USERS),
    Command("New group", _PEOPLE, "sort=groups", operations.MANAGE_GROUPS),
    Command("New role", _PEOPLE, "sort=roles", operations.CREATE_ROLE),
    Command("Run a job", "jobs", "sort=templates", operations.RUN_JOB),
)
"""The pages of each metalake that are offered by the words of their label."""
ALONE = (("Tokens", "tokens"), ("New token", "tokens"), ("Home", "home"), ("Components", "components"))
"""Pages that are about no metalake."""


def phrases_meant(actor: Actor, text: str) -> tuple[Phrase | None, list[Meant]]:
    """The phrase of a text, and the objects that it may mean."""
    phrase = read_phrase(text, timezone.now())
    return phrase, search.objects_meant(actor, phrase) if phrase else []


def url_of(meant: Meant) -> str:
    """The page that a phrase opens, filled in."""
    phrase, query = meant.phrase, dict[str, str]()
    match phrase.act:
        case Act.GRANT:
            query = {"principal": phrase.who, "level": phrase.level or ""}
            query["privilege"] = phrase.privilege or ""
            query["ends"] = written(phrase.ends) if phrase.ends else ""
        case Act.WHO:
            query = {"privilege": meant.privilege or ""}
        case Act.WHY:
            query = {"user": phrase.who, "privilege": meant.privilege or ""}
    route = {Act.GRANT: "grant", Act.WHO: "access", Act.WHY: "why"}[phrase.act]
    path = reverse(f"frontend:{route}", args=[meant.on.id])
    asked = urlencode({name: value for name, value in query.items() if value})
    return f"{path}?{asked}" if asked else path


def pages_named(actor: Actor, metalakes: Iterable[Child], text: str, metalake_id: int | None) -> list[Hit]:
    """The pages and commands in whose label each word of the text begins a word; of this metalake, else of a few."""
    text = text.strip()
    enabled = [child for child in metalakes if child.enabled]
    tops = [child for child in enabled if child.id == metalake_id] or enabled[:MOST_METALAKES]
    hits = [*_of_objects(actor, text), *_of_metalakes(actor, [Located(nodes=(top.node,)) for top in tops], text)]
    alone = [*ALONE, *([("New metalake", "make-metalake")] if actor.service_admin else [])]
    hits += [Hit(label, reverse(f"frontend:{route}")) for label, route in alone if is_named(label, text)]
    return hits[:MOST]


def is_named(label: str, text: str) -> bool:
    """Whether each word of the text begins a word of the label."""
    words = label.lower().split()
    return bool(text) and all(any(word.startswith(part) for word in words) for part in text.lower().split())


def _of_metalakes(actor: Actor, tops: list[Located], text: str) -> Iterator[Hit]:
    if as_user := _SEE_AS.fullmatch(text):
        for top in tops:
            if policy.permits(actor, operations.READ_ACCESS_TO_METALAKE, top):
                url = f"{reverse('frontend:see-as', args=[top.id])}?{urlencode({'user': as_user[1]})}"
                yield Hit(f"See as {as_user[1]}", url, "eye", top.name)
    for command in COMMANDS:
        if not is_named(command.label, text):
            continue
        for top in tops:
            if command.operation is None or policy.permits(actor, command.operation, top):
                url = reverse(f"frontend:{command.route}", args=[top.id])
                yield Hit(command.label, f"{url}?{command.query}" if command.query else url, of=top.name)


def _of_objects(actor: Actor, text: str) -> Iterator[Hit]:
    """Where a new schema or view may be made, of the objects that it names."""
    new = _NEW_IN.fullmatch(text)
    if new is None:
        return
    may, what = (may_make_schema, "schema") if new[1].lower() == "schema" else (may_make_view, "view")
    for one in search.search(actor, None, new[2], MOST).objects:
        if one.kind in CONTAINERS and may(actor, browsing.locate(actor, one.id)):
            url = reverse(f"frontend:make-{what}", args=[one.id])
            yield Hit(f"New {what} in {one.name}", url, "plus", ".".join(one.path))
