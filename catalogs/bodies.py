"""Request bodies of the native API for metalakes, catalogs and schemas: create, enable, alter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from catalogs.services.alterations import Alteration
from formats.native.columns import Name, lower
from formats.native.tables import Properties, RemoveProperty, SetProperty, UpdateComment
from metalake.kinds import CatalogType
from metalake.wire import Body


class CreateMetalakeRequest(Body):
    """A new metalake."""

    name: Name
    comment: str | None = None
    properties: Properties = {}


class CreateCatalogRequest(Body):
    """A new catalog; its provider defines the properties."""

    name: Name
    type: Annotated[str, BeforeValidator(lower), Field(examples=list(CatalogType))]
    provider: str | None = None
    comment: str | None = None
    properties: Properties = {}


class CreateSchemaRequest(Body):
    """A new schema; in a nested catalog the name is the whole path, and missing parents are created too."""

    name: Name
    comment: str | None = None
    properties: Properties = {}


class EnableRequest(Body):
    """Whether the object is in use; objects below a disabled one cannot be used."""

    in_use: bool


class Rename(Body):
    action: Literal["rename"] = Field(alias="@type")
    new_name: Name


ContainerUpdate = Annotated[
    Rename | UpdateComment | SetProperty | RemoveProperty,
    Field(discriminator="action"),
]
SchemaUpdate = Annotated[SetProperty | RemoveProperty, Field(discriminator="action")]


class UpdatesRequest(Body):
    """Alterations of a metalake or catalog, applied in order, all or none. An empty list changes nothing."""

    updates: list[ContainerUpdate]


class SchemaUpdatesRequest(Body):
    """Alterations of a schema, applied in order, all or none. An empty list changes nothing."""

    updates: list[SchemaUpdate]


def alteration(updates: Sequence[Rename | UpdateComment | SetProperty | RemoveProperty]) -> Alteration:
    """The updates as one alteration; of several renames or comments the last wins."""
    new_name: str | None = None
    comment: str | None = None
    sets_comment = False
    properties: list[tuple[str, str | None]] = []
    for update in updates:
        match update:
            case Rename():
                new_name = update.new_name
            case UpdateComment():
                comment, sets_comment = update.new_comment, True
            case SetProperty():
                properties.append((update.property, update.value))
            case RemoveProperty():
                properties.append((update.property, None))
    return Alteration(new_name, comment, sets_comment, tuple(properties))
