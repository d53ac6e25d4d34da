"""How a function becomes a command of `gcli`: with the options that all have, and names that complete themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from metalake_client.cli.command_line import Command
from metalake_client.cli.kinds import KINDS, PEOPLE, Kind
from metalake_client.cli.output import Format, write_nowhere
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure
from metalake_client.profiles import Profile, chosen

Names = dict[str, str]


def option(name: str, type_: Any, *spellings: str, default: Any = ..., **settings: Any) -> Parameter:
    """A parameter of a command, whose default of ... says that it has to be given."""
    flags = spellings or (f"--{name.replace('_', '-')}",)
    annotation = Annotated[type_, typer.Option(*flags, **settings)]
    return Parameter(
        name, Parameter.KEYWORD_ONLY, annotation=annotation, default=Parameter.empty if default is ... else default
    )


def complete(kind: str) -> Callable[..., list[str]]:
    """Completes the name of an object or a member from the server; from nothing where it does not answer."""

    def names(context: typer.Context, incomplete: str) -> list[str]:
        try:
            session = _session_of({**context.params}, may_ask=False)
            given = {**context.params, "metalake": session.profile.metalake}
            known = names_of(session, KINDS.get(kind) or PEOPLE[kind], given, incomplete)
        except Exception:
            return []
        return [name for name in known if name.startswith(incomplete)]

    return names


def names_of(session: Session, kind: Kind, names: dict[str, Any], incomplete: str = "") -> list[str]:
    """The names in a list; of nested ones those on the level that `incomplete` has reached."""
    parent = incomplete.rpartition(session.separator)[0] if kind.is_nested else ""
    reply = session.client.get(*kind.path(names, is_list=True), parentSchema=parent or None)
    if "identifiers" in reply:
        return [each["name"] for each in reply["identifiers"]]
    return reply["names"] if "names" in reply else [each["name"] for each in reply[kind.plural]]


def name_option(kind: str, *spellings: str, default: Any = ..., **settings: Any) -> Parameter:
    """The name of an object or a member: `--kind`, beside other spellings or in their place."""
    flags = [*spellings] if settings.pop("in_place", False) else [f"--{kind}", *spellings]
    settings = {"help": f"The {kind}'s name."} | settings
    type_ = str if default is ... or isinstance(default, str) else str | None
    name = settings.pop("name", kind)
    return option(name, type_, *flags, default=default, autocompletion=complete(kind), **settings)


METALAKE = name_option("metalake", "-m", default="")
COMMON = [
    METALAKE,
    option("url", str, default="", help="The server's URL; METALAKE_URL, or else the profile's."),
    option("user", str, default="", help="Who asks; METALAKE_USER, or else the profile's."),
    option(
        "profile", str, default="", help="A profile (gcli profile list); METALAKE_PROFILE, or else the current one."
    ),
    option("output", Format, "--output", "-o", default=Format.TABLE, help="How to print."),
]
FOR = {
    kind: name_option(
        kind, f"--for-{kind}", in_place=True, name=f"for_{kind}", default="", help=f"The {kind} in question."
    )
    for kind in PEOPLE
}
"""Whom a question or a change is about: one spelling in all commands."""
YES = option("yes", bool, "--yes", "-y", default=False, help="Do not ask.")
_NOTHING_ASKED = option("yes", bool, "--yes", "-y", default=False, hidden=True)
"""For scripts, which give it to every command: also to one that asks nothing."""
LIMIT = option("limit", int | None, default=None, min=1, help="At most so many.")
PLACE = [
    option("type_", str, "--type", help="metalake, catalog, schema, table, view, ..."),
    option("object_", str, "--object", help="Its full name below the metalake, as in lake.sales:emea.orders."),
]
PLACE_OR_NONE = [
    option("type_", str | None, "--type", default=None, help="metalake, catalog, schema, ...; all if none."),
    option("object_", str | None, "--object", default=None, help="Its full name below the metalake."),
]
PROPERTIES_FILE = option("properties_file", Path | None, default=None, help="A file of key=value lines, or JSON.")
FILE_OF_PROPERTIES = [
    option(
        "properties", list[str], "--properties", "-p", default=(), help='key=value,other="with, comma"; repeatable.'
    ),
    PROPERTIES_FILE,
]


def family(app: typer.Typer, name: str, help: str) -> typer.Typer:
    """A new group of commands."""
    group = typer.Typer(help=help, no_args_is_help=True)
    app.add_typer(group, name=name)
    return group


def add(
    app: typer.Typer,
    name: str,
    act: Callable[..., None],
    options: Sequence[Parameter] = (),
    *,
    help: str,
    in_metalake: bool = True,
) -> None:
    """Add a command that calls `act` with the session and its options."""
    shared = [*(COMMON if in_metalake else COMMON[1:]), _NOTHING_ASKED]
    own = {each.name for each in options}

    def command(**given: Any) -> None:
        session = _session_of(given)
        try:
            act(session, **{name: value for name, value in given.items() if name in own})
        except BrokenPipeError:
            write_nowhere()
        except KeyboardInterrupt:
            raise Failure("Interrupted.", Exit.INTERRUPTED) from None
        except (Failure, KeyError) as wrong:
            raise session.explained(wrong) from None

    parameters = [*options, *(each for each in shared if each.name not in own)]
    app.command(name, cls=Command, help=help)(with_options(command, parameters))


def with_options(function: Callable[..., None], parameters: Sequence[Parameter]) -> Callable[..., None]:
    """The function, as typer reads the options that it takes."""
    function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    return function


def subject_of(given: dict[str, str]) -> tuple[str, str]:
    """The one whom a --for-user, --for-group or --for-role names: the kind, and the name. Raises Failure."""
    named = [(name.removeprefix("for_"), value) for name, value in given.items() if name.startswith("for_") and value]
    if len(named) != 1:
        spelled = " and ".join(f"--{each.replace('_', '-')}" for each in given if each.startswith("for_"))
        raise Failure(f"Name one of {spelled}.", Exit.USAGE)
    return named[0]


def _session_of(given: dict[str, Any], *, may_ask: bool = True) -> Session:
    profile = Profile(given.get("url") or "", given.get("metalake") or "", given.get("user") or "")
    output = Format(given.get("output") or Format.TABLE)
    return Session(chosen(profile, given.get("profile") or ""), output, may_ask, names_user=bool(profile.user))
