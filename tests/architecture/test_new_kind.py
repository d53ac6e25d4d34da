"""A new kind of object is a folder of its own and a few declarations: in a copy of the tree, one is added and used."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.architecture.copies import copy_with, run_program, without_caches

FOLDER = Path(__file__).parent / "gadgets"
DECLARED = "_DECLARED = (\n"
# For each, lines by file, and the text there that they are put behind.
KIND = {
    "metalake/kinds.py": {
        '    JOB = "job"\n': ['    GADGET = "gadget"'],
        DECLARED: [
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
KIND_BESIDE_CATALOGS = {
    "metalake/kinds.py": {
        '    JOB = "job"\n': ['    STAMP = "stamp"'],
        DECLARED: [
            '    KindDeclaration(kind=Kind.STAMP, label="Stamp", plural="stamps", slot="stamp",',
            "        lies_in=(Kind.METALAKE,), creating=(P.CREATE_STAMP,), privileges=(P.READ_STAMP, P.MANAGE_GRANTS),",
            '        icon="stamp", tabs=("overview", "access"),',
            "        rights=LeafRights(create=(P.CREATE_STAMP,), load=(P.READ_STAMP,), alter=())),",
        ],
    },
    "metalake/privileges.py": {
        '    RUN_JOB = "run_job"\n': ['    CREATE_STAMP = "create_stamp"', '    READ_STAMP = "read_stamp"'],
    },
}
CATALOG_TYPE = {"metalake/kinds.py": {'    RELATIONAL = "relational"\n': ['    TOOLBOX = "toolbox", "toolbox"']}}
MOST = ((KIND, 3, 8), (KIND_BESIDE_CATALOGS, 2, 7), (CATALOG_TYPE, 1, 1))  # files and lines
PROVIDERS = (("workshop", "Workshop"), ("half-workshop", "HalfWorkshop"), ("toolbox", "Toolbox"))


def test_kinds_and_catalog_types_are_added_by_declarations(tmp_path: Path) -> None:
    elsewhere: dict[str, dict[str, list[str]]] = {}
    for places, most_files, most_lines in MOST:
        lines = [line for behind in places.values() for some in behind.values() for line in some]
        assert len(places) <= most_files and len(lines) <= most_lines
        assert max(map(len, lines)) <= 120, "a line is a line"
        for name, behind in places.items():
            for text, some in behind.items():
                elsewhere.setdefault(name, {}).setdefault(text, []).extend(some)
    # tests/providers is the system in memory, for a catalog with tables outside
    copy_with(elsewhere, tmp_path, "tests/providers", "tests/faults.py")
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
        "beside catalogs",
        "in catalogs of another type",
        "dropped",
        "dropped with its catalog",
    ]
