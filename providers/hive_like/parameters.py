"""Formats and parameters of Hive-like tables and schemas, including our marker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from formats.hive.tables import HiveTable, formats_of
from formats.hive.views.forms import Form, detect
from formats.iceberg import forbidden_properties
from metalake.errors import Invalid
from providers.remote_objects import METADATA_FILE, Remote

Json = dict[str, Any]

MARKER = "metalake.intent"  # the parameter that identifies an object written by one of our intents
POINTER, PREVIOUS = "metadata_location", "previous_metadata_location"
MADE_HERE = frozenset({"iceberg", "hive"})  # formats of tables that can be created here


def formats_in(table: HiveTable) -> str:
    """A table's formats, or a view's form, as the string for `Remote.formats`."""
    if table.is_view:
        form = detect(table)
        return f"{form},{METADATA_FILE}" if form is Form.ICEBERG and table.parameters.get(POINTER) else form.value
    formats = formats_of(table)
    is_pointed = "iceberg" in formats and table.parameters.get(POINTER)
    return ",".join(sorted(formats | {METADATA_FILE} if is_pointed else formats))


def formats_of_remote(table: Remote) -> frozenset[str]:
    words = table.formats or formats_in(HiveTable.from_json(table.definition))
    return frozenset(words.split(","))


def marked(definition: Json, marker: str) -> Json:
    """The definition with our marker; unchanged if the marker is empty."""
    return definition | {"parameters": definition["parameters"] | {MARKER: marker}} if marker else definition


def marker_of(definition: Json) -> str:
    return str(definition["parameters"].get(MARKER, ""))


def without_marker(parameters: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in parameters.items() if key != MARKER}


def checked(properties: Mapping[str, str]) -> dict[str, str]:
    """Validate properties. Raises TooLarge for too many or too long ones, Invalid for our marker's name."""
    forbidden_properties.check_limits(properties)
    for name in properties:
        if name.lower() == MARKER:
            raise Invalid(f"properties.{name}: it is written by Metalake", kind="property")
    return dict(properties)
