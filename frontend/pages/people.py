"""The people of a metalake: its users, groups and roles in lists, and a page for each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from access.explain import profiles
from access.explain.queries import Whom
from authz import operations
from authz.actor import Actor
from authz.services import directory, invitations, people, roles
from authz.services.directory import Narrowed
from frontend import toasts
from frontend.confusables import spelled
from frontend.forms.people import GroupForm, RoleForm, UserForm, read_names
from frontend.page_decorators import permits, require, signed_in
from frontend.pages.catalogs import located
from frontend.pages.reach import reach_of
from metalake.errors import AlreadyExists, Invalid, MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located

LISTS = {"users": directory.list_users, "groups": directory.list_groups, "roles": directory.list_roles}
MOST_ROLES = 500  # that a field suggests
FORMS: dict[str, type[forms.Form]] = {"users": UserForm, "groups": GroupForm, "roles": RoleForm}
MAKING = {"users": operations.MANAGE_USERS, "groups": operations.MANAGE_GROUPS, "roles": operations.CREATE_ROLE}


@require_safe
@signed_in
def show_people(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """The users, groups or roles of a metalake (`sort`), filtered by name (`q`), after `after`."""
    target = located(actor, metalake_id, Kind.METALAKE)
    sort = request.GET.get("sort", "users")
    if sort not in LISTS:
        raise NotFound("There is no such list.")
    return _list(request, actor, target, sort, FORMS[sort](initial=request.GET.dict()))


def _list(
    request: HttpRequest, actor: Actor, target: Located, sort: str, form: forms.Form, status: int = 200
) -> HttpResponse:
    text, after = (request.GET.get(name, "").replace("\x00", "").strip() for name in ("q", "after"))
    context = {
        "target": target,
        "sort": sort,
        "listing": LISTS[sort](actor, target.metalake.name, text, after),
        "q": text,
        "after": after,
        "form": form,
        "may_make": permits(request, MAKING[sort], target),
        "lists_all": permits(request, _LISTING[sort], target),
    }
    return render(request, "frontend/people/list.html", context, status=status)


_LISTING = {"users": operations.MANAGE_USERS, "groups": operations.MANAGE_GROUPS, "roles": operations.READ_ROLES}


def _making(sort: str) -> Callable[..., Callable[..., HttpResponse]]:
    """A page that creates something from its list's form; errors are shown in the form, which keeps its values."""

    def declare(make: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @require_POST
        @signed_in
        def page(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
            target = located(actor, metalake_id, Kind.METALAKE)
            require(request, MAKING[sort], target)
            form = FORMS[sort](request.POST)
            if form.is_valid():
                try:
                    return make(request, actor, target, form.cleaned_data)
                except (Invalid, AlreadyExists, NotFound) as refusal:
                    form.add_error(_field(form, refusal), refusal.message)
            return _list(request, actor, target, sort, form, status=422)

        return page

    return declare


def _field(form: forms.Form, refusal: MetalakeError) -> str:
    """The field that an error is about."""
    is_about_people = "people" in form.fields and (refusal.kind in ("user", None))
    return "people" if is_about_people else "name"


@_making("users")
def add_user(request: HttpRequest, actor: Actor, target: Located, given: dict[str, Any]) -> HttpResponse:
    """Add a person; a new account's link is shown in this answer alone."""
    added = invitations.add_person(actor, target.metalake.name, given["name"])
    if added.invitation is None:
        how = "needs a link by who may assign roles" if added.is_waiting else "signs in as before"
        toasts.add(request, f"{spelled(given['name'])} is a user of {target.name} now, and {how}.")
        return redirect("frontend:user", target.id, added.user_id)
    return _invitation(request, target, given["name"], added.user_id, added.invitation)


@require_POST
@signed_in
def invite(request: HttpRequest, actor: Actor, metalake_id: int, user_id: int) -> HttpResponse:
    """A new link for a person who has not used theirs, which ends the old one."""
    target = located(actor, metalake_id, Kind.METALAKE)
    require(request, operations.MANAGE_USERS, target)
    name = profiles.user_page(actor, target.metalake.name, user_id).person.name
    try:
        made = invitations.invite(actor, target.metalake.name, name)
    except AlreadyExists as refusal:
        toasts.add(request, refusal.message)
        return redirect("frontend:user", target.id, user_id)
    return _invitation(request, target, name, user_id, made)


def _invitation(
    request: HttpRequest, target: Located, name: str, user_id: int, made: invitations.Invitation
) -> HttpResponse:
    link = request.build_absolute_uri(reverse("frontend:invitation", args=[made.secret]))
    context = {"target": target, "name": name, "user_id": user_id, "link": link, "expires_at": made.expires_at}
    return render(request, "frontend/people/invited.html", context)


@_making("groups")
def add_group(request: HttpRequest, actor: Actor, target: Located, given: dict[str, Any]) -> HttpResponse:
    """Make a group and put the people of a pasted list into it, who were looked up before."""
    names, repeated = read_names(given["people"])
    directory.require_users(actor, target.metalake.name, names)
    group = people.add_group(actor, target.metalake.name, given["name"])
    if names:
        people.set_group_users(actor, target.metalake.name, given["name"], add=names)
    toasts.add(request, f"Group {spelled(given['name'])} is made, with {len(names):,} people.")
    if repeated:
        toasts.add(request, f"Named more than once and put in once: {listed(repeated)}.")
    return redirect("frontend:group", target.id, group.row.pk)


@_making("roles")
def add_role(request: HttpRequest, actor: Actor, target: Located, given: dict[str, Any]) -> HttpResponse:
    made = roles.create_role(actor, target.metalake.name, given["name"], given["properties"])
    assert made.row is not None
    toasts.add(request, f"Role {given['name']} is made. It holds nothing yet: add objects.")
    return redirect("frontend:edit-role", target.id, made.row.pk)


def listed(names: list[str], shown: int = 20) -> str:
    """ "a, b and 3 more"."""
    more = len(names) - shown
    return ", ".join(map(spelled, names[:shown])) + (f" and {more:,} more" if more > 0 else "")


# One of them


@require_safe
@signed_in
def show_user(request: HttpRequest, actor: Actor, metalake_id: int, user_id: int) -> HttpResponse:
    target = located(actor, metalake_id, Kind.METALAKE)
    shown = profiles.user_page(
        actor, target.metalake.name, user_id, _narrowed(request, "groups"), _narrowed(request, "roles")
    )
    name = shown.person.name
    context: dict[str, Any] = {"shown": shown, "holder": "user", "id": user_id, "name": name}
    context["is_oneself"] = name == actor.name
    may_read = context["is_oneself"] or permits(request, operations.READ_ACCESS_TO_METALAKE, target)
    if may_read and actor.policy.is_member(user_id, target.id):
        context["reach"] = reach_of(actor, target, Whom("user", name))
    return _one(request, actor, target, "user", context)


@require_safe
@signed_in
def show_group(request: HttpRequest, actor: Actor, metalake_id: int, group_id: int) -> HttpResponse:
    target = located(actor, metalake_id, Kind.METALAKE)
    shown = profiles.group_page(
        actor, target.metalake.name, group_id, _narrowed(request, "people"), _narrowed(request, "roles")
    )
    context: dict[str, Any] = {"shown": shown, "holder": "group", "id": group_id, "name": shown.person.name}
    if permits(request, operations.READ_ACCESS_TO_METALAKE, target):
        context["reach"] = reach_of(actor, target, Whom("group", shown.person.name))
    return _one(request, actor, target, "group", context)


@require_safe
@signed_in
def show_role(request: HttpRequest, actor: Actor, metalake_id: int, role_id: int) -> HttpResponse:
    target = located(actor, metalake_id, Kind.METALAKE)
    shown = profiles.role_page(actor, target.metalake.name, role_id, _narrowed(request, "holders"))
    grants = shown.record.grants
    given = request.GET.get("from", "")
    start = int(given) if given.isascii() and given.isdigit() and len(given) < 7 else 0
    end = start + directory.PAGE
    context = {"shown": shown, "id": role_id, "name": shown.record.name, "may_drop": shown.may_drop}
    context |= {"grants": grants[start:end], "next": end if len(grants) > end else None}
    context["total"] = sum(len(on.entries) for on in grants)
    return _one(request, actor, target, "role", context)


def _narrowed(request: HttpRequest, part: str) -> Narrowed:
    """Which of one of a page's lists is asked for: `?people=mi&people-after=mia`."""
    text, after = (request.GET.get(name, "").replace("\x00", "").strip() for name in (part, f"{part}-after"))
    return Narrowed(text, after)


def _one(request: HttpRequest, actor: Actor, target: Located, sort: str, context: dict[str, Any]) -> HttpResponse:
    """The page of a user, group or role, with what the caller may do there."""
    context |= {
        "target": target,
        "may_assign": permits(request, operations.ASSIGN_ROLES, target),
        "may_manage_users": permits(request, operations.MANAGE_USERS, target),
        "may_manage_groups": permits(request, operations.MANAGE_GROUPS, target),
        "may_read_access": permits(request, operations.READ_ACCESS_TO_METALAKE, target),
    }
    if context["may_assign"] and sort != "role":
        context["assignable"] = roles.list_roles(actor, target.metalake.name)[:MOST_ROLES]
    return render(request, f"frontend/people/{sort}.html", context)
