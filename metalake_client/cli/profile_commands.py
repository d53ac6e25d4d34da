"""`gcli profile`: servers and users under names, in one file without secrets; those go to the system's keyring."""

from __future__ import annotations

from typing import Annotated

import typer

from metalake_client import profiles
from metalake_client.cli.command_line import Command
from metalake_client.cli.output import Format, print_done, print_rows
from metalake_client.cli.session import Session, prompted
from metalake_client.failures import Exit, Failure
from metalake_client.profiles import Credential, Profile

Name = Annotated[str, typer.Argument(help="The profile's name.")]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="Profiles: a server, a metalake and a user under one name.", no_args_is_help=True)
    app.add_typer(group, name="profile")
    for name, act in (("list", list_), ("set", set_), ("use", use), ("remove", remove), ("login", login)):
        group.command(name, cls=Command)(act)
    group.command("logout", cls=Command)(logout)


def list_(output: Annotated[Format, typer.Option("--output", "-o")] = Format.TABLE) -> None:
    """List the profiles; the current one is marked."""
    known, current = profiles.stored()
    rows = [{"name": name, "current": name == current, **vars(profile)} for name, profile in sorted(known.items())]
    print_rows(rows, ("name", "current", "url", "metalake", "user"), output)


def set_(
    name: Name,
    url: Annotated[str, typer.Option(help="The server's URL.")] = "",
    metalake: Annotated[str, typer.Option("--metalake", "-m", help="The metalake's name.")] = "",
    user: Annotated[str, typer.Option(help="Who asks.")] = "",
) -> None:
    """Make a profile, or change one; the first one is the current one. Secrets are no part of it."""
    known, current = profiles.stored()
    known[name] = Profile(url, metalake, user).over(known.get(name, Profile()))
    profiles.store(known, current or name)
    print_done(f"Profile {name} is in {profiles.path_of_file()}; its secret comes from METALAKE_TOKEN or a keyring.")


def use(name: Name) -> None:
    """Make a profile the current one."""
    known, _ = profiles.stored()
    _require(name, known)
    profiles.store(known, name)
    print_done(f"{name} is the current profile.")


def remove(name: Name) -> None:
    """Remove a profile."""
    known, current = profiles.stored()
    _require(name, known)
    del known[name]
    profiles.store(known, "" if current == name else current)
    print_done(f"Removed profile {name}.")


def login(
    name: Name,
    password: Annotated[bool, typer.Option("--password", help="Keep the user's password in place of a token.")] = False,
) -> None:
    """Type a token, or the user's password; the server checks it and the system's keyring stores it."""
    profile = _profile(name)
    what = "password" if password else "token"
    if password and not profile.user:
        raise Failure(f"Profile {name} names no user: gcli profile set {name} --user ...", Exit.USAGE)
    secret = prompted(f"{what.capitalize()} for {profile.url}")
    session = Session(profile)
    session.use(Credential(password=secret) if password else Credential(token=secret))
    who = session.client.get("authn", "me")["principal"]
    profiles.keep(profile, what, secret)
    print_done(f"You are {who} to {profile.url}; the keyring keeps the {what}.")


def logout(name: Name) -> None:
    """Have the keyring forget the token and the password of a profile."""
    profiles.forget(_profile(name))
    print_done(f"The keyring has nothing of profile {name} any more.")


def _profile(name: str) -> Profile:
    return profiles.chosen(Profile(), name)


def _require(name: str, known: dict[str, Profile]) -> None:
    if name not in known:
        raise Failure(f"There is no profile {name} in {profiles.path_of_file()}.", Exit.MISSING)
