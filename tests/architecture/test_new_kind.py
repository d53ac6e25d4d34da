"""A new kind of object is a folder of its own and a few declarations: in a copy of the tree, one is added and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.rooms import ROOMS

FOLDER = Path(__file__).parent / "gadgets"
ELSEWHERE = {  # lines by file, and the text there that they are put behind
    "metalake/kinds.py": {
        '    JOB_TEMPLATE = "job_template"\n': ['    GADGET = "gadget"'],
        "_DECLARED = (\n": [
            '    KindDeclaration(kind=Kind.GADGET, label="Gadget", plural="gadgets", slot="gadget",',
            "        creating=(P.CREATE_GADGET,), privileges=(P.READ_GADGET, P.MANAGE_GRANTS),",
            '        icon="M2 2h12v12H2z", sections=("about", "wheels"),',
            "        rights=LeafRights(create=(P.CREATE_GADGET,), load=(P.READ_GADGET,), alter=())),",
        ],
    },
    "metalake/privileges.py": {
        '    RUN_JOB = "run_job"\n': ['    CREATE_GADGET = "create_gadget"', '    READ_GADGET = "read_gadget"'],
    },
    "metalake/settings.py": {'    "views_mgmt",\n': ['    "gadgets",']},
}
REPOSITORY = Path(__file__).parents[2]
MOST_FILES, MOST_LINES = 3, 8
PROVIDERS = (("workshop", "Workshop"), ("half-workshop", "HalfWorkshop"))


def test_a_kind_is_added_by_declarations(tmp_path: Path) -> None:
    added = [line for places in ELSEWHERE.values() for lines in places.values() for line in lines]
    assert len(ELSEWHERE) <= MOST_FILES and len(added) <= MOST_LINES
    assert max(map(len, added)) <= 120, "a line is a line"
    ignored = shutil.ignore_patterns("__pycache__")
    for room in ROOMS:
        shutil.copytree(REPOSITORY / room, tmp_path / room, ignore=ignored)
    for name, places in ELSEWHERE.items():
        text = (tmp_path / name).read_text()
        for behind, lines in places.items():
            assert text.count(behind) == 1, (name, behind)
            text = text.replace(behind, behind + "".join(f"{line}\n" for line in lines))
        (tmp_path / name).write_text(text)
    shutil.copytree(FOLDER, tmp_path / "gadgets", ignore=ignored)
    for name in ("tests/providers", "tests/faults.py"):  # the system in memory, for a catalog with tables outside
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
        (tmp_path / "tests").mkdir(exist_ok=True)
        copy(REPOSITORY / name, tmp_path / name)
    program = tmp_path / "program.py"
    shutil.copy(REPOSITORY / "tests/architecture/gadgets_at_work.py", program)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("METALAKE_", "DJANGO_", "PYTEST"))
    }
    home = {"METALAKE_HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path), "METALAKE_SERVICE_ADMINS": "olga"}
    home["METALAKE_ALLOWED_HOSTS"] = "testserver"
    home["METALAKE_PROVIDERS"] = ",".join(f"{name}=gadgets.providers:{class_}Provider" for name, class_ in PROVIDERS)
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=kept | home, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "made",
        "granted",
        "found on the shelf",
        "kept here beside tables outside",
        "on the wire",
        "on the pages",
        "dropped",
        "dropped with its catalog",
    ]
