"""The wheel holds all that the server needs: built, installed in an environment of its own, and put to work."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.architecture.rooms import ROOMS

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("METALAKE_", "DJANGO_"))}
    done = subprocess.run(command, cwd=cwd, env=inherited | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Built from a copy, since a build leaves folders beside what it builds; pip fetches what builds it."""
    source = tmp_path / "source"
    source.mkdir()
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=REPOSITORY)
    for name in listed.splitlines():
        if (REPOSITORY / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((REPOSITORY / name).read_bytes())
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, source, cwd=tmp_path)
    (built,) = tmp_path.glob("*.whl")
    return built


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_installed_wheel_is_a_server(wheel: Path, tmp_path: Path) -> None:
    tracked = run("git", "ls-files", *ROOMS, cwd=REPOSITORY).splitlines()
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in tracked if (REPOSITORY / name).is_file()} <= held
    assert any(name.endswith("licenses/LICENSE") for name in held)

    environment = tmp_path / "venv"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # those that the tests run with

    metalake, home = environment / "bin" / "metalake", {"METALAKE_HOME": str(tmp_path / "home")}
    where = run(python, "-c", "import metalake, frontend; print(metalake.__file__, frontend.__file__)", cwd=tmp_path)
    assert where.count(str(own)) == 2, where
    run(metalake, "check", cwd=tmp_path, **home)
    run(metalake, "migrate", "--verbosity", "0", cwd=tmp_path, **home)
    assert "admin" in run(metalake, "bootstrap", cwd=tmp_path, **home)
    found = run(metalake, "findstatic", "--first", "frontend/tokens.css", cwd=tmp_path, **home)
    assert str(own) in found
