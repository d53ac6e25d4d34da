"""docs/threats.md names a test for every attack, and each of them exists."""

import ast
import re

import pytest

from tests.architecture.rooms import REPOSITORY

ROWS = [
    line
    for line in (REPOSITORY / "docs" / "threats.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| Attack ")
]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_row_has_three_cells() -> None:
    assert [row for row in ROWS if len(re.split(r"(?<!\\)\|", row)) != 5] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:60])
def test_the_tests_of_an_attack_exist(row: str) -> None:
    named = NAMED.findall(row)
    assert named, "a row names its test as `tests/folder/test_file.py::test_name`"
    for file, name in named:
        tree = ast.parse((REPOSITORY / file).read_text())
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, f"{file}::{name}"
