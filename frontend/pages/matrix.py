"""A matrix of people, objects and privileges: who may use what, answered at one moment and shared as a link."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from access.explain import explanations, queries
from access.explain.queries import Place, Question
from authz import policy
from authz.actor import Actor
from authz.objects import address_of, locate_all
from authz.operations import load_of
from frontend.forms.matrix import MatrixForm, applies
from frontend.page_decorators import is_partial, signed_in
from frontend.pages.catalogs import located
from metalake.errors import Forbidden, Invalid, NotFound, TooManyRequests
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.privileges import Privilege
from metalake.rest.exceptions import shape_of
from metalake.wire import written

LONGEST_LINK = 4000  # characters that servers and mail programs carry


class Cell(NamedTuple):
    """Yes, no, or None where the privilege means nothing; with the page of its reason, where the reader may open it."""

    is_allowed: bool | None
    why_url: str = ""


class Row(NamedTuple):
    """One person on one object, with a cell for each privilege; `is_nobody` if no user has this name."""

    user: str
    on: Place
    cells: list[Cell]
    url: str = ""
    is_nobody: bool = False


@require_http_methods(["GET", "POST"])
@signed_in
def matrix(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The form, and its answers as a table; a POST takes more lines than a link can carry."""
    target = located(actor, metalake_id, Kind.METALAKE)
    asked = request.POST if request.method == "POST" else request.GET
    form = MatrixForm(asked, actor.name)
    context: dict[str, Any] = {"target": target, "node": target.node, "form": form}
    status = 200
    if form.is_bound and form.is_valid():
        try:
            context |= _answered(actor, target, form.cleaned_data)
            context["link"] = _link(request, "matrix", target, asked)
            context["changes_url"] = _link(request, "matrix-changes", target, asked)
        except (Forbidden, Invalid, NotFound, TooManyRequests) as refusal:
            form.add_error(None, refusal.message)
            status, _, _ = shape_of(refusal)
    elif form.is_bound:
        status = 422
    if is_partial(request):
        return render(request, "frontend/matrix/answer.html", context | {"is_alone": True}, status=status)
    return render(request, "frontend/matrix/page.html", context, status=status)


def _answered(actor: Actor, target: Located, asked: dict[str, Any]) -> dict[str, Any]:
    """The context of the answers. Raises the service's errors."""
    people, places, as_of = asked["people"], asked["objects"], asked["asOf"]
    privileges = [Privilege(name) for name in asked["privilege"]]
    cells = [(user, on, of) for on in places for user in people for of in privileges if applies(of, on)]
    wanted = [Question(user, explanations.read_wanted(on.kind, of, None), on) for user, on, of in cells]
    answers = dict(zip(cells, queries.check(actor, target.name, wanted, as_of) if wanted else (), strict=True))
    nobodys = queries.nobodys_names(actor, target.name, wanted, as_of) if wanted else frozenset()
    links = Links(_pages_of(actor, target, places), as_of)
    rows = [
        Row(
            user,
            on,
            [links.cell(user, on, of, answers.get((user, on, of))) for of in privileges],
            links.page(on),
            user in nobodys,
        )
        for on in places
        for user in people
    ]
    return {"privileges": privileges, "rows": rows, "as_of": as_of, "nobodys": sorted(nobodys)}


class Links(NamedTuple):
    """The pages of the objects that have one for the reader, by place, and the moment of the questions."""

    ids: dict[Place, int]
    as_of: datetime | None

    def page(self, on: Place) -> str:
        return reverse("frontend:object", args=[self.ids[on]]) if on in self.ids else ""

    def cell(self, user: str, on: Place, privilege: Privilege, is_allowed: bool | None) -> Cell:
        if is_allowed is None or on not in self.ids:
            return Cell(is_allowed)
        query = {"user": user, "privilege": privilege.value}
        if self.as_of:
            query["asOf"] = written(self.as_of)
        return Cell(is_allowed, f"{reverse('frontend:why', args=[self.ids[on]])}?{urlencode(query)}")


def _pages_of(actor: Actor, target: Located, places: list[Place]) -> dict[Place, int]:
    """The ids of the objects that the reader may load today."""
    addresses = {on: address_of(target.name, *on) for on in places}
    located_at = locate_all(target, addresses.values())
    return {
        on: located_at[address].id
        for on, address in addresses.items()
        if address in located_at and policy.permits(actor, load_of(on.kind), located_at[address])
    }


def _link(request: HttpRequest, page: str, target: Located, asked: QueryDict) -> str:
    """A link to a page about the same questions, empty if it would be too long."""
    query = asked.copy()
    query.pop("csrfmiddlewaretoken", None)
    path = f"{reverse(f'frontend:{page}', args=[target.id])}?{query.urlencode()}"
    return request.build_absolute_uri(path) if len(path) <= LONGEST_LINK else ""
