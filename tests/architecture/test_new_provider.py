"""A new system is a folder of its own and one line: in a copy of the tree, one is added, checked and used."""

from __future__ import annotations

from pathlib import Path

from tests.architecture.copies import copy_with, run_in, run_program
from tests.architecture.rooms import CLIENTS, REPOSITORY

LINE = '    "attic": "providers.attic.provider:MemoryProvider",'
PARTS = {  # the system in memory of the tests, under the names that it has as one of ours
    "tests/providers/memory.py": "provider.py",
    "tests/providers/world.py": "world.py",
    "tests/providers/columns.py": "columns.py",
    "tests/faults.py": "faults.py",
}


def test_a_provider_is_one_line(tmp_path: Path) -> None:
    copy_with({"providers/registry.py": {"PROVIDERS = {\n": [LINE]}}, tmp_path, *CLIENTS, "pyproject.toml")
    folder = tmp_path / "providers" / "attic"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, part in PARTS.items():
        text = (REPOSITORY / name).read_text()
        for package in ("tests.providers", "tests"):
            text = text.replace(f"from {package}", "from providers.attic")
        (folder / part).write_text(text)
    run_in(tmp_path, "-c", "from importlinter.cli import lint_imports_command as check; check(['--no-cache'])")
    assert run_program(tmp_path, REPOSITORY / "tests/architecture/attic_at_work.py") == ["made", "found", "read"]
