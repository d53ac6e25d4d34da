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


class Format(enum.StrEnum):
    """How to print."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def print_rows(rows: Sequence[Row], columns: Sequence[str], output: Format) -> None:
    """A list; `columns` are what a table shows of each."""
    if output is not Format.TABLE:
        _print_data(list(rows), output)
    elif not rows:
        print("There are none.", file=sys.stderr)
    else:
        _print_grid(columns, ([_cell(row.get(column)) for column in columns] for row in rows))


def print_object(fields: Row, output: Format) -> None:
    """One object: its fields one below the other, and lists of objects as tables of their own."""
    if output is not Format.TABLE:
        _print_data(fields, output)
        return
    inner = {name: value for name, value in fields.items() if _is_rows(value)}
    _print_grid(None, [[name, _cell(value)] for name, value in fields.items() if name not in inner])
    for name, rows in inner.items():
        print(f"\n{name}")
        columns = list(dict.fromkeys(key for row in rows for key in row))
        _print_grid(columns, ([_cell(row.get(column)) for column in columns] for row in rows))


def write_nowhere() -> None:
    """Whoever read the output has enough of it; Python would write once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_line(text: str) -> None:
    print(text)


def print_done(line: str) -> None:
    """What a command did; on the other stream, so that a pipe gets data alone."""
    print(line, file=sys.stderr)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case dict():
            return "\n".join(f"{key}={_cell(inner)}" for key, inner in value.items())
        case list():
            return ", ".join(map(_cell, value))
    return json.dumps(value, ensure_ascii=False)


def _print_data(data: Any, output: Format) -> None:
    if output is Format.JSON:
        print(json.dumps(data, ensure_ascii=False, indent=2))
        return
    import yaml

    print(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), end="")


def _print_grid(columns: Sequence[str] | None, rows: Iterable[Sequence[str]]) -> None:
    """With rich on a terminal; into a pipe as lines with tabs, which other programs cut."""
    if not sys.stdout.isatty():
        if columns:
            print("\t".join(columns))
        for row in rows:
            print("\t".join(cell.replace("\n", " ").replace("\t", " ") for cell in row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(*(columns or ("", "")), box=box.SIMPLE_HEAD, show_header=columns is not None, pad_edge=False)
    for row in rows:
        grid.add_row(*map(Text, row))  # as text, so that no name is read as markup
    Console().print(grid)
