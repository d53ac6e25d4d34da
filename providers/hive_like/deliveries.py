"""Validates entries from a harvest's crawler, which, unlike the system's own responses, are untrusted."""

from __future__ import annotations

from typing import Annotated, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from formats.hive.tables import HiveTable
from metalake.errors import Invalid
from metalake.kinds import Kind
from metalake.wire import explain
from providers.remote_objects import Json

Name = Annotated[str, Field(min_length=1)]
Identity = Annotated[str, Field(max_length=128)]


class Entry(BaseModel):
    """An entry without unknown fields or type coercion."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TableEntry(Entry):
    """A table, defined as a HiveTable."""

    identity: Identity
    definition: HiveTable


AnyEntry = TypeVar("AnyEntry", bound=Entry)


def checked(entry: type[AnyEntry], given: Json, kind: Kind) -> AnyEntry:
    """Parse an entry. Raises Invalid with the path of the first error."""
    try:
        return entry.model_validate_json(orjson.dumps(given))
    except ValidationError as wrong:
        raise Invalid(explain(wrong, given), kind=kind) from None


def require_named(table: HiveTable) -> HiveTable:
    if not table.name:
        raise Invalid("definition.name: must have 1 or more characters", kind=Kind.TABLE)
    return table
