"""What Glue takes, by its own description of its API: lengths, and which characters a text may have.

AWS checks these only when it is asked. An entry that is all there is of a table or schema is refused before; one that
repeats a metadata file is made to fit.
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

# Characters beyond U+FFFF, which the description has as Java's two halves.
HALVES, WHOLE = r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF"
OURS = {  # Glue's words for what requests here call otherwise
    "StorageDescriptor": "",
    "Columns": "columns",
    "PartitionKeys": "partition columns",
    "Name": "name",
    "Type": "type",
    "Comment": "comment",
    "Description": "comment",
    "Parameters": "properties",
}
OTHERWISE = "ViewDefinition"  # written in another form than it is read


@cache
def _shape(name: str) -> Any:
    return ServiceModel(description("glue"), "glue").shape_for(name)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_shape(name).metadata.get("pattern", "(?s:.*)").replace(HALVES, WHOLE))


def fault(name: str, text: str) -> str:
    """Why Glue does not take a text of this shape, such as CommentString; empty if it does."""
    least, most = (_shape(name).metadata.get(end) for end in ("min", "max"))
    size = len(text) if _shape(name).metadata.get("pattern") else len(text.encode(errors="surrogatepass"))
    if most is not None and size > most:
        return f"has {size:,} characters, and AWS Glue takes {most:,} at most"
    if least and not text:
        return "is empty, which AWS Glue does not take"
    return "" if _pattern(name).fullmatch(text) else "has a line break or another character that AWS Glue does not take"


def require_fit(name: str, given: Mapping[str, Any], kind: str) -> None:
    """Raise Invalid, naming the place, if a text in a request's structure, such as TableInput, is none for Glue."""
    for place, shape, text in _texts(_shape(name), given, ""):
        if wrong := fault(shape, text):
            raise Invalid(f"{place}: {wrong}.", kind=kind)


def _texts(shape: Any, given: Any, place: str) -> Iterator[tuple[str, str, str]]:
    """Every text with its place and the name of its shape."""
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
    """An entry that repeats a metadata file, without what Glue does not take; that file has all of it."""
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
    """The text with a space for each character that Glue does not take, cut to its most, which AWS counts in bytes."""
    if not text or (not fault(name, text) and len(text) * 4 <= _shape(name).metadata["max"]):
        return text
    most, parts, start = _shape(name).metadata["max"], list[str](), 0
    text = text[:most]
    while start < len(text):  # to the next character that it does not take
        match = _pattern(name).match(text, start)
        end = match.end() if match else start
        parts += [text[start:end], " " if end < len(text) else ""]
        start = end + 1
    return "".join(parts).encode()[:most].decode(errors="ignore")
