"""The command groups and their modules; each is imported on demand, so that `--help` is fast."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from metalake_client.cli.kinds import KINDS
from metalake_client.failures import Exit, Failure

_CLI = "metalake_client.cli"

FAMILIES = {
    "user": ("people", "Users of a metalake, and invitations."),
    "group": ("people", "Groups of a metalake, and their users."),
    "role": ("people", "Roles of a metalake, and who holds them."),
    "grant": ("grants", "What roles may do, on any level."),
    "owner": ("grants", "Owners, who may do everything with what is theirs."),
    "access": ("access", "Who may what, why and since when; and grants as code."),
    "token": ("tokens", "Personal tokens, for programs."),
    "job": ("jobs", "Jobs: templates, runs and schedules."),
    "system": ("system", "The catalog of what jobs find out."),
    "engine": ("engine", "What engines need to use the catalogs of a metalake, as files."),
    "search": ("server", "Search objects, roles, users and groups."),
    "server": ("server", "The server: its version, its settings, and who you are to it."),
    "profile": ("profile_commands", "Profiles: a server, a metalake and a user under one name."),
    "completion": ("completion", "What completes commands and names in bash, zsh and fish."),
}
"""Groups other than kinds: the module whose `add_to` adds the group, and its line of the help."""

BESIDE_VERBS = {
    "catalog": ("outside", "places"),
    "table": ("tables",),
    "view": ("views",),
}
"""Additional commands of a kind: modules whose `add_to_<kind>` adds them to its group."""


class Family(TyperGroup):
    """A group that creates its commands lazily: creating all takes as long as a request."""

    def __init__(self, info: Any, params: list[Any]) -> None:
        self.typer = info.typer_instance
        below = [*self.typer.registered_groups, *self.typer.registered_commands]
        self.names = [str(each.name) for each in below]
        help = self.typer.info.help
        super().__init__(name=info.name, help=help, no_args_is_help=True, rich_markup_mode=None, params=params)

    def list_commands(self, ctx: Any) -> list[str]:
        return self.names

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.names:
            return None
        return _named(self.typer, cmd_name, self.params)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if word in self.names or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(word, self.names)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise Failure(f"There is no command {word!r}.{hint} See {ctx.command_path} --help.", Exit.USAGE)


def _named(app: typer.Typer, name: str, params: list[Any]) -> Any:
    """One of the groups or commands of an app; `params` are the options of a group, which all commands have."""
    groups = {each.name: each for each in app.registered_groups}
    if name in groups:
        return Family(groups[name], params)
    one = typer.Typer(rich_markup_mode=None, add_completion=False)
    one.registered_commands = [each for each in app.registered_commands if each.name == name]
    return typer.main.get_command(one)


class Families(TyperGroup):
    """The commands of `gcli`, created lazily."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*KINDS, *FAMILIES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in KINDS and cmd_name not in FAMILIES:
            return None
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        if cmd_name in KINDS:
            group = import_module(f"{_CLI}.objects").add_kind(app, KINDS[cmd_name])
            for module in BESIDE_VERBS.get(cmd_name, ()):
                getattr(import_module(f"{_CLI}.{module}"), f"add_to_{cmd_name}")(group)
        else:
            import_module(f"{_CLI}.{FAMILIES[cmd_name][0]}").add_to(app)
        return _named(app, cmd_name, [each for each in self.params if each.name != "version"])

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        lines = [(name, kind.help) for name, kind in KINDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*lines, *((name, line) for name, (_, line) in FAMILIES.items())])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word, known = args[0], self.list_commands(ctx)
        if word in known or word.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(word, known)
        hint = f"Did you mean {' or '.join(near)}?" if near else "A newer gcli may, if the server does."
        raise Failure(f"This gcli knows no kind and no command {word!r}. {hint} See gcli --help.", Exit.USAGE)
