"""The guard of hot reads in CI fails where a read takes a statement more, or parses what it has only to send."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.servers import REPOSITORY

STATEMENT = """
from iceberg_rest import fast_path
was = fast_path.caller_at
def plant():
    def slower(*given, **options):
        was(*given, **options)
        return was(*given, **options)
    fast_path.caller_at = slower
"""
PARSE = """
from catalogs.managed.tables import ManagedTables
was = ManagedTables.load
def plant():
    def slower(self, *given, **options):
        record = was(self, *given, **options)
        record.metadata
        return record
    ManagedTables.load = slower
"""


@pytest.mark.long
@pytest.mark.parametrize(("planted", "missed"), [(STATEMENT, "MISS exists"), (PARSE, "MISS load"), ("", "")])
def test_the_guard_fails_for_what_is_planted(planted: str, missed: str) -> None:
    plant = f"def later():\n{indented(planted)}\n    plant()" if planted else "later = bool"
    program = f"{plant}\nfrom benchmarks.guard import main\nmain(later)"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, missed in done.stdout) == (bool(planted), True), done.stdout + done.stderr


def indented(program: str) -> str:
    return "\n".join(f"    {line}" for line in program.splitlines())
