"""Definitions of Hive-like schemas: `comment`, `location`, `parameters`, and system-specific fields."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from formats.native.changes import changed_schema
from providers.hive_like.catalog import HiveLikeCatalog
from providers.hive_like.parameters import checked, marker_of, without_marker
from providers.remote_objects import Json, Remote
from providers.stores import RemoteSchemas


class HiveLikeSchemas(RemoteSchemas):
    provider: HiveLikeCatalog

    @abstractmethod
    def with_properties(self, definition: Json, comment: str | None, properties: dict[str, str]) -> Json:
        """The definition with this comment and these properties. Raises Invalid, Unsupported."""

    def altered(self, definition: Json, changes: Sequence[Json]) -> Json:
        shown = self.show(definition)
        return self.with_properties(definition, *changed_schema(shown["comment"], shown["properties"], changes))

    def wanted(self, now: Json, changes: Sequence[Json] | None, expected: Json | None) -> Json:
        """The definition after the changes, or the expected one without any."""
        return (expected or {}) if changes is None else self.altered(now, changes)

    def show(self, definition: Json) -> Json:
        place = {"location": definition["location"]} if definition["location"] else {}
        return {"comment": definition["comment"], "properties": place | without_marker(definition["parameters"])}

    def is_marked(self, schema: Remote, marker: str) -> bool:
        return marker_of(schema.definition) == marker

    def split_location(
        self, definition: Mapping[str, Any], properties: dict[str, str]
    ) -> tuple[str | None, dict[str, str]]:
        """The location and the parameters from properties.

        The property `location` is the location, unless the schema has a parameter of that name.
        """
        parameters = checked(properties)
        if "location" in definition["parameters"]:
            return definition["location"], parameters
        return parameters.pop("location", None), parameters
