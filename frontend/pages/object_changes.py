"""Changes of an object itself: its owner, comment, properties, name and place, and its end. Each is previewed.

A form knows what it was opened on (`was`): what somebody else changed meanwhile is not overwritten unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from django.forms import ValidationError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from access.plans.handing import Handing, preview_owner
from authz import operations, policy
from authz.actor import Actor
from authz.objects import by_ids
from authz.operations import FAMILIES, OPERATIONS, Operation
from authz.services import owners
from catalogs import secrets
from catalogs.services import browsing, catalogs, metalakes, schema_paths, schemas, tables
from catalogs.services.alterations import Alteration
from catalogs.services.description import Description, describe
from catalogs.stores import store_for
from formats.native.tables import TableUpdatesRequest
from formats.native.views import ViewUpdatesRequest
from frontend.confusables import spelled
from frontend.forms.properties import PropertiesField, as_lines
from frontend.page_decorators import home, keeps_form, require, signed_in
from frontend.pages.people import listed
from frontend.proposals import Asked, Family, Fields, Proposal
from metalake.errors import Conflict, Forbidden, InUse, Invalid, Unsupported
from metalake.full_names import dotted
from metalake.kinds import CONTAINERS, Kind
from metalake.lineage import Address, Located
from metalake.models import Securable
from metalake.wire import read
from outside import monitoring
from views_mgmt.services import lineage, views

T = TypeVar("T")
SHORT = 300  # characters of a text in a preview
PLACE = re.compile(r"^updates[\w.\[\]]*: ")
MOST_INSIDE = 100  # objects are looked at


@require_http_methods(["GET", "POST"])
@keeps_form
@signed_in
def _change(request: HttpRequest, actor: Actor, object_id: int) -> HttpResponse:
    return CHANGES.answer(request, actor, browsing.locate(actor, object_id))


_change_secrets = sensitive_post_parameters()(_change)


def change(request: HttpRequest, object_id: int) -> HttpResponse:
    """Show what a change of an object would do, or make it. Properties may be secret, so no URL ever gets them."""
    return (_change_secrets if request.POST.get("what") == "properties" else _change)(request, object_id)


# What each kind has, and the services behind it


def _as_table(actor: Actor, on: Located, alteration: Alteration) -> object:
    updates = read(TableUpdatesRequest, {"updates": _updates(alteration)}).updates
    return _without_place(lambda: tables.alter_native_table(actor, on.address, updates))


def _as_view(actor: Actor, on: Located, alteration: Alteration) -> object:
    updates = read(ViewUpdatesRequest, {"updates": _updates(alteration)}).updates
    return _without_place(lambda: views.alter_view(actor, on.address, updates))


def _without_place(alter: Callable[[], object]) -> object:
    """Alter it; what is refused is said without its place in the request, which is ours."""
    try:
        return alter()
    except (Invalid, Unsupported) as refusal:
        raise type(refusal)(PLACE.sub("", refusal.message), kind=refusal.kind) from None


def _updates(alteration: Alteration) -> list[dict[str, Any]]:
    """The native API's updates for an alteration."""
    comment = {"@type": "updateComment", "newComment": alteration.comment}
    properties = (
        {"@type": "removeProperty", "property": key}
        if value is None
        else {"@type": "setProperty", "property": key, "value": value}
        for key, value in alteration.properties
    )
    return [*([comment] if alteration.sets_comment else []), *properties]


