"""A new kind of object is a folder of its own and a few declarations: in a copy of the tree, one is added and used."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.architecture.copies import copy_with, run_program, without_caches

FOLDER = Path(__file__).parent / "gadgets"
ELSEWHERE = {  # lines by file, and the text there that they are put behind
    "metalake/kinds.py": {
        '    JOB = "job"\n': ['    GADGET = "gadget"'],
        "_DECLARED = (\n": [
            '    KindDeclaration(kind=Kind.GADGET, label="Gadget", plural="gadgets", slot="gadget",',
            "        creating=(P.CREATE_GADGET,), privileges=(P.READ_GADGET, P.MANAGE_GRANTS),",
            '        icon="cog", tabs=("overview",),',
            "        rights=LeafRights(create=(P.CREATE_GADGET,), load=(P.READ_GADGET,), alter=())),",
        ],
    },
    "metalake/privileges.py": {
        '    RUN_JOB = "run_job"\n': ['    CREATE_GADGET = "create_gadget"', '    READ_GADGET = "read_gadget"'],
    },
    "metalake/settings.py": {'    "views_mgmt",\n': ['    "gadgets",']},
}
MOST_FILES, MOST_LINES = 3, 8
PROVIDERS = (("workshop", "Workshop"), ("half-workshop", "HalfWorkshop"))


def test_a_kind_is_added_by_declarations(tmp_path: Path) -> None:
    added = [line for places in ELSEWHERE.values() for lines in places.values() for line in lines]
    assert len(ELSEWHERE) <= MOST_FILES and len(added) <= MOST_LINES
    assert max(map(len, added)) <= 120, "a line is a line"
    # tests/providers is the system in memory, for a catalog with tables outside
    copy_with(ELSEWHERE, tmp_path, "tests/providers", "tests/faults.py")
    shutil.copytree(FOLDER, tmp_path / "gadgets", ignore=without_caches)
    providers = ",".join(f"{name}=gadgets.providers:{class_}Provider" for name, class_ in PROVIDERS)
    program = FOLDER.parent / "gadgets_at_work.py"
    assert run_program(tmp_path, program, METALAKE_PROVIDERS=providers, METALAKE_ALLOWED_HOSTS="testserver") == [
        "made",
        "granted",
        "found on the shelf",
        "kept here beside tables outside",
        "on the wire",
        "on the pages",
        "dropped",
        "dropped with its catalog",
    ]
