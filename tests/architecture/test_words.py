"""The words of docs/words.md name code that is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = [
    [cell.strip() for cell in line[1:-1].split("|")]
    for line in (REPOSITORY / "docs" / "words.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| Word ")
]
NAMED = sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[-1])})


def is_there(name: str) -> bool:
    """Whether this is a file here, or a module, or what a module holds."""
    if "/" in name:
        return (REPOSITORY / name).exists()
    module, _, attribute = name.rpartition(".")
    try:
        if module and hasattr(import_module(module), attribute):
            return True
        import_module(name)
    except ImportError:
        return False
    return True


@pytest.mark.parametrize("name", NAMED)
def test_a_name_of_the_list_is_there(name: str) -> None:
    assert is_there(name)


def test_a_name_that_is_not_there_is_seen() -> None:
    assert not is_there("metalake.kinds.Sort") and not is_there("metalake.sorts") and not is_there("docs/none.txt")


def test_every_word_has_four_columns_and_stands_once() -> None:
    assert {len(row) for row in ROWS} == {4}
    words = [row[0] for row in ROWS]
    assert len(words) == len(set(words)) > 40
