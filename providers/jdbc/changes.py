"""New tables, and changes of tables, as definitions; nothing here makes a call."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from formats.native import tables as native
from formats.native.columns import Column
from formats.native.tables import CreateTableRequest, Index
from metalake.errors import Invalid, TooLarge, Unsupported
from metalake.kinds import Kind
from metalake.wire import quote
from providers.jdbc.ddl import Ddl
from providers.jdbc.definitions import PRIMARY, UNIQUE, Json

MOST_COLUMNS = 1_600
COLUMN_FIELDS = ("type", "comment", "nullable", "autoIncrement", "defaultValue")


def drafted(ddl: Ddl, asked: CreateTableRequest) -> Json:
    """A new table's definition. Raises Invalid, TooLarge, and Unsupported for what the database cannot store."""
    if parts := [part for part in asked.layout() if part != "indexes"]:
        raise Unsupported(f"{parts[0]}: {ddl.label} catalogs make plain tables alone", kind=Kind.TABLE)
    if asked.properties:
        raise _no_properties(ddl, next(iter(asked.properties)))
    if not asked.columns:
        raise Invalid("columns: a table has at least one", kind=Kind.TABLE)
    if len(asked.columns) > MOST_COLUMNS:
        raise TooLarge(f"columns: there are {len(asked.columns)}; at most {MOST_COLUMNS} are allowed", kind=Kind.TABLE)
    ddl.check_name(asked.name, Kind.TABLE)
    definition: Json = {"comment": asked.comment, "columns": [], "indexes": [], "properties": {}}
    for number, column in enumerate(asked.columns):
        _add(definition, _new_column(ddl, column, f"columns[{number}]"), "default")
    for index in asked.indexes:
        _add_index(ddl, definition, index)
    return definition


def changed(ddl: Ddl, definition: Json, update: Any) -> Json:
    """The definition after one update. Raises Invalid, Unsupported."""
    after = deepcopy(definition)
    match update:
        case native.KeepProperty():
            pass
        case native.UpdateComment():
            after["comment"] = update.new_comment
        case native.SetProperty() | native.RemoveProperty():
            raise _no_properties(ddl, update.property)
        case native.AddColumn():
            given = {key: value for key, value in update.to_wire().items() if key in COLUMN_FIELDS}
            new = Column.model_validate(given | {"name": _plain(update.field_name)})
            _add(after, _new_column(ddl, new, "addColumn"), update.position)
        case native.DeleteColumn():
            name = _plain(update.field_name)
            if update.if_exists and all(column["name"] != name for column in after["columns"]):
                return after
            after["columns"].remove(column_of(after, name))
            if not after["columns"]:
                raise Invalid("deleteColumn: a table keeps at least one column", kind=Kind.TABLE)
            if index := next((each for each in after["indexes"] if [name] in each["fieldNames"]), None):
                message = f"deleteColumn: {quote(name)} is in the key {index['name']}; drop that first"
                raise Invalid(message, kind=Kind.TABLE)
        case native.RenameColumn():
            old, name = _plain(update.old_field_name), ddl.check_name(update.new_field_name, Kind.COLUMN)
            column = column_of(after, old)
            _require_new(after, name)
            column["name"] = name
            for index in after["indexes"]:
                index["fieldNames"] = [[name] if field == [old] else field for field in index["fieldNames"]]
        case native.UpdateColumnType():
            column = column_of(after, _plain(update.field_name))
            column["spelling"] = ddl.spelled(update.to_wire()["newType"], "updateColumnType.newType")
            column["type"] = ddl.native(column["spelling"])
            for default in (column.get("defaultValue"), column["restated"].get("shown")):
                if default and default.get("dataType", "null") != "null":
                    default["dataType"] = column["type"]
        case native.UpdateColumnComment():
            column_of(after, _plain(update.field_name))["comment"] = update.new_comment
        case native.UpdateColumnNullability():
            column = column_of(after, _plain(update.field_name))
            if update.nullable and _is_primary(after, column["name"]):
                raise Invalid(
                    f"updateColumnNullability: {quote(column['name'])} is in the primary key", kind=Kind.TABLE
                )
            column["nullable"] = update.nullable
        case native.UpdateColumnDefaultValue():
            column = column_of(after, _plain(update.field_name))
            if column["autoIncrement"]:
                message = f"updateColumnDefaultValue: {quote(column['name'])} counts by itself"
                raise Invalid(message, kind=Kind.COLUMN)
            column["defaultValue"] = update.new_default_value.to_wire()
            ddl.default(column["defaultValue"], column["name"])
        case native.UpdateColumnAutoIncrement():
            column = column_of(after, _plain(update.field_name))
            column["autoIncrement"] = update.auto_increment
            column["nullable"] = column["nullable"] and not update.auto_increment
        case native.UpdateColumnPosition():
            column = column_of(after, _plain(update.field_name))
            after["columns"].remove(column)
            _place(after, column, update.new_position)
        case native.AddTableIndex():
            _add_index(ddl, after, update.index)
        case native.DeleteTableIndex():
            index = next((each for each in after["indexes"] if each["name"] == update.name), None)
            if index is None and not update.if_exists:
                raise Invalid(f"deleteTableIndex: there is no key {quote(update.name)}", kind=Kind.TABLE)
            after["indexes"] = [each for each in after["indexes"] if each is not index]
        case _:
            raise Unsupported(f"updates: {ddl.label} catalogs cannot do that", kind=Kind.TABLE)
    return after


