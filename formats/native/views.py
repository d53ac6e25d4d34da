"""Request bodies of the native API for views: create, and the eight kinds of update.

Source: Gravitino's OpenAPI description, "ViewCreateRequest" and "ViewUpdateRequest"; updates of single
representations, `updateComment`, `securityMode` and per-representation defaults are our own design (docs/views.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from formats.native import view_definition
from formats.native.columns import Column, Name
from formats.native.tables import Properties, RemoveProperty, SetProperty, UpdateComment
from formats.native.view_definition import Representation, SecurityMode, ViewDefinition
from metalake.wire import Body


class SqlRepresentation(Body):
    """The view's query in one dialect; its defaults win over those of the view."""

    type: Literal["sql"]
    dialect: str
    sql: str
    default_catalog: str | None = None
    default_schema: str | None = None

    def representation(self, catalog: str | None = None, schema: str | None = None) -> Representation:
        """As plain data; missing defaults fall back to `catalog` and `schema`, the view's."""
        return Representation(
            dialect=self.dialect,
            sql=self.sql,
            default_catalog=self.default_catalog or catalog,
            default_schema=self.default_schema or schema,
        )


class ViewParts(Body):
    """The common fields of create and replace."""

    comment: str | None = None
    columns: list[Column] = []
    representations: list[SqlRepresentation]
    default_catalog: str | None = None
    default_schema: str | None = None

    def parts(self) -> dict[str, Any]:
        """The fields as arguments of a ViewDefinition."""
        defaults = self.default_catalog, self.default_schema
        return {
            "comment": self.comment,
            "columns": tuple(column.to_wire() for column in self.columns),
            "representations": tuple(each.representation(*defaults) for each in self.representations),
        }


class CreateViewRequest(ViewParts):
    """A new view. Without a security mode, its store's own is used."""

    name: Name
    security_mode: SecurityMode | None = Field(None, strict=False)
    properties: Properties = {}

    def definition(self) -> ViewDefinition:
        """The requested view. Raises Invalid, TooLarge."""
        wanted = ViewDefinition(**self.parts(), security_mode=self.security_mode, properties=self.properties)
        view_definition.check(wanted)
        return wanted


class RenameView(Body):
    """Rename the view; with a schema's name, move it there."""

    action: Literal["rename"] = Field(alias="@type")
    new_name: Name
    new_schema_name: Name | None = None


class ReplaceView(ViewParts):
    """Replace the view's body: what is left out is removed; its name and properties stay, and so does a security mode
    that is left out.
    """

    action: Literal["replaceView"] = Field(alias="@type")
    security_mode: SecurityMode | None = Field(None, strict=False)

    def parts(self) -> dict[str, Any]:
        mode = {} if self.security_mode is None else {"security_mode": self.security_mode}
        return super().parts() | mode


class AddRepresentation(Body):
    action: Literal["addRepresentation"] = Field(alias="@type")
    representation: SqlRepresentation


class UpdateRepresentation(Body):
    """Replace the query, and the defaults, of the dialect that the representation names."""

    action: Literal["updateRepresentation"] = Field(alias="@type")
    representation: SqlRepresentation


class RemoveRepresentation(Body):
    action: Literal["removeRepresentation"] = Field(alias="@type")
    dialect: str


ViewUpdate = TypeAliasType(
    "ViewUpdate",
    Annotated[
        RenameView
        | UpdateComment
        | SetProperty
        | RemoveProperty
        | ReplaceView
        | AddRepresentation
        | UpdateRepresentation
        | RemoveRepresentation,
        Field(discriminator="action"),
    ],
)


class ViewUpdatesRequest(Body):
    """Alterations, applied in order, all or none: together they are one new version."""

    updates: list[ViewUpdate] = Field(min_length=1)


BODY_CHANGES = (ReplaceView, AddRepresentation, UpdateRepresentation, RemoveRepresentation)
"""Updates of the SQL or columns; on a DEFINER view only its direct owner may make them."""


def altered(definition: ViewDefinition, updates: Sequence[Any]) -> ViewDefinition:
    """Apply the updates except renames, which are up to the store. Raises Invalid, TooLarge."""
    for update in updates:
        definition = _altered(definition, update)
    view_definition.check(definition)
    return definition


def _altered(definition: ViewDefinition, update: Any) -> ViewDefinition:
    match update:
        case UpdateComment():
            return replace(definition, comment=update.new_comment)
        case SetProperty():
            return replace(definition, properties={**definition.properties, update.property: update.value})
        case RemoveProperty():
            return replace(definition, properties=_without(definition.properties, update.property))
        case ReplaceView():
            return replace(definition, **update.parts())
        case AddRepresentation():
            return view_definition.added(definition, update.representation.representation())
        case UpdateRepresentation():
            return view_definition.updated(definition, update.representation.representation())
        case RemoveRepresentation():
            return view_definition.removed(definition, update.dialect)
    return definition


def _without(properties: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key != name}