ALTER: Mapping[Kind, Callable[[Actor, Located, Alteration], object]] = {
    Kind.METALAKE: lambda actor, on, changes: metalakes.alter_metalake(actor, on.name, changes),
    Kind.CATALOG: lambda actor, on, changes: catalogs.alter_catalog(actor, on.metalake.name, on.name, changes),
    Kind.SCHEMA: lambda actor, on, changes: schemas.alter_schema(actor, on.address, changes),
    Kind.TABLE: _as_table,
    Kind.VIEW: _as_view,
}
RENAME: Mapping[Kind, Callable[[Actor, Address, Address], object]] = {
    Kind.TABLE: tables.rename_table,
    Kind.VIEW: views.rename_view,
}
DROP: Mapping[Kind, Callable[[Actor, Located, bool], object]] = {
    Kind.METALAKE: lambda actor, on, force: metalakes.drop_metalake(actor, on.name, force),
    Kind.CATALOG: lambda actor, on, force: catalogs.drop_catalog(actor, on.metalake.name, on.name, force),
    Kind.SCHEMA: lambda actor, on, force: schemas.drop_schema(actor, on.address, cascade=force),
    Kind.TABLE: lambda actor, on, force: tables.drop_table(actor, on.address),
    Kind.VIEW: lambda actor, on, force: views.drop_view(actor, on.address),
}
SWITCH: Mapping[Kind, Callable[[Actor, Located, bool], object]] = {
    Kind.METALAKE: lambda actor, on, enabled: metalakes.set_metalake_enabled(actor, on.name, enabled),
    Kind.CATALOG: lambda actor, on, enabled: catalogs.set_catalog_enabled(actor, on.metalake.name, on.name, enabled),
}


def _rows(verb: str, kinds: Iterable[Kind]) -> dict[Kind, Operation]:
    return {kind: OPERATIONS[f"{verb}_{kind}"] for kind in kinds}


ASKS: Mapping[str, Mapping[Kind, Operation]] = {
    "owner": FAMILIES["own"],
    "comment": _rows("alter", ALTER),
    "properties": _rows("alter", [kind for kind in ALTER if kind is not Kind.CATALOG]),  # a catalog has its settings
    "rename": _rows("alter", [kind for kind in ALTER if kind is not Kind.SCHEMA]),
    "move": _rows("move", RENAME),
    "enable": _rows("enable", SWITCH),
    "disable": _rows("enable", SWITCH),
    "drop": _rows("drop", DROP),
    "purge": _rows("drop", [Kind.TABLE]),
}
"""The operation that each change asks, by the kinds that have it."""
WHILE_DISABLED = {
    Kind.METALAKE: {"comment", "properties", "rename", "enable", "drop"},
    Kind.CATALOG: {"owner", "enable", "drop"},
}


def offered(actor: Actor, target: Located) -> list[str]:
    """The changes that the actor may make of this object, as far as it is known before asking its store."""
    return [what for what in ASKS if _is_possible(target, what) and _may(actor, target, what)]


def _may(actor: Actor, target: Located, what: str) -> bool:
    row = ASKS[what].get(target.kind)
    return row is not None and policy.permits(actor, row, target)


def _is_possible(target: Located, what: str) -> bool:
    if target.disabled and what not in WHILE_DISABLED.get(target.kind, ()):
        return False
    if what == "purge":
        return target.kind is Kind.TABLE and not store_for(target, Kind.CATALOG).is_mirrored
    return what != "enable" or bool(target.disabled)


class Danger(NamedTuple):
    """A row of the danger zone: what is asked, its name on a button, and what it does."""

    what: str
    title: str
    says: str

    @property
    def fields(self) -> str:
        """The template of its fields, if it has some."""
        return f"frontend/objects/{self.what}.html" if self.what in _FIELDS else ""

    @property
    def is_harmful(self) -> bool:
        return self.what in ("drop", "purge", "disable")


DANGERS = (
    Danger("rename", "Rename", "Grants and history stay. What uses the old name no longer finds it."),
    Danger(
        "move", "Move", "To another schema of its catalog. Its own grants stay, those of its schema do not reach it."
    ),
    Danger("disable", "Disable", "Nothing in it answers until it is enabled again."),
    Danger("enable", "Enable", "It answers again, to everybody with access."),
    Danger("drop", "Drop", "What is in the way is named first."),
    Danger("purge", "Drop and delete its files", "The files cannot be brought back."),
)


