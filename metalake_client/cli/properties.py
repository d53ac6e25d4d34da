"""How properties are written on a command line and in a file (docs/gcli.md).

`key=value,other="with, comma"`: a value is all up to the next comma, or stands in double quotes, in which a backslash
takes the next character as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from metalake_client.failures import Exit, Failure


def properties_of(texts: Iterable[str], file: Path | None = None) -> dict[str, str]:
    """The properties of a file and of options; an option wins. Raises Failure for what is not written so."""
    properties = _of_file(file) if file else {}
    for text in texts:
        properties |= dict(_pairs(text))
    return properties


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    """Raises Failure, which names parts by number: what is written wrong may be a secret."""
    place, number = 0, 0
    while place < len(text):
        key, equals, _ = text[place:].partition("=")
        number += 1
        if not equals or "," in key or not key.strip():
            hint = "A value with a comma stands in double quotes."
            raise Failure(f"--properties: part {number} is not key=value. {hint}", Exit.USAGE)
        value, place = _value_at(text, place + len(key) + 1, key.strip())
        yield key.strip(), value


def _value_at(text: str, place: int, key: str) -> tuple[str, int]:
    """The value that begins there, and where the next key begins."""
    if not text.startswith('"', place):
        value = text[place:].partition(",")[0]
        return value, place + len(value) + 1
    signs, place = list[str](), place + 1
    while place < len(text) and text[place] != '"':
        place += text[place] == "\\"
        signs.append(text[place : place + 1])
        place += 1
    if place >= len(text):
        raise Failure(f"--properties: the quote of {key} is not closed.", Exit.USAGE)
    if text[place + 1 : place + 2] not in ("", ","):
        raise Failure(f"--properties: a comma has to follow the closing quote of {key}.", Exit.USAGE)
    return "".join(signs), place + 2


def _of_file(path: Path) -> dict[str, str]:
    """A JSON object of texts, or lines `key=value` of which those that begin with # are left out."""
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as wrong:
        raise Failure(f"--properties-file: {path} cannot be read: {wrong}", Exit.USAGE) from None
    if content.lstrip().startswith("{"):
        return _of_json(path, content)
    properties = dict[str, str]()
    for number, line in enumerate(content.split("\n"), 1):  # a value may hold what else ends a line of text
        key, equals, value = line.partition("=")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals or not key.strip():  # without the line, which may hold a secret
            raise Failure(f"--properties-file: {path}: line {number} is not key=value.", Exit.USAGE)
        properties[key.strip()] = value.strip(" \t\r")
    return properties


def _of_json(path: Path, content: str) -> dict[str, str]:
    try:
        given = json.loads(content)
    except (ValueError, RecursionError) as wrong:
        raise Failure(f"--properties-file: {path} is no JSON: {wrong}", Exit.USAGE) from None
    if not all(isinstance(value, str) for value in given.values()):
        raise Failure(f"--properties-file: {path}: every value is a text in quotes.", Exit.USAGE)
    return dict(given)
