"""Glue's limits on the length and characters of strings, from its API model.

AWS checks these only during the call. We check entries that are a table's or schema's only definition beforehand, and
trim those that merely repeat a metadata file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from botocore.model import ServiceModel

from formats.hive.tables import HiveTable
from metalake.errors import Invalid
from providers.network.aws import description

# Characters beyond U+FFFF, which the API model writes as Java surrogate pairs.
HALVES, WHOLE = r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF"
OURS = {  # Glue's field -> the name in our requests
    "StorageDescriptor": "",
    "Columns": "columns",
    "PartitionKeys": "partition columns",
    "Name": "name",
    "Type": "type",
    "Comment": "comment",
    "Description": "comment",
    "Parameters": "properties",
}
OTHERWISE = "ViewDefinition"  # its write format differs from its read format


@cache
def _shape(name: str) -> Any:
    return ServiceModel(description("glue"), "glue").shape_for(name)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_shape(name).metadata.get("pattern", "(?s:.*)").replace(HALVES, WHOLE))


def fault(name: str, text: str) -> str:
    """Why Glue rejects a string of this shape, such as CommentString; empty if it does not."""
    least, most = (_shape(name).metadata.get(end) for end in ("min", "max"))
    size = len(text) if _shape(name).metadata.get("pattern") else len(text.encode(errors="surrogatepass"))
    if most is not None and size > most:
        return f"has {size:,} characters, and AWS Glue takes {most:,} at most"
    if least and not text:
        return "is empty, which AWS Glue does not take"
    return "" if _pattern(name).fullmatch(text) else "has a line break or another character that AWS Glue does not take"


def require_fit(name: str, given: Mapping[str, Any], kind: str) -> None:
    """Raise Invalid, with its path, for a string in a request's structure, such as TableInput, that Glue rejects."""
    for place, shape, text in _texts(_shape(name), given, ""):
        if wrong := fault(shape, text):
            raise Invalid(f"{place}: {wrong}.", kind=kind)


def _texts(shape: Any, given: Any, place: str) -> Iterator[tuple[str, str, str]]:
    """Every string as (path, shape, value)."""
    if isinstance(given, str) and shape.type_name == "string":
        yield place, shape.name, given
    elif isinstance(given, list) and shape.type_name == "list":
        for index, each in enumerate(given):
            yield from _texts(shape.member, each, f"{place}[{index}]")
    elif isinstance(given, dict) and shape.type_name == "map":
        for key, value in given.items():
            yield place, shape.key.name, key
            yield from _texts(shape.value, value, f"{place}.{key[:40]}")
    elif isinstance(given, dict) and shape.type_name == "structure":
        for name in given.keys() & shape.members.keys() - {OTHERWISE}:
            yield from _texts(shape.members[name], given[name], f"{place}.{OURS.get(name, name)}".strip("."))


def fitting(entry: HiveTable) -> HiveTable:
    """An entry that repeats a metadata file, without what Glue rejects; the file has all of it."""
    return replace(
        entry,
        comment=_fitting("DescriptionString", entry.comment),
        columns=tuple(
            replace(column, comment=_fitting("CommentString", column.comment))
            for column in entry.columns
            if not (fault("NameString", column.name) or fault("ColumnTypeString", column.type))
        ),
        parameters={
            key: value
            for key, value in entry.parameters.items()
            if not (fault("KeyString", key) or fault("ParametersMapValue", value))
        },
    )


def _fitting(name: str, text: str | None) -> str | None:
    """The text with rejected characters replaced by spaces, cut to Glue's maximum, which AWS counts in bytes."""
    if not text or (not fault(name, text) and len(text) * 4 <= _shape(name).metadata["max"]):
        return text
    most, parts, start = _shape(name).metadata["max"], list[str](), 0
    text = text[:most]
    while start < len(text):  # up to the next rejected character
        match = _pattern(name).match(text, start)
        end = match.end() if match else start
        parts += [text[start:end], " " if end < len(text) else ""]
        start = end + 1
    return "".join(parts).encode()[:most].decode(errors="ignore")
