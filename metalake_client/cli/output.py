"""What commands print: rows or one object, as a table for people, JSON or YAML for programs.

JSON and YAML are what the server answers, without its envelope, and stay as they are between versions; a table may not.
"""

from __future__ import annotations

import enum
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
GRID = 500
"""Up to this many rows are printed as a grid; more as tab-separated lines, on a terminal too: a grid takes too long."""
_NUMERIC = "+-.0123456789"

NARROWEST = 8  # signs of a column


class Format(enum.StrEnum):
    """How to print."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def print_rows(rows: Sequence[Row], columns: Sequence[str], output: Format) -> None:
    """A list; `columns` are what a table shows of each."""
    if output is Format.JSON:
        _print_lines(rows)
    elif output is Format.YAML:
        _print_yaml(list(rows))
    elif not rows:
        print("There are none.", file=sys.stderr)
    else:
        _print_grid(columns, _cells(rows, columns))


def print_object(fields: Row, output: Format) -> None:
    """One object: its fields one below the other, and lists of objects as tables of their own."""
    if output is Format.JSON:
        print(json.dumps(fields, ensure_ascii=False, indent=2))
        return
    if output is Format.YAML:
        _print_yaml(fields)
        return
    if "name" in fields:
        fields = {"name": fields["name"], **fields}  # first, whatever the server begins with
    inner = {name: value for name, value in fields.items() if _is_rows(value)}
    flat = [[name, _cell(value)] for name, value in fields.items() if name not in inner]
    if flat:
        _print_grid(None, flat)
    for number, (name, rows) in enumerate(inner.items()):
        print(("\n" if flat or number else "") + plain(name))
        columns = list(dict.fromkeys(key for row in rows for key in row))
        _print_grid(columns, _cells(rows, columns))


def write_nowhere() -> None:
    """Whoever read the output has enough of it; Python would write once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_line(text: str) -> None:
    print(plain(text))


def print_done(line: str) -> None:
    """What a command did; on the other stream, so that a pipe gets data alone."""
    print(plain(line), file=sys.stderr)


_SPELLED = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
_CONTROL = re.compile("[" + "".join(map(chr, _SPELLED)) + "]")


def plain(text: str) -> str:
    """Text of a server with its control characters spelled, since a terminal obeys them."""
    return text.translate(_SPELLED) if _CONTROL.search(text) else text


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _cells(rows: Sequence[Row], columns: Sequence[str]) -> list[tuple[str, ...]]:
    values = ([row.get(column) for row in rows] for column in columns)  # by column, which is twice as fast
    texts = [[each if type(each) is str else _cell(each) for each in column] for column in values]
    return list(zip(*texts, strict=True))


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "yes" if value else "no"
        case {"type": "literal", "value": inner} | {"type": "unparsed", "unparsedExpression": inner}:
            return str(inner)
        case {"type": "external", "catalogString": inner} | {"type": "unparsed", "unparsedType": inner}:
            return str(inner)
        case {"type": "function", "funcName": name, "funcArgs": arguments}:
            return f"{name}({_cell(arguments)})"
        case dict():
            return "\n".join(f"{key}={_cell(inner)}" for key, inner in value.items())
        case list():
            return ", ".join(map(_cell, value))
    return json.dumps(value, ensure_ascii=False)


def _print_lines(rows: Sequence[Row]) -> None:
    """A JSON list with a row on each line."""
    import orjson  # a list of 10,000 in a fifth of the time that json takes

    end = orjson.Fragment(b"\n")  # the only bare one, since JSON spells those of a text
    lines = orjson.dumps([item for row in rows for item in (end, row)])
    print(lines.replace(b",\n,", b",\n  ").replace(b"[\n,", b"[\n  ")[:-1].decode(), "]", sep="\n" if rows else "")


def _print_yaml(data: Any) -> None:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # in C where it was built with it
        pass

    def text(dumper: Any, value: str) -> Any:
        """In quotes where YAML 1.2 reads a number and PyYAML, which has 1.1, does not: 1e3, 0o17."""
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="'" if value[:1] in _NUMERIC else None)

    Dumper.add_representer(str, text)
    print(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True), end="")


def _print_grid(columns: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> None:
    """With rich on a terminal; into a pipe as lines with tabs, which other programs cut. Nothing is left out of it."""
    if not sys.stdout.isatty() or len(rows) > GRID:
        print(_in_lines([*([] if columns is None else [columns]), *rows]))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(*(columns or ("", "")), box=box.SIMPLE_HEAD, show_header=columns is not None, pad_edge=False)
    for column in grid.columns:
        column.overflow = "fold"
    for row in rows:
        grid.add_row(*(Text(plain(cell)) for cell in row))  # as text, so that no name is read as markup
    console = Console()
    console.width = max(console.width, NARROWEST * len(grid.columns))  # where there is less, the terminal folds lines
    console.print(grid)


def _in_lines(rows: Sequence[Sequence[str]]) -> str:
    """A line for each row, its cells divided by tabs; what cells hold of both, and control characters, is spelled."""
    text = "\n".join(map("\t".join, rows))
    ends, tabs = len(rows) - 1, sum(map(len, rows)) - len(rows)
    if text.count("\n") == ends and text.count("\t") == tabs and not _CONTROL.search(text):
        return text  # looked at once, since 10,000 rows are looked at in one by one for as long as they take to come
    return "\n".join("\t".join(_on_a_line(cell) for cell in row) for row in rows)


def _on_a_line(cell: str) -> str:
    return plain(cell.replace("\n", " ").replace("\t", " "))
