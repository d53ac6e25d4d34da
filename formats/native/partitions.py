"""JSON bodies of the native API for partitions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from formats.native.columns import FieldName, LiteralValue
from formats.native.tables import Properties
from metalake.wire import Body


class IdentityPartition(Body):
    """A partition that holds the rows with the given values, one for each partition column."""

    type: Literal["identity"]
    name: str | None = None
    field_names: list[FieldName] = Field(min_length=1)
    values: list[LiteralValue] = Field(min_length=1)
    properties: Properties = {}
