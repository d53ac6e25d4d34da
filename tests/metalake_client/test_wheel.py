"""The client's wheel in an empty environment: `gcli` without the server and without Django."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import REPOSITORY, MetalakeServer


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("METALAKE_", "PYTHON"))}
    done = subprocess.run(command, cwd=cwd, env=inherited | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
