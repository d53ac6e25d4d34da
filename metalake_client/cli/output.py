"""What commands print: rows or one object, as a table for people, JSON or YAML for programs.

JSON and YAML are what the server answers, without its envelope, and stay as they are between versions; a table may not.
"""

from __future__ import annotations

import enum
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]
GRID = 500
"""So many rows are drawn as a grid; more are lines with tabs on a terminal, too: nobody waits for a grid of them."""


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
        _print_grid(columns, [[_cell(row.get(column)) for column in columns] for row in rows])


def print_object(fields: Row, output: Format) -> None:
    """One object: its fields one below the other, and lists of objects as tables of their own."""
    if output is Format.JSON:
        print(json.dumps(fields, ensure_ascii=False, indent=2))
        return
    if output is Format.YAML:
        _print_yaml(fields)
        return
    inner = {name: value for name, value in fields.items() if _is_rows(value)}
    _print_grid(None, [[plain(name), _cell(value)] for name, value in fields.items() if name not in inner])
    for name, rows in inner.items():
        print(f"\n{plain(name)}")
        columns = list(dict.fromkeys(key for row in rows for key in row))
        _print_grid(columns, [[_cell(row.get(column)) for column in columns] for row in rows])


def write_nowhere() -> None:
    """Whoever read the output has enough of it; Python would write once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_line(text: str) -> None:
    print(plain(text))


def print_done(line: str) -> None:
    """What a command did; on the other stream, so that a pipe gets data alone."""
    print(plain(line), file=sys.stderr)


_SPELLED = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def plain(text: str) -> str:
    """Text of a server with its control characters spelled, since a terminal obeys them."""
    return text if text.isprintable() else text.translate(_SPELLED)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return plain(value)
        case dict():
            return "\n".join(f"{plain(key)}={_cell(inner)}" for key, inner in value.items())
        case list():
            return ", ".join(map(_cell, value))
    return json.dumps(value, ensure_ascii=False)


def _print_lines(rows: Sequence[Row]) -> None:
    """A JSON list with a row on each line: ten times as fast as an indented one, and other programs cut it."""
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    print("[" + ",".join(f"\n  {line}" for line in lines) + ("\n]" if rows else "]"))


def _print_yaml(data: Any) -> None:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # in C where it was built with it
    print(yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True), end="")


def _print_grid(columns: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> None:
    """With rich on a terminal; into a pipe as lines with tabs, which other programs cut."""
    if not sys.stdout.isatty() or len(rows) > GRID:
        head = [] if columns is None else ["\t".join(columns)]
        print("\n".join([*head, *map(_line, rows)]))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(*(columns or ("", "")), box=box.SIMPLE_HEAD, show_header=columns is not None, pad_edge=False)
    for row in rows:
        grid.add_row(*map(Text, row))  # as text, so that no name is read as markup
    Console().print(grid)


def _line(cells: Iterable[str]) -> str:
    return "\t".join(cell.replace("\n", " ").replace("\t", " ") for cell in cells)
