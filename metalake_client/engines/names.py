"""How engines spell the names of tables, views and schemas, and what a spelling names: lossless both ways.

The server's native wire divides the levels of a schema by a separator of its own; engines never see it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from metalake_client.engines import flink
from metalake_client.engines.quoting import backquoted, double_quoted
from metalake_client.engines.rendered import Refusal

Levels = tuple[str, ...]


@dataclass(frozen=True)
class Name:
    """A table or view in a catalog of the metalake: the levels of its schema, at least one, and its own name."""

    catalog: str
    schema: Levels
    object: str


@dataclass(frozen=True)
class Spelling:
    """An engine's way to write names. `spell` raises Refusal for what it cannot, `read` for what is no such name."""

    engine: str
    spell: Callable[[Name], str]
    read: Callable[[str], Name]


# -- Metalake itself


def logical(schema: Sequence[str], separator: str) -> str:
    """A schema's name on the native wire. Raises Refusal for a level that has the separator in it."""
    if odd := next((level for level in schema if separator in level or not level), None):
        raise Refusal(f"Schema {odd!r} cannot be on the native wire: {separator} divides the levels of a schema.")
    return separator.join(schema)


def levels_of(schema: str, separator: str) -> Levels:
    """The levels of a schema's name on the native wire."""
    return tuple(schema.split(separator))


# -- Parts in quotes, divided by dots


def _split(text: str, quote: str) -> list[str]:
    """The parts of what quoting.py wrote; a part may also stand without quotes. Raises Refusal."""
    sign = re.escape(quote)
    part = re.compile(rf"{sign}((?:[^{sign}]|{sign}{sign})+){sign}|([^{sign}.\s]+)")
    parts, place = [], 0
    while match := part.match(text, place):
        parts.append(match[1].replace(quote * 2, quote) if match[1] is not None else match[2])
        place = match.end()
        if place == len(text):
            return parts
        if text[place] != ".":
            break
        place += 1
    raise Refusal(f"{text!r} is no name: its parts are divided by dots, each in {quote} where it has other signs.")


def _require_depth(parts: list[str], text: str, least: int, most: int | None = None) -> None:
    if len(parts) < least or (most and len(parts) > most):
        raise Refusal(f"{text!r} has to name a catalog, a schema and a table.")


# -- Spark: a part for each level


_SUBSTITUTED = re.compile(r"\$\{\S+?\}")  # also in quotes, by spark.sql.variable.substitute


def _spell_spark(name: Name) -> str:
    text = backquoted(name.catalog, *name.schema, name.object)
    if variable := _SUBSTITUTED.search(text):
        raise Refusal(f"{variable[0]!r} cannot be spelled in Spark, which replaces it by the value of a variable.")
    return text


def _read_spark(text: str) -> Name:
    parts = _split(text, "`")
    _require_depth(parts, text, 3)
    return Name(parts[0], tuple(parts[1:-1]), parts[-1])


# -- Flink: one level of databases, so that the levels above it are in the name of the catalog


def _spell_flink(name: Name) -> str:
    parts = (flink.name_of(name.catalog, name.schema[:-1]), name.schema[-1], name.object)
    if long := next((part for part in parts if len(part) > flink.LONGEST), None):
        raise Refusal(f"{long[:20]}... cannot be spelled in Flink, where names have {flink.LONGEST} signs.")
    return backquoted(*parts)


def _read_flink(text: str) -> Name:
    parts = _split(text, "`")
    _require_depth(parts, text, 3, 3)
    catalog, *parents = parts[0].split(".")
    return Name(catalog, (*parents, parts[1]), parts[2])


# -- Trino and DuckDB: the levels as one part, divided by dots


def _path(engine: str, schema: Levels) -> str:
    if odd := next((level for level in schema if "." in level), None):
        raise Refusal(f"Schema {odd!r} cannot be spelled in {engine}, which divides the levels of a schema by dots.")
    return ".".join(schema)


def _spell_trino(name: Name) -> str:
    parts = (name.catalog, _path("Trino", name.schema), name.object)
    if odd := next((part for part in parts[1:] if part != part.lower()), None):
        raise Refusal(f"{odd!r} cannot be spelled in Trino, where all names are lower-case, also in quotes.")
    if parts[1] == "information_schema":
        raise Refusal("Schema 'information_schema' cannot be spelled in Trino, which has its own.")
    if set("$@") & set(name.object):
        raise Refusal(f"{name.object!r} cannot be spelled in Trino, where $ and @ in a table's name name its metadata.")
    return double_quoted(parts[0].lower(), *parts[1:])


def _spell_duckdb(name: Name) -> str:
    return double_quoted(name.catalog, _path("DuckDB", name.schema), name.object)


def _read_dotted(text: str) -> Name:
    parts = _split(text, '"')
    _require_depth(parts, text, 3, 3)
    return Name(parts[0], tuple(parts[1].split(".")), parts[2])


# -- PyIceberg: a text of the levels divided by dots, which has no quotes; the catalog is loaded by its name


def _spell_pyiceberg(name: Name) -> str:
    parts = (*name.schema, name.object)
    if odd := next((part for part in parts if "." in part), None):
        raise Refusal(
            f"{odd!r} cannot be in a text for PyIceberg, which splits it at dots: give it a tuple, {parts!r}."
        )
    return ".".join(parts)


def pyiceberg_reader(catalog: str) -> Callable[[str], Name]:
    """Reads the tables of a catalog for PyIceberg."""

    def read(text: str) -> Name:
        *schema, table = text.split(".")
        if not schema or not all((*schema, table)):
            raise Refusal(f"{text!r} has to name a schema and a table.")
        return Name(catalog, tuple(schema), table)

    return read


SPELLINGS: Mapping[str, Spelling] = {
    each.engine: each
    for each in (
        Spelling("spark", _spell_spark, _read_spark),
        Spelling("flink", _spell_flink, _read_flink),
        Spelling("trino", _spell_trino, _read_dotted),
        Spelling("duckdb", _spell_duckdb, _read_dotted),
        Spelling("pyiceberg", _spell_pyiceberg, pyiceberg_reader("")),
    )
}
