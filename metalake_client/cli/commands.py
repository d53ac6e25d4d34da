"""How a function becomes a command of `gcli`: with the options that all have, and names that complete themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from metalake_client.cli.kinds import KINDS, Kind
from metalake_client.cli.output import Format, write_nowhere
from metalake_client.cli.session import Session
from metalake_client.profiles import Profile, chosen

Names = dict[str, str]


def option(name: str, type_: Any, *spellings: str, default: Any = ..., **settings: Any) -> Parameter:
    """A parameter of a command, whose default of ... says that it has to be given."""
    flags = spellings or (f"--{name.replace('_', '-')}",)
    annotation = Annotated[type_, typer.Option(*flags, **settings)]
    return Parameter(
        name, Parameter.KEYWORD_ONLY, annotation=annotation, default=Parameter.empty if default is ... else default
    )


def _complete(kind: str) -> Callable[..., list[str]]:
    """Completes the name of an object from the server; from nothing where it does not answer."""

    def names(context: typer.Context, incomplete: str) -> list[str]:
        try:
            session = _session_of({**context.params}, may_ask=False)
            known = names_of(session, KINDS[kind], {**context.params, "metalake": session.profile.metalake})
        except Exception:
            return []
        return [name for name in known if name.startswith(incomplete)]

    return names


def names_of(session: Session, kind: Kind, names: dict[str, Any]) -> list[str]:
    reply = session.client.get(*kind.path(names, is_list=True))
    if kind.name == "metalake":
        return [each["name"] for each in reply["metalakes"]]
    return [each["name"] for each in reply["identifiers"]]


def name_option(kind: str, *others: str) -> Parameter:
    return option(kind, str, f"--{kind}", *others, help=f"The {kind}'s name.", autocompletion=_complete(kind))


def metalake_option() -> Parameter:
    return option(
        "metalake",
        str,
        "--metalake",
        "-m",
        default="",
        help="The metalake's name.",
        autocompletion=_complete("metalake"),
    )


COMMON = [
    option("url", str, default="", help="The server's URL; METALAKE_URL, or else the profile's."),
    option("user", str, default="", help="Who asks; METALAKE_USER, or else the profile's."),
    option(
        "profile", str, default="", help="A profile (gcli profile list); METALAKE_PROFILE, or else the current one."
    ),
    option("output", Format, "--output", "-o", default=Format.TABLE, help="How to print."),
]
YES = option("yes", bool, "--yes", "-y", default=False, help="Do not ask.")
FILE_OF_PROPERTIES = [
    option(
        "properties", list[str], "--properties", "-p", default=(), help='key=value,other="with, comma"; repeatable.'
    ),
    option("properties_file", Path | None, default=None, help="A file of key=value lines, or a JSON object."),
]


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
    shared = [metalake_option(), *COMMON] if in_metalake else COMMON
    own = {each.name for each in options}

    def command(**given: Any) -> None:
        try:
            act(_session_of(given), **{name: value for name, value in given.items() if name in own})
        except BrokenPipeError:
            write_nowhere()

    parameters = [*options, *(each for each in shared if each.name not in own)]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__doc__ = help
    app.command(name)(command)


def _session_of(given: dict[str, Any], *, may_ask: bool = True) -> Session:
    profile = Profile(given.get("url") or "", given.get("metalake") or "", given.get("user") or "")
    return Session(chosen(profile, given.get("profile") or ""), given.get("output") or Format.TABLE, may_ask)
