"""What people reach, place by place: on the page of each, and two of them side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from access.explain.holdings import Holding, Row, Through, holdings
from access.explain.queries import Whom
from authz import operations
from authz.actor import Actor
from authz.services import directory
from frontend.forms.people import CompareForm
from frontend.page_decorators import permits, signed_in
from frontend.pages.catalogs import located
from metalake.errors import Invalid, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.rest.exceptions import shape_of

THROUGH = MORE = 4  # roles and privileges that a cell names


class Cell(NamedTuple):
    """What one of them holds on an object, with the page that says why; at most as much as a reader takes in."""

    holding: Holding
    url: str
    label: str = "Why?"

    @property
    def more_left(self) -> int:
        return len(self.holding.more[MORE:])

    @property
    def through(self) -> list[Through]:
        """What denies first; of an owner only what makes them one, through a group."""
        ways = [way for way in self.holding.through if way.role or way.groups]
        if self.holding.is_owner:
            ways = [way for way in ways if not way.role]
        return sorted(ways, key=lambda way: not way.is_deny)[:THROUGH]

    @property
    def through_left(self) -> int:
        return 0 if self.holding.is_owner else len(self.holding.through[THROUGH:])


def reach_of(actor: Actor, target: Located, *whom: Whom) -> dict[str, Any]:
    """The context of the table of what these hold. Raises the errors of `holdings`."""
    table = holdings(actor, target.name, whom)

    def cells(row: Row) -> list[Cell]:
        return [_cell(row.on, one, holding) for one, holding in zip(whom, row.holdings, strict=True)]

    return {"whom": whom, "rows": [(row, cells(row)) for row in table.rows], "is_cut": table.is_cut}


def _cell(on: Located, whom: Whom, holding: Holding) -> Cell:
    if whom.sort == "group":
        return Cell(
            holding, f"{reverse('frontend:access', args=[on.id])}?{urlencode({'by': 'group', 'q': whom.name})}", "Ways"
        )
    query = urlencode({"user": whom.name, "privilege": holding.asks.value})
    return Cell(holding, f"{reverse('frontend:why', args=[on.id])}?{query}")


@require_safe
@signed_in
def compare_people(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """Where what two users or groups may do differs."""
    target = located(actor, metalake_id, Kind.METALAKE)
    form = CompareForm(request.GET)
    context: dict[str, Any] = {"target": target, "form": form}
    status = 200
    if form.is_bound and form.is_valid():
        try:
            context["reach"] = reach_of(actor, target, *form.cleaned_data.values())
        except (Invalid, NotFound):
            status = _say_who_is_missing(actor, target, form)
    elif form.is_bound:
        status = 422
    if permits(request, operations.MANAGE_USERS, target):
        context["suggested"] = directory.list_users(actor, target.name).rows
    return render(request, "frontend/people/compare.html", context, status=status)


def _say_who_is_missing(actor: Actor, target: Located, form: CompareForm) -> int:
    """Put the refusal of each name next to its field; returns the status."""
    status = 404
    for name, whom in list(form.cleaned_data.items()):
        try:
            reach_of(actor, target, whom)
        except (Invalid, NotFound) as refusal:
            form.add_error(name, refusal.message)
            status, _, _ = shape_of(refusal)
    return status
