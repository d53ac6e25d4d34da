"""Who keeps an object is asked in one place, by choosing its store: no service, door or page branches on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.rooms import REPOSITORY, ROOMS

RULES_AND_DOORS = [room for room in ROOMS if room not in ("metalake", "formats", "providers")]
QUESTIONS = {"Storage", "lies_outside", "is_external", "is_outside"}
# Where a store is chosen or registered, a page that tells people which providers lead outside, and monitors' figures.
ANSWERED_IN = {
    "catalogs/stores.py",
    "catalogs/apps.py",
    "outside/apps.py",
    "outside/metrics.py",
    "views_mgmt/apps.py",
    "frontend/forms/catalogs.py",
}
MODULES = [
    path.relative_to(REPOSITORY).as_posix()
    for room in RULES_AND_DOORS
    for path in sorted((REPOSITORY / room).rglob("*.py"))
    if "migrations" not in path.parts
]


def names_in(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.alias(name=name):
                yield name


def test_nobody_else_asks_who_keeps_an_object() -> None:
    asked = {module: QUESTIONS.intersection(names_in((REPOSITORY / module).read_text())) for module in MODULES}
    asking = {module: names for module, names in asked.items() if names and module not in ANSWERED_IN}
    assert not asking, "ask the store that catalogs.stores chooses"


def test_a_question_would_be_noticed() -> None:
    assert len(MODULES) > 100 and set(MODULES) >= ANSWERED_IN
    text = "from providers.base import Storage\nif row.is_external: pass\ndef is_outside(row): ..."
    assert QUESTIONS.intersection(names_in(text)) == {"Storage", "is_external", "is_outside"}
