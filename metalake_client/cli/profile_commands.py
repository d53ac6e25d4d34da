"""`gcli profile`: servers, metalakes and users that one need not write each time."""

from __future__ import annotations

from typing import Annotated

import typer

from metalake_client import profiles
from metalake_client.cli.output import Format, print_done, print_rows
from metalake_client.failures import Exit, Failure
from metalake_client.profiles import Profile

app = typer.Typer(help="Profiles: a server, a metalake and a user under one name.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The profile's name.")]


@app.command("list")
def list_(output: Annotated[Format, typer.Option("--output", "-o")] = Format.TABLE) -> None:
    """List the profiles; the current one is marked."""
    known, current = profiles.stored()
    rows = [{"name": name, "current": name == current, **vars(profile)} for name, profile in sorted(known.items())]
    print_rows(rows, ("name", "current", "url", "metalake", "user"), output)


@app.command("set")
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


@app.command()
def use(name: Name) -> None:
    """Make a profile the current one."""
    known, _ = profiles.stored()
    _require(name, known)
    profiles.store(known, name)
    print_done(f"{name} is the current profile.")


@app.command()
def remove(name: Name) -> None:
    """Remove a profile."""
    known, current = profiles.stored()
    _require(name, known)
    del known[name]
    profiles.store(known, "" if current == name else current)
    print_done(f"Removed profile {name}.")


def _require(name: str, known: dict[str, Profile]) -> None:
    if name not in known:
        raise Failure(f"There is no profile {name} in {profiles.path_of_file()}.", Exit.MISSING)
