"""View as: shows tree and pages as another person sees them, the rest dimmed. It changes no permissions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from access.explain import view_as
from access.explain.permissions import reads_access
from access.explain.view_as import Seen
from authz.actor import Actor
from catalogs.services import browsing
from metalake.errors import Forbidden, NotFound
from metalake.lineage import Located

SEE_AS = "see_as"  # of the session: the metalake's id and the person's name


@dataclass(frozen=True)
class ViewingAs:
    """The user viewed as; `seen` is None if the viewer may not read access."""

    user: str
    seen: Seen | None


def choose(request: HttpRequest, actor: Actor, target: Located, user: str) -> None:
    """View this metalake as that person from now on; with an empty name, as oneself. Raises as `viewer` does."""
    request.session.pop(SEE_AS, None)
    if user:
        view_as.viewer(actor, target.metalake.name, target, user)
        request.session[SEE_AS] = [target.metalake.id, user]


def chosen(request: HttpRequest, actor: Actor, target: Located) -> dict[str, Any]:
    """The context of an object's page: who may be chosen, and what the chosen person sees of it."""
    context: dict[str, Any] = {"may_see_as": reads_access(actor, target)}
    user = _user(request, target)
    if user is not None:
        person = _person(request, actor, target, user)
        context["seeing"] = ViewingAs(user, view_as.seen_of(person, target) if person else None)
    return context


def dimmed(request: HttpRequest, actor: Actor, target: Located, children: Iterable[browsing.Child]) -> dict[str, Any]:
    """The context of a level: the ids of those children of an object that the chosen person does not see."""
    user = _user(request, target)
    person = None if user is None else _person(request, actor, target, user)
    if person is None:
        return {}
    ids = {child.id for child in children}
    return {"unseen": ids - view_as.seen_among(person, target, ids), "unseen_by": user}


def dimmed_metalakes(request: HttpRequest, actor: Actor, metalakes: Iterable[browsing.Child]) -> dict[str, Any]:
    """The context of the first level: the ids of those metalakes that the chosen person does not see."""
    _, user = request.session.get(SEE_AS) or (None, None)
    if user is None:
        return {}
    tops = [Located(nodes=(child.node,)) for child in metalakes]
    return {"unseen": view_as.metalakes_unseen(actor, user, tops), "unseen_by": user}


def _user(request: HttpRequest, target: Located) -> str | None:
    """The person who was chosen for this metalake."""
    metalake_id, user = request.session.get(SEE_AS) or (None, None)
    return user if metalake_id == target.metalake.id else None


def _person(request: HttpRequest, actor: Actor, target: Located, user: str) -> Actor | None:
    """The person as of now; None where the reader may not read access, or the person is gone.

    They are looked up once for the page and its level.
    """
    persons: dict[int, Actor | None] = request.__dict__.setdefault("persons_seen_as", {})
    if target.id not in persons:
        try:
            persons[target.id] = view_as.viewer(actor, target.metalake.name, target, user)
        except (Forbidden, NotFound):
            persons[target.id] = None
    return persons[target.id]