def editing(actor: Actor, target: Located, about: Description) -> dict[str, Any]:
    """The context of an overview's forms: `forms` are the values that each begins with, by what it changes."""
    may = offered(actor, target)
    if about.notice or about.is_path:  # what it has is not known
        may = [what for what in may if what not in ("comment", "properties", "owner")]
    lines = as_lines(about.properties)
    forms = {
        "owner": {"was": f"{'group' if about.owner_is_group else 'user'}:{about.owner}"},
        "comment": {"was": about.comment, "comment": about.comment},
        "properties": {"was": lines.text, "lines": lines.text, "raw": ", ".join(map(spelled, lines.raw))},
        "rename": {"was": target.name, "name": target.name},
        "move": {"schema": target.path.logical() if target.kind in RENAME else ""},
    }
    return {
        "forms": {what: values for what, values in forms.items() if what in may},
        "dangers": [danger for danger in DANGERS if danger.what in may],
    }


# The readers

Read = Callable[[Actor, Located, Asked], Proposal]
READERS: dict[str, Callable[[HttpRequest, Actor, Located, Asked], Proposal]] = {}


def _reads(what: str) -> Callable[[Read], Read]:
    """Declare the reader of a change, which is asked only for those who may make it."""

    def declare(reader: Read) -> Read:
        def checked(request: HttpRequest, actor: Actor, target: Located, asked: Asked) -> Proposal:
            row = ASKS[what].get(target.kind)
            if row is None:
                raise Invalid(f"There is no such change of a {_word(target)}.")
            require(request, row, target)
            proposal = _in_place(lambda: reader(actor, target, asked))
            return replace(proposal, make=partial(_in_place, proposal.make)) if proposal.make else proposal

        READERS[what] = checked
        return reader

    return declare


def _in_place(act: Callable[[], T]) -> T:
    """Do it; what is forbidden of a change that the actor may make otherwise is said in the form."""
    try:
        return act()
    except Forbidden as refusal:
        raise Invalid(refusal.message, kind=refusal.kind) from None


def _word(target: Located) -> str:
    return target.kind.replace("_", " ")


def _named(target: Located) -> str:
    return f"{_word(target)} {spelled(target.name)}"


def _capital(target: Located) -> str:
    named = _named(target)
    return f"{named[0].upper()}{named[1:]}"


def _page(target: Located) -> str:
    return reverse("frontend:object", args=[target.id])


