"""A copy of the server's code, to which something is added and which is then used by a program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.architecture.rooms import REPOSITORY, ROOMS

Lines = Mapping[str, Mapping[str, list[str]]]
"""Lines by file, and by the text there that they are put behind."""
without_caches = shutil.ignore_patterns("__pycache__")


def copy_with(added: Lines, folder: Path, *more: str) -> None:
    """Copy the server's code, and `more` of the repository (folders first), into a folder, and put lines into it."""
    for name in (*ROOMS, *more):
        if (REPOSITORY / name).is_dir():
            shutil.copytree(REPOSITORY / name, folder / name, ignore=without_caches)
        else:
            shutil.copy(REPOSITORY / name, folder / name)
    for name, places in added.items():
        text = (folder / name).read_text()
        for behind, lines in places.items():
            assert text.count(behind) == 1, (name, behind)
            text = text.replace(behind, behind + "".join(f"{line}\n" for line in lines))
        (folder / name).write_text(text)


def run_program(folder: Path, program: Path, **settings: str) -> list[str]:
    """The lines that a program prints, which is copied too, so that it imports nothing from beside the original."""
    shutil.copy(program, folder / "program.py")
    return run_in(folder, "program.py", **settings).splitlines()


def run_in(folder: Path, *command: str, **settings: str) -> str:
    """What a command prints that runs in the copy, with a METALAKE_HOME of its own. Fails if it does."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("METALAKE_", "DJANGO_", "PYTEST"))
    }
    home = {"METALAKE_HOME": str(folder / "home"), "PYTHONPATH": str(folder), "METALAKE_SERVICE_ADMINS": "olga"}
    home["PYTHONDONTWRITEBYTECODE"] = "1"  # the copy goes with the test
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=kept | home | settings, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout
