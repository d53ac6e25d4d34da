"""Changes of memberships and role assignments: each is previewed, and applied when confirmed."""

from __future__ import annotations

from django.forms import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from access.explain.queries import Whom
from access.plans import departures
from access.plans.desired import Change
from access.plans.removals import remove_access
from authz import operations
from authz.actor import Actor
from authz.services import directory, people, roles
from frontend import toasts
from frontend.confusables import spelled
from frontend.forms.matrix import read_place
from frontend.forms.people import read_names
from frontend.page_decorators import home, keeps_form, require, signed_in
from frontend.pages.catalogs import located
from frontend.pages.people import listed
from frontend.proposals import Asked, Family, Fields, Proposal
from metalake.errors import Invalid, MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.logs import note_failure
from metalake.privileges import Effect


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def change(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """Show what a change would do, or make it."""
    return CHANGES.answer(request, actor, located(actor, metalake_id, Kind.METALAKE))


def _holder(asked: Asked) -> tuple[str, str]:
    """ "user" or "group", and the name."""
    for sort in ("user", "group"):
        if asked.get(sort):
            return sort, asked[sort]
    raise Invalid("Name a user or a group.")


def _role(asked: Asked) -> str:
    if not asked.get("role", "").strip():
        raise Invalid("Name a role.", kind="role")
    return asked["role"].strip()


def assign(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    require(request, operations.ASSIGN_ROLES, target)
    (sort, name), role = _holder(asked), _role(asked)
    who, what = spelled(name), spelled(role)
    return Proposal(
        title=f"Assign role {what} to {sort} {who}",
        says=[_everybody(sort, f"{who} may do what the role allows, and nothing that it denies.")],
        button="Assign the role",
        done=f"{sort.capitalize()} {who} holds role {what} now.",
        changes=(Change("assign", role, holder=(sort, name)),),
    )


def unassign(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    require(request, operations.ASSIGN_ROLES, target)
    (sort, name), role = _holder(asked), _role(asked)
    who, what = spelled(name), spelled(role)
    return Proposal(
        title=f"Take role {what} from {sort} {who}",
        says=[_everybody(sort, f"{who} loses what this role alone allows, and what it denies no longer counts.")],
        button="Take the role away",
        done=f"{sort.capitalize()} {who} does not hold role {what} any more.",
        changes=(Change("unassign", role, holder=(sort, name)),),
        is_danger=True,
    )


def _everybody(sort: str, sentence: str) -> str:
    return f"Everybody in {sentence}" if sort == "group" else sentence


def put_in(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    """Put the people of a pasted list into a group."""
    metalake, group = target.metalake.name, asked.get("group", "")
    shown = people.get_group(actor, metalake, group)
    names, repeated = read_names(asked.get("people", ""))
    if not names:
        raise Invalid("Name at least one user, one a line.", kind="user")
    directory.require_users(actor, metalake, names)
    inside = set(shown.users or ())
    fresh = [name for name in names if name not in inside]
    says = [f"{len(fresh):,} of {len(names):,} are not in it yet: {listed(fresh) or 'nobody'}."]
    if repeated:
        says.append(f"Named more than once, and put in once: {listed(repeated)}.")
    return Proposal(
        title=f"Put {_count(len(names))} into group {spelled(group)}",
        says=[*says, _roles_of(shown, "Each gets what its roles allow and deny")],
        button="Put them in",
        done=f"{_count(len(fresh))} put into group {spelled(group)}.",
        make=lambda: people.set_group_users(actor, metalake, group, add=names),
    )


def take_out(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    metalake, group, user = target.metalake.name, asked.get("group", ""), asked.get("user", "")
    shown = people.get_group(actor, metalake, group)
    who = spelled(user)
    return Proposal(
        title=f"Take {who} out of group {spelled(group)}",
        says=[
            _roles_of(shown, f"{spelled(user)} loses what its roles alone allow, and what they deny no longer counts")
        ],
        button="Take out",
        done=f"{who} is not in group {spelled(group)} any more.",
        make=lambda: people.set_group_users(actor, metalake, group, remove=[user]),
        is_danger=True,
    )


def _roles_of(group: people.Person, sentence: str) -> str:
    return f"{sentence}: {listed(group.roles)}." if group.roles else "The group holds no role."


def _count(number: int) -> str:
    return f"{number:,} {'person' if number == 1 else 'people'}"


def remove(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    """Remove a user or a group from a metalake; `what` says which of both."""
    sort, metalake = asked["what"].removeprefix("remove-"), target.metalake.name
    leaving = departures.leaving(actor, metalake, sort, asked.get(sort, "").strip())
    shown, drop = leaving.person, people.remove_user if sort == "user" else people.remove_group
    who, is_oneself = spelled(shown.name), sort == "user" and shown.name == actor.name
    says = (_without_user if sort == "user" else _without_group)(shown, metalake)
    undo = f"For an hour, Undo gives back roles, {'groups' if sort == 'user' else 'people'} and objects, if unchanged."
    if is_oneself:
        undo = f"This is you: you cannot undo it, since you will not see {metalake} any more."
    return Proposal(
        title=f"Remove {sort} {who} from {metalake}",
        says=[*says, _passing_on(leaving), undo],
        button="Remove from the metalake",
        done=f"{sort.capitalize()} {who} is removed from {metalake}.",
        make=lambda: drop(actor, metalake, shown.name),
        after=home() if is_oneself else _list(target, f"{sort}s"),
        is_danger=True,
        undo=("", "") if is_oneself else (reverse("frontend:bring-back", args=[target.id]), f"{sort}:{leaving.id}"),
    )


def _passing_on(leaving: departures.Leaving) -> str:
    """What passes to whom, by the names that the caller sees."""
    heir = f"{leaving.heir.type} {spelled(leaving.heir.name)}, who owns the metalake"
    if not leaving.owned:
        return f"They own nothing that you see; whatever they own passes to {heir}."
    names = listed([each.path for each in leaving.owned], departures.SHOWN) + (" and more" if leaving.more else "")
    return f"What they own passes to {heir}: {names}."


def _without_user(shown: people.Person, metalake: str) -> list[str]:
    who = spelled(shown.name)
    return [
        f"{who} sees nothing of {metalake} any more. Their account stays, their runs are cancelled and their "
        "schedules stop.",
        f"Their roles end: {listed(shown.roles)}." if shown.roles else "They hold no role themselves.",
        "Roles and groups that deny them something are remembered, and count again if they are added again.",
    ]


def _without_group(shown: people.Person, metalake: str) -> list[str]:
    return [_roles_of(shown, f"{_count(len(shown.users or ()))} lose what its roles alone allow"), _STAY]


_STAY = "The people themselves stay."


@require_POST
@signed_in
def bring_back(request: HttpRequest, actor: Actor, metalake_id: int) -> HttpResponse:
    """Undo a removal: whoever was removed is back with what they had, and the page says what is not as before."""
    target = located(actor, metalake_id, Kind.METALAKE)
    sort, _, id = request.POST.get("token", "").partition(":")
    try:
        if sort not in departures.MANAGING or not (id.isascii() and id.isdigit() and len(id) < 19):
            raise NotFound("There is no such removal.")
        back = departures.bring_back(actor, target.name, sort, int(id))
    except MetalakeError as failure:
        note_failure(failure)
        toasts.add(request, f"It was not undone. {failure.message}")
        return redirect("frontend:people", target.id)
    linked = _count(back.linked) if sort == "group" else _many(back.linked, "group")
    what = f"{_many(len(back.roles), 'role')}, {linked} and {_many(back.objects, 'object')}"
    says = f"{sort.capitalize()} {spelled(back.name)} is back, with {what}."
    toasts.add(request, " ".join([says, *(spelled(word) for left in back.left for word in left.split(" "))]))
    return redirect(f"frontend:{sort}", target.id, back.id)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"


def drop_role(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    role = _role(asked)
    record = roles.load_role(actor, target.name, role)
    grants = sum(len(granted.entries) for granted in record.grants)
    return Proposal(
        title=f"Drop role {role}",
        says=[f"Its {grants:,} grants end for everybody who holds it." if grants else "It carries no grant."],
        button="Drop the role",
        done=f"Role {role} is dropped.",
        changes=(Change("dropRole", role),),
        after=_list(target, "roles"),
        is_danger=True,
    )


def take_away(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
    """Remove somebody's access to an object; with `effect=deny`, lift a role's DENY for them."""
    (sort, name), is_lift = _holder(asked), asked.get("effect") == Effect.DENY
    try:
        place = read_place(asked.get("on", ""))
    except ValidationError as wrong:
        raise Invalid(" ".join(wrong.messages), kind="object") from None
    only, effect = ([asked["role"]] if asked.get("role") else []), Effect.DENY if is_lift else Effect.ALLOW
    removal = remove_access(actor, target.name, Whom(sort, name), place, effect, only)
    who, what = spelled(name), spelled(place.full_name)
    says = [f"Role {spelled(part.role)}: {part.says}" for part in removal.parts] or ["No role does that."]
    return Proposal(
        title=f"Lift what denies {who} something on {what}" if is_lift else f"Take {who}'s access to {what} away",
        says=[*says, *removal.notes],
        button="Lift it" if is_lift else "Take it away",
        done=f"{who} is denied it no more." if is_lift else f"{who}'s access to {what} is taken away.",
        changes=tuple(removal.changes),
        is_danger=True,
        lists_changes=True,
        nothing="Nothing of this can be taken here." if removal.parts or removal.notes else Proposal.nothing,
    )


def _list(target: Located, sort: str) -> str:
    return f"{reverse('frontend:people', args=[target.id])}?sort={sort}"


CHANGES = Family(
    readers={
        "assign": assign,
        "unassign": unassign,
        "put-in": put_in,
        "take-out": take_out,
        "take-away": take_away,
        "remove-user": remove,
        "remove-group": remove,
        "drop-role": drop_role,
    },
    passed_on=("user", "group", "role", "people", "on", "effect"),
    fields={
        "assign": Fields("frontend/people/role_name.html", ("role",)),
        "put-in": Fields("frontend/people/names.html", ("people",)),
        "take-away": Fields("frontend/people/place.html", ("on",)),
    },
)
