"""The page that edits a role: its grants on any objects and who holds it, as one plan."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import HttpResponseClientRedirect

from access.explain import grantable, profiles
from access.explain.profiles import RolePage
from access.explain.queries import Place
from access.plans.desired import Change
from access.plans.role_edits import changes_of_edits
from authz import operations
from authz.actor import Actor
from authz.services.directory import PAGE, Narrowed
from catalogs.services import browsing
from frontend import plan_forms, toasts
from frontend.confusables import spelled
from frontend.forms.roles import RoleEdit, spelled_out
from frontend.page_decorators import is_partial, keeps_form, permits, signed_in
from frontend.pages.catalogs import located
from metalake.errors import MetalakeError
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Located

NOTHING = "Nothing is changed yet. Choose something, then preview."


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def edit_role(request: HttpRequest, actor: Actor, metalake_id: int, role_id: int) -> HttpResponse:
    """The form of a role with the plan of its changes; `open` is an object to begin with."""
    target = located(actor, metalake_id, Kind.METALAKE)
    sent = request.POST if request.method == "POST" else request.GET
    text = sent.get("holders", "").replace("\x00", "").strip()
    shown = profiles.role_page(actor, target.metalake.name, role_id, Narrowed(text))
    form = RoleEdit(sent, shown.record)
    may_assign = permits(request, operations.ASSIGN_ROLES, target)
    _read(actor, target, form, may_assign)
    context: dict[str, Any] = {"target": target, "shown": shown, "id": role_id, "name": shown.record.name, "form": form}
    context["hidden_holders"] = _unlisted_holders(form, shown)
    context |= (
        {"may_assign": may_assign, "status": 422 if form.is_wrong else 200} | _listed(form) | _tree(actor, target, form)
    )
    if request.method == "POST" and form.text("act") in ("preview", "apply") and not form.is_wrong:
        changes = [*changes_of_edits(shown.record, form.edits), *_holders(form, shown)]
        if not changes:
            context["nothing"] = NOTHING
        elif done := _plan(request, actor, target, context, changes):
            return done
    template = "role_form" if is_partial(request) else "edit_role"
    return render(request, f"frontend/people/{template}.html", context, status=context["status"])


def _read(actor: Actor, target: Located, form: RoleEdit, may_assign: bool) -> None:
    """Look up the objects and the people that the form names."""
    parts, added = form.asked()
    places = dict.fromkeys([*(place for some in parts.values() for place in some), *added])
    objects, wrong = (
        grantable.grantable_on_each(actor, target.metalake.name, places, form.standing) if places else ({}, {})
    )
    form.open(parts, added, objects, wrong)
    if form.names and may_assign:
        on = Place(Kind.METALAKE, dotted([target.metalake.name]))
        try:
            form.name(grantable.name_people(actor, target.metalake.name, on, form.names))
        except MetalakeError as refusal:
            form.errors["more"] = refusal.message


def _plan(
    request: HttpRequest, actor: Actor, target: Located, context: dict[str, Any], changes: list[Change]
) -> HttpResponse | None:
    """The answer if the plan was applied; else what the page shows of it is in the context."""
    token = request.POST.get("token", "") if request.POST.get("act") == "apply" else ""
    shown = request.POST.get("shown", "")
    plan = plan_forms.answer(actor, target.metalake.name, str(changes), lambda: changes, token, shown)
    plan.refusal = plan_forms.without_place(plan.refusal)
    if plan.applied is None:
        context |= {"plan": plan, "planned": plan.planned, "before": plan.before, "moved": plan.moved}
        context["status"] = plan.status
        return None
    path = reverse("frontend:role", args=[target.id, context["id"]])
    toasts.add_applied(request, f"Role {spelled(context['name'])} is changed.", target.id, plan.applied.token, path)
    return HttpResponseClientRedirect(path) if is_partial(request) else redirect(path)


def _holders(form: RoleEdit, shown: RolePage) -> list[Change]:
    people = form.named.people if form.named else ()
    changes = [Change("assign", shown.record.name, holder=(whom.sort, whom.name)) for whom in people]
    for sort, _, name in (text.partition(":") for text in dict.fromkeys(form.unassign)):
        changes.append(Change("unassign", shown.record.name, holder=(sort, name)))
    return changes


def _unlisted_holders(form: RoleEdit, shown: RolePage) -> list[str]:
    """Those from whom the role is to be taken who are not on the shown page."""
    there = {f"{one.sort}:{one.name}" for one in shown.holders.rows} if shown.holders else set()
    return [text for text in form.unassign if text not in there]


def _listed(form: RoleEdit) -> dict[str, Any]:
    """A page of the objects that the role holds something on, narrowed by a part of their names."""
    q, start = form.text("q"), form.text("from")
    begin = int(start) if start.isascii() and start.isdigit() and len(start) < 7 else 0
    some = [(on, entries) for on, entries in form.standing.items() if q.casefold() in on.full_name.casefold()]
    opened = {one.on for part in form.parts for one in part.objects}
    rows = [(on, spelled_out(on), entries, on in opened) for on, entries in some[begin : begin + PAGE]]
    context = {"q": q, "rows": rows, "begin": begin, "total": len(some)}
    return context | {"next": begin + PAGE if len(some) > begin + PAGE else None, "back": max(begin - PAGE, 0)}


def _tree(actor: Actor, target: Located, form: RoleEdit) -> dict[str, Any]:
    """The level of the tree that objects are chosen from, once it was opened."""
    id = form.text("into") or form.text("at")
    if not (id.isascii() and id.isdigit() and len(id) < 20):
        return {}
    try:
        above = browsing.locate(actor, int(id))
        if above.nodes[0].id != target.id:
            return {}
        level = browsing.level_below(actor, above)
    except MetalakeError as failure:
        return {"unlisted": failure.message}
    every = [(child, f"{child.kind} {dotted(above.below(child.node).full_name)}") for child in level.children]
    return {"above": above, "children": every, "is_cut": level.next is not None}
