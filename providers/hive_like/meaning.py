"""What tables and schemas in Hive's terms share: their formats, their parameters, and our marker among these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from formats.hive.tables import HiveTable, formats_of
from formats.iceberg import guard
from metalake.errors import Invalid
from providers.answers import METADATA_FILE, Remote

Json = dict[str, Any]

MARKER = "metalake.intent"  # the parameter that tells a remote object of ours from a namesake
POINTER, PREVIOUS = "metadata_location", "previous_metadata_location"
MADE_HERE = frozenset({"iceberg", "hive"})  # formats of tables that are made here


def formats_in(table: HiveTable) -> str:
    """A table's formats as a Remote has them."""
    formats = formats_of(table)
    is_pointed = "iceberg" in formats and table.parameters.get(POINTER)
    return ",".join(sorted(formats | {METADATA_FILE} if is_pointed else formats))


def formats_of_remote(table: Remote) -> frozenset[str]:
    words = table.formats or formats_in(HiveTable.from_json(table.definition))
    return frozenset(words.split(","))


def marked(definition: Json, marker: str) -> Json:
    """The definition as that of a write of ours; without a marker as it is."""
    return definition | {"parameters": definition["parameters"] | {MARKER: marker}} if marker else definition


def marker_of(definition: Json) -> str:
    return str(definition["parameters"].get(MARKER, ""))


def without_marker(parameters: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key != MARKER}


def checked(properties: Mapping[str, str]) -> dict[str, str]:
    """Raises Invalid where there are too many of them, and for the one that is ours."""
    guard.check_limits(properties)
    if MARKER in properties:
        raise Invalid(f"properties.{MARKER}: it is written by Metalake", kind="property")
    return dict(properties)
