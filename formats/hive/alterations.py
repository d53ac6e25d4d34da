"""Native API updates of a Hive table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from formats.hive.column_changes import COLUMN_CHANGES, ColumnsDraft
from formats.hive.properties import PLACES, SERDE_PARAMETER, require_changeable
from formats.hive.tables import HiveTable
from formats.native import tables as wire
from metalake.errors import Invalid, Unsupported

REFUSED = {
    wire.RenameTable: "a rename is made alone, not as a change of what the table says",
    wire.UpdateColumnNullability: "every Hive column may hold nulls",
    wire.UpdateColumnAutoIncrement: "Hive does not count rows by itself",
    wire.UpdateColumnDefaultValue: "Hive columns have no default but null",
    wire.AddTableIndex: "Hive has no indexes",
    wire.DeleteTableIndex: "Hive has no indexes",
}
OPTIONAL_PLACES = frozenset({"serde-name"})


def rename_of(changes: Sequence[wire.TableUpdate]) -> wire.RenameTable | None:
    """The rename among the changes, or None. Raises Invalid if combined with other changes."""
    renames = [change for change in changes if isinstance(change, wire.RenameTable)]
    if renames and len(changes) > 1:
        raise Invalid("updates: a rename cannot be combined with other changes", kind="table")
    return renames[0] if renames else None


def altered(table: HiveTable, changes: Sequence[wire.TableUpdate | wire.KeepProperty]) -> HiveTable:
    """The table after applying native updates in order, all or none.

    No-op updates return an equal table. The caller checks the new `location`, and whether the files are readable with
    the new columns. Raises Unsupported if Hive cannot do it, Invalid for a wrong update; both name the update.
    """
    draft = _Draft(table)
    for position, change in enumerate(changes):
        draft.apply(change, f"updates[{position}]")
    return draft.outcome()


@dataclass
class _Draft:
    """A table being changed; its columns are parsed lazily."""

    table: HiveTable
    columns: ColumnsDraft | None = None
    parameters: dict[str, str] = field(init=False)
    serde_parameters: dict[str, str] = field(init=False)
    places: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parameters = dict(self.table.parameters)
        self.serde_parameters = dict(self.table.serde_parameters)

    def apply(self, change: wire.TableUpdate | wire.KeepProperty, where: str) -> None:
        if reason := REFUSED.get(type(change)):
            raise Unsupported(f"{where}: {reason}", kind="table")
        match change:
            case wire.KeepProperty():
                pass
            case wire.UpdateComment():
                self.set_comment(change.new_comment)
            case wire.SetProperty():
                require_changeable(change.property, f"{where}.property")
                self.set_property(change.property, change.value)
            case wire.RemoveProperty():
                require_changeable(change.property, f"{where}.property")
                self.remove_property(change.property, f"{where}.property")
            case _:
                self.columns = self.columns or ColumnsDraft.of(self.table, where)
                COLUMN_CHANGES[type(change)](self.columns, change, where)

    def set_comment(self, comment: str | None) -> None:
        """Set the comment, and the parameter `comment` if the table also has that."""
        self.places["comment"] = comment
        repeated = self.parameters.pop("comment", None)
        if repeated is not None and comment is not None:
            self.parameters["comment"] = comment

    def set_property(self, name: str, value: str) -> None:
        """Set a property where it is visible: a parameter shadows an attribute of the same name, so it comes first."""
        if name in self.parameters or not (name in PLACES or name.startswith(SERDE_PARAMETER)):
            self.parameters[name] = value
        elif name in PLACES:
            self.places[PLACES[name]] = value
            if name == "location" and "path" in self.serde_parameters:
                self.serde_parameters["path"] = value  # where Spark looks for its own tables' files
        else:
            self.serde_parameters[name.removeprefix(SERDE_PARAMETER)] = value

    def remove_property(self, name: str, where: str) -> None:
        if name in self.parameters:
            del self.parameters[name]
        elif name in OPTIONAL_PLACES:
            self.places[PLACES[name]] = None
        elif name in PLACES:
            raise Invalid(f"{where}: a table always has a {name}; set another instead", kind="table")
        else:
            self.serde_parameters.pop(name.removeprefix(SERDE_PARAMETER), None)

    def outcome(self) -> HiveTable:
        table = replace(self.table, parameters=self.parameters, serde_parameters=self.serde_parameters, **self.places)
        return table if self.columns is None else self.columns.applied(table)
