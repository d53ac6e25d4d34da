"""What is to mend in a metalake's rights, each with the page that mends it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from access.explain import findings
from access.explain.findings import Extendable, IdleGrant, LostOwner
from access.usage import reports
from authz import operations, policy
from authz.actor import Actor
from authz.models import AccessReview
from authz.objects import by_ids
from authz.services import owners
from frontend.confusables import spelled
from frontend.deep_links import grant_page, revoke_page
from frontend.page_decorators import keeps_form, require, signed_in
from frontend.pages.catalogs import located
from frontend.proposals import Asked, Family, Proposal
from metalake.errors import NotFound
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.privileges import Effect
from metalake.wire import written

LONGER = timedelta(days=30)  # by which a grant that ends soon is extended at first


class Mend(NamedTuple):
    """A page that mends something, what its link says, and what it is about, for a screen reader."""

    url: str
    label: str
    about: str


class Row(NamedTuple):
    """A finding with its object's name, and the pages that mend it."""

    row: Any
    name: str
    mends: list[Mend]


@require_safe
@signed_in
def show_findings(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The findings, for whoever may read everybody's access."""
    target = located(actor, metalake_id, Kind.METALAKE)
    seen = findings.findings(actor, target.name)
    context = {
        "target": target,
        "findings": seen,
        "review": reports.report_on(actor, target, AccessReview),
        "may_drop": policy.permits(actor, operations.ALTER_METALAKE, target),
        "grants": [_of_grant(one) for one in seen.grants.rows],
        "ending": [_of_ending(one) for one in seen.ending.rows],
        "owners": [_of_owner(actor, target, one) for one in seen.owners.rows],
    }
    return render(request, "frontend/findings.html", context)


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def mend(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """Show what handing an object over would do, or do it."""
    target = located(actor, metalake_id, Kind.METALAKE)
    require(request, operations.READ_ACCESS_TO_METALAKE, target)
    return MENDS.answer(request, actor, target)


def _of_grant(one: IdleGrant) -> Row:
    name = dotted(one.on.full_name)
    about = f"{one.privilege} of role {spelled(one.role)} on {spelled(name)}"
    mends = []
    lacks = next((lack for lack in one.missing if lack.on and not lack.is_denied), None)
    if lacks and lacks.on and one.holder:
        url = grant_page(lacks.on.id, one.holder, lacks.privilege, role=one.role)
        mends.append(Mend(url, "Grant", f"{lacks.privilege}, so that {about} counts"))
    mends.append(Mend(revoke_page(one.on.id, one.role, one.privilege, Effect.ALLOW), "Revoke", about))
    return Row(one, name, mends)


def _of_ending(one: Extendable) -> Row:
    grant, mends = one.of, []
    name = dotted(grant.on.full_name)
    if one.holder:
        more = {"role": grant.role, "effect": grant.effect.value, "ends": written(grant.ends + LONGER)}
        about = f"{', '.join(grant.privileges)} of role {spelled(grant.role)} on {spelled(name)}"
        mends.append(Mend(grant_page(grant.on.id, one.holder, *grant.privileges, **more), "Extend", about))
    return Row(one, name, mends)


def _of_owner(actor: Actor, target: Located, one: LostOwner) -> Row:
    name = dotted(one.on.full_name)
    mends = []
    if one.on.id != target.id and policy.permits(actor, operations.own(one.on.kind), one.on):
        back = reverse("frontend:access-findings", args=[target.id])
        query = urlencode({"what": "own", "object": str(one.on.id), "back": back})
        mends.append(Mend(f"{reverse('frontend:mend', args=[target.id])}?{query}", "Hand over", spelled(name)))
    return Row(one, name, mends)


def own(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    """Make the metalake's owner the owner of an object."""
    id = asked.get("object", "")
    on = by_ids([int(id)]).get(int(id)) if id.isascii() and id.isdigit() and len(id) < 19 else None
    if on is None or on.metalake.id != target.id or not policy.permits(actor, operations.own(on.kind), on):
        raise NotFound("There is no such object.", kind="object")
    owner, before, name = owners.owner_of(target), owners.owner_of(on), dotted(on.full_name)
    return Proposal(
        title=f"Make {owner.type} {spelled(owner.name)} the owner of {on.kind} {spelled(name)}",
        says=[
            f"{before.type.capitalize()} {spelled(before.name)} owns it now.",
            f"{spelled(owner.name)} owns {spelled(target.name)}, and gets all that belonged to former members.",
        ],
        button="Hand it over",
        done=f"{owner.type.capitalize()} {spelled(owner.name)} owns {spelled(name)}.",
        make=lambda: owners.set_owner(actor, target.name, on.kind, name, *owner),
    )


MENDS = Family(readers={"own": own}, passed_on=("object",), fields={})
