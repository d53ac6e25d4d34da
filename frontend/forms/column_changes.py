"""The form that alters a table's columns, and the native API's updates that lead from them to what was typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms

from formats.native.outlines import native_type_text
from frontend.confusables import spelled
from frontend.forms.tables import MORE, ColumnRow, Json, read_type, rows_of, show_at_row
from metalake.errors import MetalakeError
from providers.table_shapes import TableShape

CYCLE = "That is still the name of another column. Rename in two steps, with a name between."
STALE = "The columns were changed by somebody else meanwhile; nothing was saved. What you typed is below."


class ChangeRow(ColumnRow):
    """A column as it will be; `was` is its name now, empty for a new one."""

    was = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)
    place = forms.IntegerField(required=False, min_value=1, max_value=10_000, widget=forms.NumberInput)
    drop = forms.BooleanField(required=False)

    def __init__(self, *args: Any, shape: TableShape, now: Mapping[str, Json], **options: Any) -> None:
        super().__init__(*args, shape=shape, **options)
        self.now = now.get(self["was"].value() or "")
        self.fields["place"].disabled = "moving" in shape.lacks
        if self.now is None:
            self.fields["drop"].disabled = True
        self.order_fields(["place", "name", "type", "required", "comment", "drop", "was"])

    def clean_type(self) -> Any:
        text = self.cleaned_data["type"]
        if self.now is not None and text.strip() == native_type_text(self.now["type"]):
            return self.now["type"]
        return read_type(text, self.shape)


def initial_of(columns: Sequence[Json]) -> list[Json]:
    """The rows of a table's columns."""
    return [
        {
            "was": column["name"],
            "name": column["name"],
            "type": native_type_text(column["type"]),
            "required": not column.get("nullable", True),
            "comment": column.get("comment") or "",
            "place": place,
        }
        for place, column in enumerate(columns, 1)
    ]


@dataclass
class Changes:
    """The updates in the order in which they are applied; each with its sentence, and the row that asks for it."""

    updates: list[Json] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)

    def add(self, row: Any, kind: str, says: str, **parts: Any) -> None:
        self.updates.append({"@type": kind, **parts})
        self.sentences.append(says)
        self.rows.append(row)


class ColumnChanges:
    """The rows of a table of these columns, as sent or as they are now."""

    def __init__(
        self, columns: Sequence[Json], shape: TableShape, data: Mapping[str, Any] | None, *, more: bool, checks: bool
    ) -> None:
        self.now = {column["name"]: column for column in columns}
        self.rows = rows_of(
            "columns", shape, data, MORE["columns"] if more else 0,
            row=ChangeRow, checks=checks, initial=initial_of(columns), form_kwargs={"now": self.now},
        )  # fmt: skip
        self.errors: list[str] = []

    def is_valid(self) -> bool:
        valid: bool = self.rows.is_valid()
        return valid

    def changes(self) -> Changes:
        """What differs from the columns as they are now. Marks the rows of a rename that cannot be made at once."""
        old = [row for row in self.rows if row.now is not None]
        new = [row for row in self.rows if row.now is None and row.has_changed()]
        changes = Changes()
        stays = [row for row in old if not row.cleaned_data.get("drop")]
        for row in old:
            if row not in stays:
                name = row.now["name"]
                changes.add(row, "deleteColumn", f"Column {spelled(name)} is dropped.", fieldName=[name])
        if not self._rename(stays, changes):
            return changes
        for row in stays:
            _change(row, changes)
        for row in new:
            body = row.body()
            name = body.pop("name")
            says = f"Column {spelled(name)} is added, of type {native_type_text(body['type'])}."
            changes.add(row, "addColumn", says, fieldName=[name], **body)
        _move(stays, new, changes)
        return changes

    def _rename(self, stays: list[Any], changes: Changes) -> bool:
        """Renames in an order in which each new name is free; False if there is none, which their rows say then."""
        waiting = [row for row in stays if row.cleaned_data["name"] != row.now["name"]]
        while waiting:
            names = {row.now["name"] for row in waiting}
            free = [row for row in waiting if row.cleaned_data["name"] not in names]
            if not free:
                for row in waiting:
                    row.add_error("name", CYCLE)
                return False
            for row in free:
                old, new = row.now["name"], row.cleaned_data["name"]
                says = f"Column {spelled(old)} is renamed to {spelled(new)}."
                changes.add(row, "renameColumn", says, oldFieldName=[old], newFieldName=new)
                waiting.remove(row)
        return True

    def refuse(self, refusal: MetalakeError, changes: Changes) -> None:
        """Show a service's error at the row whose change it names."""
        if not show_at_row(refusal.message, "updates", changes.rows):
            self.errors.append(refusal.message)


def _change(row: Any, changes: Changes) -> None:
    """The updates of a column that stays, under its new name."""
    now, given = row.now, row.cleaned_data
    name, shown = given["name"], spelled(given["name"])
    if given["type"] != now["type"]:
        old, new = native_type_text(now["type"]), native_type_text(given["type"])
        says = f"The type of {shown} changes from {old} to {new}."
        changes.add(row, "updateColumnType", says, fieldName=[name], newType=given["type"])
    if given["required"] == now.get("nullable", True):
        says = f"Column {shown} becomes {'required' if given['required'] else 'optional'}."
        changes.add(row, "updateColumnNullability", says, fieldName=[name], nullable=not given["required"])
    if given["comment"] != (now.get("comment") or ""):
        says = f"The comment of {shown} changes." if given["comment"] else f"The comment of {shown} is removed."
        changes.add(row, "updateColumnComment", says, fieldName=[name], newComment=given["comment"] or None)


def _move(stays: list[Any], new: list[Any], changes: Changes) -> None:
    """Moves for the rows whose place was typed anew: each stands at that place in the end."""
    order = [row.cleaned_data["name"] for row in (*stays, *new)]
    wanted = list(order)
    moved = [row for row in (*stays, *new) if "place" in row.changed_data and row.cleaned_data.get("place")]
    for row in sorted(moved, key=lambda row: int(row.cleaned_data["place"])):
        name = row.cleaned_data["name"]
        wanted.remove(name)
        wanted.insert(row.cleaned_data["place"] - 1, name)
    rows = {row.cleaned_data["name"]: row for row in (*stays, *new)}
    for row in sorted(moved, key=lambda row: wanted.index(row.cleaned_data["name"])):
        name = row.cleaned_data["name"]
        before = wanted[wanted.index(name) - 1] if wanted.index(name) else None
        order.remove(name)
        order.insert(order.index(before) + 1 if before else 0, name)
        position: Any = {"after": before} if before else "first"
        says = f"Column {spelled(name)} moves {f'after {spelled(before)}' if before else 'to the beginning'}."
        changes.add(rows[name], "updateColumnPosition", says, fieldName=[name], newPosition=position)
