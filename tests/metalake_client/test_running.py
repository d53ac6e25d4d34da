"""How `gcli` ends: exit codes, one line for an error, profiles, completion, pipes; and what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from metalake_client.cli.app import app
from tests.metalake_client.gcli import Gcli
from tests.servers import REPOSITORY, MetalakeServer

PROGRAM = (sys.executable, "-m", "metalake_client")


def commands(group: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = getattr(group, "commands", {})
    return [path] + [found for name, each in inner.items() for found in commands(each, (*path, name))]


@pytest.mark.parametrize("path", commands(typer.main.get_command(app)), ids=" ".join)
def test_every_command_has_help(alone: Gcli, path: tuple[str, ...]) -> None:
    shown = alone(*path, "--help")
    assert shown.code == 0 and shown.out.startswith(f"Usage: {' '.join(('gcli', *path))} ") and not shown.err


@pytest.mark.slow
def test_help_needs_neither_the_server_nor_its_libraries() -> None:
    code = (
        "import sys\nfrom metalake_client.cli.app import main\nmain(['--help'])\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert loaded.isdisjoint({"django", "metalake", "requests", "yaml", "pyiceberg"})


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("catalog list", 2, "--metalake"),
        ("catalog lists", 2, "lists"),
        ("table details --catalog a", 2, "--schema"),
        ("catalog list --metalake m --output xml", 2, "xml"),
        ("catalog list --metalake m --url http://127.0.0.1:9", 6, "http://127.0.0.1:9"),
        ("catalog list --metalake m --url nowhere", 2, "nowhere"),
        ("catalog list --metalake m --profile none", 2, "none"),
        ("catalog create --metalake m --name c --properties a", 2, "--properties"),
        ("table list --metalake m --catalog c --schema s --limit 0", 2, "limit"),
    ],
)
def test_what_is_wrong_is_one_line(alone: Gcli, line: str, code: int, words: str) -> None:
    ended = alone(*line.split())
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("gcli: ") and ended.err.count("\n") == 1 and words in ended.err


@pytest.mark.slow
def test_what_the_server_refuses_has_an_exit_code(
    gcli: Gcli, metalake_server: MetalakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gcli("catalog", "details", "--catalog", "none").code == 4
    gcli.ok("role", "create", "--name", "r")
    taken = gcli("role", "create", "--name", "r")
    assert taken.code == 5 and taken.err.count("\n") == 1 and "Traceback" not in taken.err
    monkeypatch.setenv("METALAKE_PASSWORD", "wrong")
    refused = gcli("catalog", "list")
    assert refused.code == 3 and "wrong" in refused.err
    monkeypatch.setenv("METALAKE_URL", f"{metalake_server.url}/elsewhere")
    assert gcli("catalog", "list").code == 1


def test_profiles_give_what_options_leave_out(alone: Gcli, profiles_file: Path) -> None:
    assert alone.ok("profile", "list").err == "There are none.\n"
    alone.ok("profile", "set", "work", "--url", "http://127.0.0.1:9", "--metalake", 'odd "name"', "--user", "rita")
    alone.ok("profile", "set", "home", "--url", "http://127.0.0.1:10")
    assert [each["current"] for each in alone.json("profile", "list")] == [False, True]
    lacks = alone("catalog", "list")
    assert lacks.code == 3 and "rita" in lacks.err and "METALAKE_TOKEN" in lacks.err
    alone.ok("profile", "use", "home")
    assert alone("profile", "use", "none").code == 4
    assert "http://127.0.0.1:10" in alone("metalake", "list").err
    assert "http://127.0.0.1:11" in alone("metalake", "list", "--url", "http://127.0.0.1:11").err
    alone.ok("profile", "remove", "home")
    assert [each["metalake"] for each in alone.json("profile", "list")] == ['odd "name"']
    profiles_file.write_text("[work]\npassword = 'x'\n")
    wrong = alone("profile", "list")
    assert wrong.code == 2 and "password" in wrong.err
    profiles_file.write_text("[work")
    assert str(profiles_file) in alone("profile", "list").err


def test_no_secret_is_an_argument() -> None:
    groups, options = [typer.main.get_command(app)], set[str]()
    while groups:
        group = groups.pop()
        options |= {spelling for each in group.params for spelling in each.opts}
        groups += getattr(group, "commands", {}).values()
    assert "--user" in options and options.isdisjoint({"--password", "--token", "--secret"})


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_complete_from_the_server(gcli: Gcli, shell: str) -> None:
    gcli.ok("catalog", "create", "--name", "lake", "--provider", "lakehouse-iceberg")
    words = "gcli catalog details --catalog la"
    asked = {"COMP_WORDS": words, "COMP_CWORD": "4"}
    asked |= {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    program = "from metalake_client.cli.app import app; app(prog_name='gcli')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        env=os.environ | asked | {"_GCLI_COMPLETE": f"complete_{shell}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "lake" in done.stdout, done


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(gcli: Gcli) -> None:
    line = f"{' '.join(PROGRAM)} metalake list --output json | head -c 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout[:1], done.stderr) == (0, "[", "")
