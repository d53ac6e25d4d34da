"""Completion in bash, zsh and fish, by typer's protocol: the shell asks this program, by its environment.

bash ends words at colons, and so at the separator of nested schemas: there the words are put together again, and what
stands before the last colon is left out of the answer, since bash has it on the line already.
"""

from __future__ import annotations

import io
import os
import shlex
from collections.abc import Callable
from contextlib import redirect_stdout

import typer
from typer.completion import completion_init, get_completion_script

from metalake_client.cli.command_line import Command

VARIABLE = "_GCLI_COMPLETE"
_SHELLS = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/config.fish"}


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(help="What completes commands and names in bash, zsh and fish.", no_args_is_help=True)
    app.add_typer(group, name="completion")
    for shell, file in _SHELLS.items():
        line = f"gcli completion {shell} | source" if shell == "fish" else f'eval "$(gcli completion {shell})"'
        group.command(shell, cls=Command, help=f"Print it for {shell}. In {file}: {line}")(_printing(shell))


def _printing(shell: str) -> Callable[[], None]:
    def script() -> None:
        print(get_completion_script(prog_name="gcli", complete_var=VARIABLE, shell=shell))

    return script


def is_asked() -> bool:
    return VARIABLE in os.environ


def answer(app: typer.Typer) -> int:
    """Answer a shell; returns the exit code that its protocol asks for."""
    completion_init()
    is_bash = os.environ[VARIABLE] == "complete_bash"
    before = _join_words() if is_bash else ""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            app(prog_name="gcli")
    except SystemExit as ended:
        names = (name.removeprefix(before) for name in printed.getvalue().splitlines())
        # bash puts an empty name in the place of what was typed; without any it completes files by itself
        print("\n".join(shlex.quote(name) for name in names if name) if is_bash else printed.getvalue(), end="")
        return int(ended.code or 0)
    return 1


def _join_words() -> str:
    """Undo in the environment that bash ends words at colons; what it has of the last word before its last colon."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    place = int(os.environ.get("COMP_CWORD") or 0)
    joined, last = list[str](), 0
    for number, word in enumerate(words):
        continues = number > 1 and (word == ":" or words[number - 1] == ":")
        if continues:
            joined[-1] += word
        else:
            joined.append(word)
        if number == place:
            last = len(joined) - 1
    os.environ |= {"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(last)}
    typed = joined[last] if last < len(joined) else ""
    return typed[: typed.rfind(":") + 1]
