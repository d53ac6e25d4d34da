"""What fits in the head: how long a file, a function and a room may be."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.rooms import CLIENTS, REPOSITORY, ROOMS

FOLDERS = (*ROOMS, *CLIENTS)
FILES = [
    path for room in FOLDERS for path in sorted((REPOSITORY / room).rglob("*.py")) if "migrations" not in path.parts
]
LONGEST_FILE, LONGEST_FUNCTION = 350, 40  # lines
LARGEST_ROOM = 0.30  # of the lines of all rooms


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_a_file_and_its_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {function.name: (function.end_lineno or 0) - function.lineno + 1 for function in functions}
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}


def test_no_room_holds_a_third_of_the_house() -> None:
    lines = dict.fromkeys(FOLDERS, 0)
    for path in FILES:
        lines[path.relative_to(REPOSITORY).parts[0]] += len(path.read_text().splitlines())
    whole = sum(lines.values())
    assert not {room: f"{count / whole:.0%}" for room, count in lines.items() if count > LARGEST_ROOM * whole}
