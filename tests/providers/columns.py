"""Changes of tables in memory: their definitions, and the numbers by which the system itself tells columns."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from formats.native.tables import (
    AddColumn,
    DeleteColumn,
    KeepProperty,
    RemoveProperty,
    RenameColumn,
    SetProperty,
    UpdateComment,
)
from metalake.errors import Invalid, Unsupported

Json = dict[str, Any]


def altered(definition: Json, updates: Sequence[Any]) -> Json:
    """Raises Invalid, Unsupported."""
    changed = deepcopy(definition)
    for update in updates:
        match update:
            case KeepProperty():
                pass
            case SetProperty():
                changed["properties"][update.property] = update.value
            case RemoveProperty():
                changed["properties"].pop(update.property, None)
            case UpdateComment():
                changed["comment"] = update.new_comment
            case AddColumn():
                name = update.field_name[0]
                if any(column["name"] == name for column in changed["columns"]):
                    raise Invalid(f"Column {name} already exists.", kind="column")
                changed["columns"].append({"name": name, "type": update.type, "nullable": True, "autoIncrement": False})
            case DeleteColumn():
                changed["columns"] = [one for one in changed["columns"] if one["name"] != update.field_name[0]]
            case RenameColumn():
                for one in changed["columns"]:
                    if one["name"] == update.old_field_name[0]:
                        one["name"] = update.new_field_name
            case _:
                raise Unsupported("Memory cannot change that.", kind="table")
    return changed


def renumbered(there: Json, wanted: Json, updates: Sequence[Any]) -> dict[str, int]:
    """The columns' numbers after updates: what is renamed keeps its own, what is added gets one that none had."""
    numbers = numbered(there)
    last = max([there.get("last_number", 0), *numbers.values()])
    for update in updates:
        if isinstance(update, RenameColumn):
            numbers[update.new_field_name] = numbers.pop(update.old_field_name[0])
        elif isinstance(update, DeleteColumn):
            numbers.pop(update.field_name[0], None)
    kept = {column["name"]: numbers.get(column["name"]) for column in wanted["columns"]}
    fresh = iter(range(last + 1, last + 1 + len(kept)))
    result = {name: number or next(fresh) for name, number in kept.items()}
    there["last_number"] = max([last, *result.values()])
    return result


def numbered(there: Json) -> dict[str, int]:
    """The numbers of a table's columns; those of a table that was just made are their positions."""
    made = {column["name"]: position + 1 for position, column in enumerate(there["definition"]["columns"])}
    return dict(there.get("numbers", made))