def _plain(text: str) -> str:
    """The text with line breaks as they are stored; browsers send others."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _short(text: str) -> str:
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


@_reads("owner")
def read_owner(actor: Actor, target: Located, asked: Asked) -> Proposal:
    name, type_ = asked.get("owner", "").strip(), "group" if asked.get("type") == "group" else "user"
    before = owners.owner_of(target)
    if asked.get("was", "") not in ("", _party(before)):
        asked["was"] = _party(before)
        raise Conflict(f"Somebody else changed the owner meanwhile: it is {before.type} {spelled(before.name)} now.")
    if not name:
        raise Invalid("Name the new owner.")
    handing = preview_owner(actor, target.metalake.name, target, name, type_)
    if handing.is_same:
        raise Invalid(f"{spelled(name)} owns it already.")
    who = f"{type_} {spelled(name)}"
    everybody = f"Everybody in {who}" if type_ == "group" else spelled(name)
    return Proposal(
        title=f"Make {who} the owner of {_named(target)}",
        says=[f"{everybody} may then do everything with it and with what is below it.", _loss(actor, target, handing)],
        button="Hand it over",
        done=f"{spelled(name)} owns {_named(target)} now.",
        make=lambda: owners.set_owner(actor, target.metalake.name, target.kind, dotted(target.full_name), name, type_),
        after=None if policy.sees(actor, handing.handed) else home(),
        is_danger=True,
    )


def _party(owner: owners.Owner) -> str:
    return f"{owner.type}:{owner.name}"


def _loss(actor: Actor, target: Located, handing: Handing) -> str:
    """What the former owner loses."""
    before, owns = handing.before, handing.former_owns
    is_self = before.type == "user" and before.name == actor.name
    who = "you" if is_self else spelled(before.name)
    if owns is not None:
        in_group = "are in the group that owns it then"
        why = in_group if owns.id == target.id else f"own {owns.kind} {spelled(owns.name)} above it"
        return f"You lose nothing: you {why}." if is_self else f"{who} loses nothing: they {why}."
    if handing.former_keeps:
        keeps = f"Grants still give {who} {', '.join(handing.former_keeps)}."
    else:
        keeps = f"No grant gives {who} anything on it."
    back = " Only the new owner, or who owns something above it, can give it back to you." if is_self else ""
    begins = "You lose" if is_self else f"{who} loses"
    return f"{begins} what only its owner may: to change it, drop it, hand it on and grant on it. {keeps}{back}"


def _read(actor: Actor, target: Located) -> Description:
    """Raises Conflict if what it has now cannot be read."""
    about = describe(actor, target)
    if about.notice:
        raise Conflict(about.notice)
    return about


@_reads("comment")
def read_comment(actor: Actor, target: Located, asked: Asked) -> Proposal:
    now, wanted = _plain(_read(actor, target).comment), _plain(asked.get("comment", "")).strip()
    if _plain(asked.get("was", "")) != now:
        asked["was"] = now
        reads = f"It reads now: {_short(now)}" if now else "There is none now."
        raise Conflict(f"Somebody else changed the comment meanwhile. {reads}")
    if wanted == now.strip():
        raise Invalid("It has this comment already: nothing changes.")
    return Proposal(
        title=f"Change the comment of {_named(target)}",
        says=[
            f"Before: {_short(now)}" if now else "It has none now.",
            f"After: {_short(wanted)}" if wanted else "It will have none.",
        ],
        button="Change it",
        done=f"The comment of {_named(target)} is changed.",
        make=partial(ALTER[target.kind], actor, target, Alteration(comment=wanted or None, sets_comment=True)),
    )


@_reads("properties")
def read_properties(actor: Actor, target: Located, asked: Asked) -> Proposal:
    """The lines are compared with those that the form was opened on, so only what was typed changes."""
    now = _read(actor, target).properties
    was, wanted, raw = _read_lines(asked.get("was", "")), _read_lines(asked.get("lines", "")), as_lines(now).raw
    if typed := [key for key in wanted if key in raw]:
        raise Invalid(f"{listed(typed)} has a value that no line can hold: change it over the API.")
    changed = {key: wanted.get(key) for key in {**was, **wanted} if wanted.get(key) != was.get(key)}
    changed = {key: value for key, value in changed.items() if value != now.get(key)}
    if moved := [key for key in changed if was.get(key) != now.get(key)]:
        others = {key: value for key, value in was.items() if key not in moved}
        asked["was"] = as_lines(others | {key: now[key] for key in moved if key in now}).text
        is_now = "; ".join(f"{spelled(key)} is {_short(now[key]) if key in now else 'gone'}" for key in moved)
        raise Conflict(f"Somebody else changed what you changed, too: {is_now}. Your lines are as you typed them.")
    if not changed:
        raise Invalid("No line is different: nothing changes.")
    return Proposal(
        title=f"Change properties of {_named(target)}",
        says=[_difference(key, now.get(key), value) for key, value in sorted(changed.items())],
        button="Change them",
        done=f"Properties of {_named(target)} are changed.",
        make=partial(ALTER[target.kind], actor, target, Alteration(properties=tuple(sorted(changed.items())))),
    )


def _read_lines(text: str) -> dict[str, str]:
    try:
        return PropertiesField().clean(text)
    except ValidationError as wrong:
        raise Invalid(" ".join(wrong.messages)) from None


def _difference(key: str, before: str | None, after: str | None) -> str:
    if after is None:
        return f"{spelled(key)} is removed; it was {_short(before or '')}"
    shown = _short(secrets.mask({key: after})[key])
    return f"{spelled(key)} is new: {shown}" if before is None else f"{spelled(key)}: {_short(before)} becomes {shown}"


@_reads("rename")
def read_rename(actor: Actor, target: Located, asked: Asked) -> Proposal:
    name = asked.get("name", "").strip()
    if asked.get("was", "") not in ("", target.name):
        asked["was"] = target.name
        raise Conflict(f"Somebody else renamed it meanwhile: it is {spelled(target.name)} now.")
    if not name or name == target.name:
        raise Invalid("It has that name already." if name else "Type the new name.")
    make = partial(ALTER[target.kind], actor, target, Alteration(new_name=name))
    if target.kind in RENAME:
        make = partial(RENAME[target.kind], actor, target.address, replace(target.address, leaf=name))
    return Proposal(
        title=f"Rename {_named(target)} to {spelled(name)}",
        says=[
            "Its grants, owner and history stay.",
            "Queries, jobs and engines that use the old name no longer find it.",
            *_readers(actor, target),
        ],
        button="Rename it",
        done=f"{_capital(target)} is {spelled(name)} now.",
        make=make,
        after=_page(target),
    )


@_reads("move")
def read_move(actor: Actor, target: Located, asked: Asked) -> Proposal:
    typed = asked.get("schema", "").strip()
    if not typed:
        raise Invalid("Name the schema to move it to.")
    path = schema_paths.path_in(replace(target, nodes=target.nodes[:2]), typed)
    if path.segments == target.path.segments:
        raise Invalid(f"It is in schema {spelled(typed)} already.")
    here, there = spelled(target.path.logical()), spelled(path.logical())
    return Proposal(
        title=f"Move {_named(target)} to schema {there}",
        says=[
            "Its own grants, owner and history stay.",
            f"Grants on schema {here} no longer reach it, those on {there} do.",
            "Queries, jobs and engines that use the old name no longer find it.",
            *_readers(actor, target),
        ],
        button="Move it",
        done=f"{_capital(target)} is in schema {there} now.",
        make=partial(RENAME[target.kind], actor, target.address, replace(target.address, schema=path.segments)),
        after=_page(target),
        is_danger=True,
    )


def _readers(actor: Actor, target: Located) -> list[str]:
    """Which views read it, of those that the actor sees."""
    if target.kind not in RENAME or target.disabled:
        return []
    if not policy.permits(actor, operations.load_of(target.kind), target):
        return []
    names = {dotted(link.view.full_name) for link in lineage.readers_of(actor, target.address) if link.level == 1}
    return [f"Views that read it stop working: {listed(sorted(names))}."] if names else []


@_reads("disable")
def read_disable(actor: Actor, target: Located, asked: Asked) -> Proposal:
    rights = ["Nobody can change rights, users or roles in it meanwhile."] if target.kind is Kind.METALAKE else []
    return Proposal(
        title=f"Disable {_named(target)}",
        says=[
            "Engines and people get an error for everything in it, until it is enabled again.",
            *rights,
            "Grants, owners, metadata and files stay as they are.",
        ],
        button="Disable it",
        done=f"{_capital(target)} is disabled.",
        make=partial(SWITCH[target.kind], actor, target, False),
        is_danger=True,
    )


@_reads("enable")
def read_enable(actor: Actor, target: Located, asked: Asked) -> Proposal:
    return Proposal(
        title=f"Enable {_named(target)}",
        says=["It answers again, to everybody who has access."],
        button="Enable it",
        done=f"{_capital(target)} is enabled.",
        make=partial(SWITCH[target.kind], actor, target, True),
    )


@_reads("drop")
def read_drop(actor: Actor, target: Located, asked: Asked) -> Proposal:
    """Dropping a container that is in use or not empty takes its name, typed."""
    typed, inside = asked.get("all", "").strip(), _inside(actor, target)
    _require_settled(actor, target)
    obstacles = []
    if target.kind in SWITCH and target.disabled != target.kind:
        obstacles.append("It is in use. Disable it first, so that nothing reads or writes in it any more.")
    if inside:
        obstacles.append(f"It is not empty. In it: {listed(inside)}.")
    if obstacles and typed != target.name:
        wrong = [f"“{spelled(_short(typed))}” is not its name."] if typed else []
        return Proposal(
            title=f"Drop {_named(target)} with everything in it",
            says=[*obstacles, *wrong],
            button="Look at what would be dropped",
            done="",
            needs="frontend/objects/all.html",
        )
    return _dropping(
        actor,
        target,
        title=f"Drop {_named(target)}{' with everything in it' if obstacles else ''}",
        says=[f"Dropped with it: {listed(inside)}, and all below."] if inside else [],
        button="Drop it",
        make=partial(DROP[target.kind], actor, target, bool(obstacles)),
    )


@_reads("purge")
def read_purge(actor: Actor, target: Located, asked: Asked) -> Proposal:
    return _dropping(
        actor,
        target,
        title=f"Drop {_named(target)} and delete its files",
        says=["Its files are deleted in the background. Nothing brings them back."],
        button="Drop it and delete its files",
        make=partial(tables.drop_table, actor, target.address, purge=True),
    )


def _dropping(
    actor: Actor, target: Located, *, title: str, says: list[str], button: str, make: Callable[[], object]
) -> Proposal:
    if target.kind is Kind.CATALOG:
        says = [*says, "Files stay where they are, and so does what another system holds."]
    elif target.kind in (Kind.SCHEMA, Kind.TABLE) and store_for(target, Kind.CATALOG).is_mirrored:
        says = [*says, "It is dropped in the catalog's own system, too."]
    elif target.kind is Kind.TABLE and not says:
        says = ["Its files stay where they are."]
    above = target.above() if len(target.nodes) > 1 else None
    return Proposal(
        title=title,
        says=[*says, "The grants on it end. This cannot be undone.", *_readers(actor, target)],
        button=button,
        done=f"{_capital(target)} is dropped.",
        make=make,
        after=_page(above) if above and policy.sees(actor, above) else home(),
        is_danger=True,
    )


def _require_settled(actor: Actor, target: Located) -> None:
    """Raise InUse, naming the writes of an outside catalog that have not ended."""
    if target.kind is not Kind.CATALOG or not monitoring.may_watch(actor, target):
        return
    watch = monitoring.watch(actor, target)
    if waiting := [*watch.stuck, *watch.under_way]:
        names = listed([f"{intent.verb.replace('_', ' ')} {intent.full_name}" for intent in waiting])
        raise InUse(
            f"It cannot be dropped while writes have not ended: {names}. Those that are stuck wait for a decision on "
            "the catalog's page."
        )


def _inside(actor: Actor, target: Located) -> list[str]:
    """What stands directly in a container, of what the actor may see."""
    if target.kind not in CONTAINERS:
        return []
    rows = Securable.objects.filter(parent_id=target.id).order_by("kind", "name")
    if target.kind is not Kind.SCHEMA:
        rows = rows.filter(kind__in=(Kind.CATALOG, Kind.SCHEMA))
    located = by_ids(rows.values_list("pk", flat=True)[:MOST_INSIDE])
    return sorted(f"{on.kind} {on.name}" for on in located.values() if policy.sees(actor, on))


_FIELDS = {
    "owner": ("owner", "type", "was"),
    "comment": ("comment", "was"),
    "properties": ("lines", "was"),
    "rename": ("name", "was"),
    "move": ("schema",),
}
CHANGES = Family(
    readers=READERS,
    passed_on=("owner", "type", "comment", "lines", "name", "schema", "all", "was"),
    fields={what: Fields(f"frontend/objects/{what}.html", names) for what, names in _FIELDS.items()},
)
