"""`gcli`: its commands together, and how a run of it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from metalake_client.cli import access, outside, people, profile_commands, views
from metalake_client.cli.kinds import KINDS
from metalake_client.cli.objects import add_kind
from metalake_client.cli.output import write_nowhere
from metalake_client.failures import Exit, Failure

app = typer.Typer(name="gcli", help="The command line of Metalake.", no_args_is_help=True, rich_markup_mode=None)
_groups = {name: add_kind(app, kind) for name, kind in KINDS.items()}
outside.add_to(_groups["catalog"])
views.add_to(_groups["view"])
people.add_to(app)
access.add_to(app)
app.add_typer(profile_commands.app, name="profile")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code (failures.Exit). An error is one line on the error stream."""
    try:
        app(args=arguments, prog_name="gcli", standalone_mode=False)
        sys.stdout.flush()
    except Failure as failure:
        return _ended(str(failure), failure.exit_code)
    except TyperException as wrong:
        return _misused(wrong)
    except (typer.Abort, KeyboardInterrupt):
        return _ended("Interrupted.", Exit.INTERRUPTED)
    except KeyError as absent:
        line = f"The server's answer has no {absent}: is it of another version than this gcli?"
        return _ended(line, Exit.FAILED)
    except BrokenPipeError:
        write_nowhere()
    return Exit.DONE


def _misused(wrong: TyperException) -> Exit:
    """A command line that is none; without any argument it is answered with the help, which was printed or is here."""
    line, context = wrong.format_message().strip(), getattr(wrong, "ctx", None)
    if not line or "\n" in line:
        print(line)
        return Exit.USAGE
    where = context.command_path if context else "gcli"
    return _ended(f"{line.rstrip('.')}. See {where} --help.", Exit.USAGE)


def _ended(line: str, code: Exit) -> Exit:
    print(f"gcli: {' '.join(line.split())}", file=sys.stderr)
    return code
