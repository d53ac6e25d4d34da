"""docs/threats.md names a test for every attack, and each of them exists."""

import ast
import re
from functools import cache

from tests.architecture.rooms import REPOSITORY

ROWS = [
    line
    for line in (REPOSITORY / "docs" / "threats.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| Attack ")
]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_row_has_three_cells() -> None:
    assert [row for row in ROWS if len(re.split(r"(?<!\\)\|", row)) != 5] == []


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((REPOSITORY / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_tests_of_an_attack_exist() -> None:
    assert [row for row in ROWS if not NAMED.search(row)] == [], "a row names `tests/folder/test_file.py::test_name`"
    assert [(file, name) for file, name in NAMED.findall("\n".join(ROWS)) if name not in functions_of(file)] == []
