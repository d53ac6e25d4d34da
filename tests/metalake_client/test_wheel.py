"""How `gcli` comes to be: by `make install`, and by the client's wheel, without the server and without Django."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.servers import REPOSITORY, MetalakeServer


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("METALAKE_", "PYTHON"))}
    done = subprocess.run(command, cwd=cwd, env=inherited | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_make_install_brings_gcli_that_runs_from_anywhere(tmp_path: Path) -> None:
    """Its line of the Makefile alone: what installs the packages is stood in for by a program that does nothing."""
    checkout, elsewhere = tmp_path / "a check out", tmp_path / "elsewhere"
    for folder in (checkout / ".venv" / "bin", elsewhere, tmp_path / "path"):
        folder.mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "requirements-dev.txt", "metalake_client"):
        (checkout / name).symlink_to(REPOSITORY / name)
    python, uv = checkout / ".venv" / "bin" / "python", tmp_path / "path" / "uv"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    uv.write_text("#!/bin/sh\n")
    for program in (python, uv):
        program.chmod(0o755)
    run("make", "install", cwd=checkout, PATH=f"{uv.parent}:/usr/bin:/bin", MAKEFLAGS="")
    (elsewhere / "typer.py").write_text("raise SystemExit('a file of the current folder was imported')")
    (tmp_path / "gcli").symlink_to(checkout / ".venv" / "bin" / "gcli")
    assert run(tmp_path / "gcli", "--version", cwd=elsewhere).startswith("gcli ")


def test_the_environment_of_the_server_has_what_gcli_needs() -> None:
    needed = tomllib.loads((REPOSITORY / "metalake_client" / "pyproject.toml").read_text())["project"]["dependencies"]
    pinned = re.findall(r"^([\w.-]+)==", (REPOSITORY / "requirements.txt").read_text(), re.MULTILINE)
    assert {re.split("[<>=]", each)[0] for each in needed} <= set(pinned)


@pytest.mark.long  # pip fetches what builds the wheel, and all that it needs
@pytest.mark.timeout(600)
def test_an_empty_environment_gets_gcli(metalake_server: MetalakeServer, tmp_path: Path) -> None:
    source, environment = tmp_path / "metalake_client", tmp_path / "venv"
    shutil.copytree(REPOSITORY / "metalake_client", source, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    run(environment / "bin" / "python", "-m", "pip", "install", "--quiet", source, cwd=tmp_path)
    gcli = environment / "bin" / "gcli"
    assert run(gcli, "--version", cwd=tmp_path) == "gcli 1.0.0, for version 1.3 of the wire\n"
    assert run(gcli, "--help", cwd=tmp_path).startswith("Usage: gcli ")
    asked = {"METALAKE_USER": "admin", "METALAKE_PASSWORD": metalake_server.admin_password}
    asked |= {"METALAKE_URL": metalake_server.url, "METALAKE_PROFILES": str(tmp_path / "profiles.toml")}
    assert run(gcli, "server", "whoami", cwd=tmp_path, **asked) == "principal\tadmin\n"
    assert run(gcli, "metalake", "list", "--output", "yaml", cwd=tmp_path, **asked)
    listed = run(environment / "bin" / "python", "-m", "pip", "list", "--format", "freeze", cwd=tmp_path)
    names = {line.partition("==")[0].lower() for line in listed.split()}
    assert "metalake-client" in names and names.isdisjoint({"django", "metalake", "pyspark", "pyiceberg"})
    held = {path.name for path in (environment / "lib").glob("python*/site-packages/metalake_client/*")}
    ours = {path.name for path in (REPOSITORY / "metalake_client").iterdir()}
    assert held >= {name for name in ours if name.endswith(".py") or (source / name / "__init__.py").exists()}