def _new_column(ddl: Ddl, column: Column, place: str) -> Json:
    wire = column.to_wire()
    spelling = ddl.spelled(wire["type"], f"{place}.type")
    new = {
        "name": ddl.check_name(column.name, Kind.COLUMN),
        "type": ddl.native(spelling),
        "spelling": spelling,
        "nullable": column.nullable and not column.auto_increment,
        "autoIncrement": column.auto_increment,
        "comment": column.comment or None,
        "defaultValue": wire.get("defaultValue"),
        "restated": {},
    }
    ddl.column_default(new)  # to refuse what cannot be stored
    return new


def _add(definition: Json, column: Json, position: Any) -> None:
    _require_new(definition, column["name"])
    _place(definition, column, position)


def _place(definition: Json, column: Json, position: Any) -> None:
    columns = definition["columns"]
    match position:
        case "first":
            columns.insert(0, column)
        case native.After():
            columns.insert(columns.index(column_of(definition, position.after)) + 1, column)
        case _:
            columns.append(column)


def _add_index(ddl: Ddl, definition: Json, index: Index) -> None:
    if index.index_type not in (PRIMARY, UNIQUE):
        raise Unsupported(
            f"indexes: {ddl.label} catalogs make keys ({PRIMARY}, {UNIQUE}), not {index.index_type}", kind="table"
        )
    if index.properties:
        raise Unsupported("indexes: the properties of a key cannot be stored", kind=Kind.TABLE)
    fields = [_plain(field) for field in index.field_names]
    if len(set(fields)) < len(fields):
        raise Invalid("indexes: a key names a column once", kind=Kind.TABLE)
    for field in fields:
        column = column_of(definition, field)
        if index.index_type == PRIMARY:
            column["nullable"] = False
    if index.index_type == PRIMARY and any(each["indexType"] == PRIMARY for each in definition["indexes"]):
        raise Invalid("indexes: a table has one primary key", kind=Kind.TABLE)
    name = ddl.check_name(index.name, "index") if index.name else None
    if name and any(each["name"] == name for each in definition["indexes"]):
        raise Invalid(f"indexes: there are two of the name {quote(name)}", kind=Kind.TABLE)
    definition["indexes"].append({"indexType": index.index_type, "name": name, "fieldNames": [[f] for f in fields]})


def _is_primary(definition: Json, name: str) -> bool:
    return any(each["indexType"] == PRIMARY and [name] in each["fieldNames"] for each in definition["indexes"])


def column_of(definition: Json, name: str) -> Json:
    for column in definition["columns"]:
        if column["name"] == name:
            there: Json = column
            return there
    raise Invalid(f"There is no column {quote(name)}.", kind=Kind.COLUMN)


def _require_new(definition: Json, name: str) -> None:
    if any(column["name"] == name for column in definition["columns"]):
        raise Invalid(f"There are two columns of the name {quote(name)}.", kind=Kind.COLUMN)


def is_placed(update: Any) -> bool:
    """Whether an update gives a column its position."""
    is_new = isinstance(update, native.AddColumn) and update.position != "default"
    return is_new or isinstance(update, native.UpdateColumnPosition)


def _plain(field: list[str]) -> str:
    if len(field) != 1:
        raise Unsupported(f"fieldName: columns have no fields here: {'.'.join(field)}", kind=Kind.COLUMN)
    return field[0]


def _no_properties(ddl: Ddl, name: str) -> Unsupported:
    return Unsupported(
        f"properties.{name}: {ddl.label} has no properties of tables; what is shown there is the database's own",
        kind=Kind.TABLE,
    )
