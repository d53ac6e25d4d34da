"""A new kind of object is a folder of its own and a few declarations: in a copy of the tree, one is added and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.gadgets import ELSEWHERE, FOLDER

REPOSITORY = Path(__file__).parents[2]
ROOMS = ("metalake", "formats", "providers", "authz", "catalogs", "outside", "views_mgmt", "iceberg_rest", "frontend")
MOST_FILES, MOST_LINES = 3, 8


def test_a_kind_is_added_by_declarations(tmp_path: Path) -> None:
    added = [line for places in ELSEWHERE.values() for lines in places.values() for line in lines]
    assert len(ELSEWHERE) <= MOST_FILES and len(added) <= MOST_LINES
    assert max(map(len, added)) <= 120, "a line is a line"
    for room in ROOMS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / room, tmp_path / room, ignore=ignored)
    for name, places in ELSEWHERE.items():
        text = (tmp_path / name).read_text()
        for behind, lines in places.items():
            assert text.count(behind) == 1, (name, behind)
            text = text.replace(behind, behind + "".join(f"{line}\n" for line in lines))
        (tmp_path / name).write_text(text)
    for name, text in FOLDER.items():
        (tmp_path / "gadgets" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "gadgets" / name).write_text(text)
    program = tmp_path / "program.py"
    shutil.copy(REPOSITORY / "tests/architecture/gadgets_at_work.py", program)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("METALAKE_", "DJANGO_", "PYTEST"))
    }
    home = {"METALAKE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path), "METALAKE_SERVICE_ADMINS": "olga"}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=kept | home, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["made", "granted", "dropped", "dropped with its catalog"]
