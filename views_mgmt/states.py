"""Reads version states from Iceberg view metadata."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from formats.iceberg.views.translate import from_iceberg_view
from formats.native import view_definition
from metalake.errors import MetalakeError
from views_mgmt.versions import Form, State

ICEBERG = Form("iceberg", "iceberg")
Json = dict[str, Any]


def present_state(metadata: Json, location: str) -> State:
    """The current version. Raises Invalid or TooLarge for a definition that Metalake does not store."""
    return _state(metadata, location, metadata["current-version-id"])


def states_in(metadata: Json, location: str) -> list[State]:
    """The readable versions in a metadata file, oldest first, the current one last.

    Raises Invalid or TooLarge for the current one.
    """
    return [*past_states(metadata, location), present_state(metadata, location)]


def past_states(metadata: Json, location: str) -> Iterator[State]:
    """The readable earlier versions in a metadata file, oldest first."""
    versions = sorted(metadata["versions"], key=lambda each: (each.get("timestamp-ms") or 0, each["version-id"]))
    for version in versions:
        if version["version-id"] != metadata["current-version-id"]:
            with suppress(MetalakeError):
                yield _state(metadata, location, version["version-id"])


def _state(metadata: Json, location: str, version_id: int) -> State:
    version = next((each for each in metadata["versions"] if each["version-id"] == version_id), None)
    definition = from_iceberg_view(metadata, version)
    view_definition.check(definition)
    return State(definition, {"metadata-location": location, "version-id": version_id})
