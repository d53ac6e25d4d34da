"""`gcli`: its commands together, and how a run of it ends."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from metalake_client.cli import completion
from metalake_client.cli.commands import COMMON, option, with_options
from metalake_client.cli.compatibility import WIRE
from metalake_client.cli.groups import Families
from metalake_client.cli.output import plain, write_nowhere
from metalake_client.failures import Exit, Failure

app = typer.Typer(
    cls=Families, name="gcli", help="The command line of Metalake.", no_args_is_help=True, rich_markup_mode=None,
    add_completion=False, pretty_exceptions_enable=False,
)  # fmt: skip


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib import metadata

        try:
            ours = metadata.version("metalake-client")
        except ImportError:
            ours = "of a checkout"
        print(f"gcli {ours}, for version {WIRE} of the wire")
        raise typer.Exit


VERSION = option(
    "version", bool, "--version", is_eager=True, callback=_print_version, default=False, help="Show gcli's version."
)
app.callback(help=app.info.help)(with_options(lambda **_: None, [VERSION, *COMMON]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code (failures.Exit). An error is one line on the error stream."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # where the terminal lacks a character, it is spelled
    collects = gc.isenabled()
    gc.disable()  # for the second that this takes: looking through 10,000 rows for garbage would double their time
    try:
        if completion.is_asked():
            return completion.answer(app)
        ended = app(args=arguments, prog_name="gcli", standalone_mode=False)
        sys.stdout.flush()
        if ended == Exit.INTERRUPTED:
            return _ended("Interrupted.", Exit.INTERRUPTED)
    except Failure as failure:
        return _ended(str(failure), failure.exit_code)
    except TyperException as wrong:
        return _misused(wrong)
    except (typer.Abort, KeyboardInterrupt):
        return _ended("Interrupted.", Exit.INTERRUPTED)
    except BrokenPipeError:
        write_nowhere()
    except Exception as bug:
        if os.environ.get("METALAKE_TRACEBACK"):
            raise
        words = f"gcli itself failed, by {type(bug).__name__}; METALAKE_TRACEBACK=1 shows where. Please report it."
        return _ended(words, Exit.FAILED)
    finally:
        if collects:
            gc.enable()
    return Exit.DONE


def _misused(wrong: TyperException) -> Exit:
    """A command line that is none; without any argument it is answered with the help, which was printed or is here."""
    if getattr(wrong, "option_name", "").startswith("--for-"):  # whom it is about is not who asks, which is --user
        wrong.possibilities = [each for each in wrong.possibilities if each.startswith("--for-")]  # type: ignore[attr-defined]
    line, context = wrong.format_message().strip(), getattr(wrong, "ctx", None)
    line = line.replace("Input should be a valid integer, unable to parse string as an integer", "it is a whole number")
    if not line or "\n" in line:
        print(line)
        return Exit.USAGE
    where = context.command_path if context else "gcli"
    return _ended(f"{line}{'' if line[-1] in '.?' else '.'} See {where} --help.", Exit.USAGE)


def _ended(line: str, code: Exit) -> Exit:
    print(f"gcli: {plain(' '.join(line.split()))}", file=sys.stderr)
    return code
