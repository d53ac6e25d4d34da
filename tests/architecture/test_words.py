"""The words of docs/words.md name code that is there, and names in the code say what things are."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module

from tests.architecture.rooms import REPOSITORY

ROWS = [
    [cell.strip() for cell in line[1:-1].split("|")]
    for line in (REPOSITORY / "docs" / "words.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| Word ")
]
NAMED = sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[-1])})
PLACES = sorted(
    name
    for name in set(re.findall(r"`([\w./]+)`", (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    if ("/" in name or name.startswith(("metalake.", "catalogs.", "providers."))) and "acme" not in name
)


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


def test_a_place_of_the_recipes_is_there() -> None:
    """Some lie in a folder that the sentence names, or in several."""
    assert [name for name in PLACES if not is_there(name) and not any(REPOSITORY.glob(f"*/{name}"))] == []


def test_a_name_of_the_list_is_there() -> None:
    assert [name for name in NAMED if not is_there(name)] == []


def test_a_name_that_is_not_there_is_seen() -> None:
    assert not is_there("metalake.kinds.Sort") and not is_there("metalake.sorts") and not is_there("docs/none.txt")


def test_every_word_has_four_columns_and_stands_once() -> None:
    assert {len(row) for row in ROWS} == {4}
    words = [row[0] for row in ROWS]
    assert len(words) == len(set(words)) > 40


# Identifiers

RIDDLES = frozenset({"found", "kept", "held", "told", "said", "met", "taken"})
"""Words that name how a value came to be, and not what it is; they stood for everything once."""
EXCEPTIONS = {
    "NotFound": "the field's word for the error",
    "not_found": "Django's name for the handler of 404",
    "FileNotFoundError": "Python's own",
    "ModuleNotFoundError": "Python's own",
    "allow_not_found": "PyArrow's own",
    "TakenOver": "the standard word for a lease that another process has now",
    "taken_at": "a column, and a header of the wires: when an outside system gave an answer",
    "found_at": "a column: when a refresh saw that an object is gone",
    "held_back": "a column: objects that a refresh leaves for the owner to decide about",
    "files_kept": "a field and a header of the wires: why files of a dropped table stay",
}
CODE = sorted(
    path
    for room in REPOSITORY.glob("[a-z]*/__init__.py")
    for path in room.parent.rglob("*.py")
    if room.parent.name != "tests" and "migrations" not in path.parts
)


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that code binds or uses, with its line: variables, parameters, attributes, keywords, definitions."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)) | ast.ExceptHandler(name=str(name)) | ast.alias(asname=str(name)):
                yield node.lineno, name


def is_riddle(name: str) -> bool:
    """Whether one of the words is a part of the name, which is no exception; Django's lookups (`__gt`) do not count."""
    bare = name.strip("_").partition("__")[0]
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", bare)
    return bare not in EXCEPTIONS and not RIDDLES.isdisjoint(word.lower() for word in words)


def test_names_say_what_things_are() -> None:
    names = ((path, *each) for path in CODE for each in identifiers(ast.parse(path.read_text(encoding="utf-8"))))
    assert [f"{path}:{line}: {name}" for path, line, name in names if is_riddle(name)] == []


def test_a_riddle_is_seen() -> None:
    code = """
    import things as found
    class Told:
        _kept: int = 1
    async def held(met, *, is_taken=False):
        try:
            said.of(kept_to=1).told_apart
        except E as KEPT:
            pass
    """
    seen = {name for _, name in identifiers(ast.parse(textwrap.dedent(code))) if is_riddle(name)}
    assert seen == {
        "found", "Told", "_kept", "held", "met", "is_taken", "said", "kept_to", "told_apart", "KEPT",
    }  # fmt: skip
    assert not any(map(is_riddle, ("NotFound", "taken_at__gt", "foundation", "mettle", "withheld", "metadata")))


def test_every_exception_is_there() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in CODE)
    assert [name for name in EXCEPTIONS if not re.search(rf"\b{name}\b", code)] == []
