"""Completion, by the protocol of each shell, and in a real bash."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metalake_client.cli.app import main
from tests.metalake_client.gcli import Gcli
from tests.metalake_client.stand_in import StandIn
from tests.servers import REPOSITORY
from tests.waiting import eventually

CATALOGS = "GET /api/metalakes/m/catalogs"
SCHEMAS = f"{CATALOGS}/lake/schemas"


def identifiers(*names: str) -> dict[str, object]:
    return {"code": 0, "identifiers": [{"namespace": ["m"], "name": name} for name in names]}


@pytest.fixture
def named(stand_in: StandIn) -> StandIn:
    """Catalogs lake, lab and "my own"; in lake the schemas sales, sales:emea and sales:emea's own."""
    below = {None: ["sales", "stock"], "sales": ["sales:emea", "sales:apac"], "sales:emea": ["sales:emea:2026"]}
    stand_in.answers |= {
        "GET /configs": {"gravitino.schema.separator": ":"},
        CATALOGS: identifiers("lake", "lab", "my own"),
        SCHEMAS: lambda query: identifiers(*below[query.get("parentSchema")]),
        "GET /api/metalakes/m/users": {"code": 0, "names": ["rita", "rob"]},
    }
    return stand_in


def completed(
    shell: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> str:
    """What a shell is answered; bash sends its words, the others the line up to the cursor."""
    monkeypatch.setenv("_GCLI_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    capsys.readouterr()
    assert main() == 0
    shown = capsys.readouterr()
    assert not shown.err
    return shown.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_complete_from_the_server(
    named: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    def ask(line: str, words: list[str] | None = None) -> str:
        return completed(shell, line, monkeypatch, capsys, words or line.split(" "))

    asked = ask("gcli schema list --catalog la")
    assert "lake" in asked and "lab" in asked and "own" not in asked
    assert "rita" in ask("gcli role assign --role r --to-user r")
    assert "add-dialect" in ask("gcli view add-")
    assert "partition" in ask("gcli part") and "yaml" in ask("gcli catalog list --output ")
    whole = "gcli table list --catalog lake --schema sales:em"
    nested = ask(whole, ["gcli", "table", "list", "--catalog", "lake", "--schema", "sales", ":", "em"])
    assert (
        nested.strip()
        == {
            "bash": "emea",
            "zsh": "_arguments '*: :((\"sales\\\\:emea\"))'",
            "fish": "sales:emea",
        }[shell]
    )
    monkeypatch.setenv("METALAKE_URL", "http://127.0.0.1:9")
    assert "lake" not in ask("gcli schema list --catalog la")  # and no word of what is wrong


LINES = {
    "gcli schema list --catalog my": ["'my own'"],
    "gcli table list --catalog lake --schema sales : ": ["apac", "emea"],
    "gcli table list --catalog lake --schema sales : emea : 2": ["2026"],
    "gcli schema list --catalog none": [],  # bash deletes what was typed if it is answered one empty name
    "gcli table create lake sales --file s": [],  # bash then completes files by itself
}  # by the words that bash makes of a line


@pytest.fixture
def installed(named: StandIn, tmp_path: Path) -> dict[str, str]:
    """The environment of a shell that has `gcli` on its path, and no settings of this machine's user."""
    program = tmp_path / "gcli"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m metalake_client "$@"\n')
    program.chmod(0o755)
    own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY)}
    return os.environ | own | dict.fromkeys(("HOME", "ZDOTDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(tmp_path))


def test_a_real_bash_completes(installed: dict[str, str]) -> None:
    script = 'eval "$(gcli completion bash)"; complete -p gcli >/dev/null || exit 1\n'
    for line in LINES:
        words = " ".join(f"'{word}'" for word in line.split(" "))
        script += f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _gcli_completion gcli\n"
        script += "[ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' \"${COMPREPLY[@]}\" | sort; echo end\n"
    done = subprocess.run(["bash", "--norc", "-c", script], env=installed, capture_output=True, text=True, check=False)
    expected = "".join("".join(f"{name}\n" for name in names) + "end\n" for names in LINES.values())
    assert (done.stdout, done.stderr) == (expected, "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_a_real_fish_completes(installed: dict[str, str]) -> None:
    lines = {
        "gcli schema list --catalog la": ["lab", "lake"],
        "gcli schema list --catalog my": ["my own"],
        "gcli table list --catalog lake --schema sales:emea:": ["sales:emea:2026"],
        "gcli catalog list --output ": ["json", "table", "yaml"],
    }
    script = "gcli completion fish | source\n"
    script += "".join(f'complete --do-complete "{line}"; echo end\n' for line in lines)
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], env=installed, capture_output=True, text=True, check=False
    )
    expected = "".join("".join(f"{name}\n" for name in names) + "end\n" for names in lines.values())
    assert (done.stdout, done.stderr) == (expected, "")


ZSHRC = """autoload -Uz compinit && compinit -u -D
eval "$(gcli completion zsh)"
show() { print -r -- "$BUFFER" > $ZDOTDIR/shown.new && mv $ZDOTDIR/shown.new $ZDOTDIR/shown; zle kill-whole-line }
zle -N show
bindkey '^Xs' show
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_a_real_zsh_completes(installed: dict[str, str], tmp_path: Path) -> None:
    """By its line editor, on a terminal: what stands on the line after a tab."""
    (tmp_path / ".zshrc").write_text(ZSHRC)
    ours, terminal = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-d", "-i"], env=installed | {"TERM": "dumb"}, stdin=terminal, stdout=terminal, stderr=terminal
    )
    try:
        for line, whole in (
            ("gcli schema list --catalog lak", "gcli schema list --catalog lake "),
            ("gcli schema list --catalog m", r"gcli schema list --catalog my\ own "),
            (
                "gcli table list --catalog lake --schema sales:emea:",
                r"gcli table list --catalog lake --schema sales:emea:2026 ",
            ),
            ("gcli catalog list --output y", "gcli catalog list --output yaml "),
        ):
            os.write(ours, f"{line}\t\x18s".encode())
            assert eventually((tmp_path / "shown").exists, 60), line
            assert (tmp_path / "shown").read_text() == f"{whole}\n"
            (tmp_path / "shown").unlink()
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(terminal)


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete -o default"), ("zsh", "compdef"), ("fish", "complete --command gcli")]
)
def test_each_shell_has_a_script(alone: Gcli, shell: str, words: str) -> None:
    script = alone.ok("completion", shell).out
    assert words in script and f"_GCLI_COMPLETE=complete_{shell}" in script
