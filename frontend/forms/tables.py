"""The form of a new table: its columns, partitions and sort order are rows, of which empty ones do not count."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from formats.native.columns import parse_primitive
from frontend.forms.fields import DescribedForm, name_field
from frontend.forms.properties import PropertiesField
from metalake.errors import AlreadyExists, MetalakeError
from metalake.wire import quote
from providers.table_shapes import TableShape

Json = dict[str, Any]
MOST_ROWS = 130  # of one part: Django takes 1,000 fields in a request
FEWER = 2  # after the rows that there are
MORE = {"columns": 5, "partitioning": 2, "sorting": 2}
"""Empty rows at first, and how many are added at a time."""
WITH_WIDTH = {"bucket": "numBuckets", "truncate": "width"}
_PROPERTY = re.compile(r"properties\.(\S+): (?=\S)")
_GENERIC = re.compile(r"\s*(list|map)\s*<(.*)>\s*", re.IGNORECASE | re.DOTALL)


def _line(placeholder: str = "", **attrs: str) -> forms.TextInput:
    plain = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false", "placeholder": placeholder}
    return forms.TextInput(attrs=plain | attrs)


class ColumnRow(forms.Form):
    """One column."""

    name = forms.CharField(max_length=255, widget=_line())
    type = forms.CharField(max_length=10_000, widget=_line(list="types"))
    required = forms.BooleanField(required=False)
    comment = forms.CharField(required=False, max_length=10_000, widget=_line())

    def __init__(self, *args: Any, shape: TableShape, **options: Any) -> None:
        super().__init__(*args, **options)
        self.shape = shape
        self.fields["required"].disabled = "required" in shape.lacks

    def clean_type(self) -> Any:
        return read_type(self.cleaned_data["type"], self.shape)

    def body(self) -> Json:
        given = self.cleaned_data
        comment = given["comment"] or None
        return {"name": given["name"], "type": given["type"], "nullable": not given["required"], "comment": comment}


class PartitionRow(forms.Form):
    """One column to partition by, and how."""

    column = forms.CharField(max_length=1_000, widget=_line())
    how = forms.ChoiceField()
    number = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1, widget=_line(inputmode="numeric"))

    def __init__(self, *args: Any, shape: TableShape, **options: Any) -> None:
        super().__init__(*args, **options)
        words = {"identity": "its value", "bucket": "buckets: how many", "truncate": "its beginning: how long"}
        self.fields["how"].choices = [(each, words.get(each, each)) for each in shape.transforms]  # type: ignore[attr-defined]
        self.fields["how"].initial = next(iter(shape.transforms), None)  # an untouched row is empty

    def clean(self) -> None:
        how = self.cleaned_data.get("how")
        if how in WITH_WIDTH and not self.cleaned_data.get("number") and "number" not in self.errors:
            self.add_error("number", "This needs a number.")

    def body(self, path: list[str]) -> Json:
        how = self.cleaned_data["how"]
        if how == "bucket":
            return {"strategy": how, "numBuckets": self.cleaned_data["number"], "fieldNames": [path]}
        width = {"width": self.cleaned_data["number"]} if how == "truncate" else {}
        return {"strategy": how, "fieldName": path, **width}


class SortRow(forms.Form):
    """One column to sort by."""

    column = forms.CharField(max_length=1_000, widget=_line())
    direction = forms.ChoiceField(initial="asc", choices=[("asc", "ascending"), ("desc", "descending")])
    nulls = forms.ChoiceField(
        required=False, choices=[("", "as usual"), ("nulls_first", "empty first"), ("nulls_last", "empty last")]
    )

    def __init__(self, *args: Any, shape: TableShape, **options: Any) -> None:
        super().__init__(*args, **options)

    def body(self, path: list[str]) -> Json:
        term = {"type": "field", "fieldName": path}
        nulls = self.cleaned_data["nulls"] or None
        return {"sortTerm": term, "direction": self.cleaned_data["direction"], "nullOrdering": nulls}


ROWS: dict[str, type[Any]] = {"columns": ColumnRow, "partitioning": PartitionRow, "sorting": SortRow}


def rows_of(
    part: str,
    shape: TableShape,
    data: Mapping[str, Any] | None,
    more: int,
    *,
    row: type[Any] | None = None,
    checks: bool = True,
    form_kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """The formset of one part; `more` empty rows are added to those that were sent. Not `checks`: no row is wrong."""
    extra = MORE[part] if row is None else FEWER
    kind: Any = forms.formset_factory(row or ROWS[part], extra=extra, max_num=MOST_ROWS, absolute_max=MOST_ROWS)
    if data is not None and more:
        sent = str(data.get(f"{part}-TOTAL_FORMS", ""))
        count = int(sent) if sent.isascii() and sent.isdigit() and len(sent) < 5 else 0
        data = {**{key: data[key] for key in data}, f"{part}-TOTAL_FORMS": str(min(count + more, MOST_ROWS))}
    rows = kind(data, prefix=part, form_kwargs={"shape": shape, **(form_kwargs or {})}, **options)
    for each in () if checks else rows:
        each._errors = forms.utils.ErrorDict()
    return rows


class TableForm(DescribedForm):
    """A new table of one format. `more` names the part to which rows are added. Not `checks`: nothing is wrong."""

    name = name_field("Name", longest=255)
    comment = forms.CharField(label="Comment", required=False, widget=forms.Textarea(attrs={"rows": 2}))
    properties = PropertiesField(label="Properties")

    def __init__(self, shape: TableShape, data: Mapping[str, Any] | None, more: str, *, checks: bool) -> None:
        super().__init__(data)
        self.shape = shape
        if data is not None and not checks:
            self._errors = forms.utils.ErrorDict()
        self.parts = {
            part: rows_of(part, shape, data, MORE[part] if part == more else 0, checks=checks)
            for part in ROWS
            if part not in shape.lacks and (part != "partitioning" or shape.transforms)
        }
        if reason := shape.lacks.get("properties"):
            self.fields["properties"].disabled = True
            self.fields["properties"].help_text = reason

    def is_valid(self) -> bool:
        return all([super().is_valid(), *(rows.is_valid() for rows in self.parts.values())])

    def filled(self, part: str) -> list[Any]:
        """The rows of a part that are not empty, in their order: the wire numbers these."""
        return [row for row in self.parts[part] if row.has_changed()] if part in self.parts else []

    def body(self) -> Json:
        """As the native API's request."""
        columns = [row.body() for row in self.filled("columns")]
        names = {column["name"] for column in columns}

        def path(row: Any) -> list[str]:
            text: str = row.cleaned_data["column"]
            return [text] if text in names else text.split(".")

        given = self.cleaned_data
        return {
            "name": given["name"],
            "comment": given["comment"] or None,
            "columns": columns,
            "properties": {**self.shape.properties, **(given["properties"] or {})},
            "partitioning": [row.body(path(row)) for row in self.filled("partitioning")],
            "sortOrders": [row.body(path(row)) for row in self.filled("sorting")],
        }

    def refuse(self, refusal: MetalakeError) -> None:
        """Show a service's error at the row and the field that it names."""
        message = refusal.message
        if isinstance(refusal, AlreadyExists):
            self.add_error("name", message)
            return
        if named := _PROPERTY.match(message):
            raw = message[named.end() :]
            self.add_error("properties", f"{named[1]}{' ' if raw.startswith('is ') else ': '}{raw}")
            return
        for part, place in (("columns", "columns"), ("partitioning", "partitioning"), ("sorting", "sortOrders")):
            if show_at_row(message, place, self.filled(part)):
                return
        named_rows = [row for row in self.filled("columns") if quote(row.cleaned_data.get("name", "")) in message]
        if named_rows:
            named_rows[-1].add_error("name", message)
        else:
            self.add_error(None, message)


def show_at_row(message: str, part: str, rows: Sequence[Any]) -> bool:
    """Show a message such as `columns[1].type: is required` at that row; False if it names none of these."""
    place = re.match(rf"{part}\[(\d{{1,6}})\](?:\.([\w.-]*))?: (?=\S)", message)
    if place is None or int(place[1]) >= len(rows):
        return False
    row, says = rows[int(place[1])], message[place.end() :]
    asked = (place[2] or "").partition(".")[0]
    known = {"nullable": "required", "newType": "type"}.get(asked, asked)
    field = known if known in row.fields else "name" if "name" in row.fields else "column"
    row.add_error(field, f"{says[0].upper()}{says[1:]}{'' if says.endswith('.') else '.'}")
    return True


def read_type(text: str, shape: TableShape) -> Any:
    """A type as the native API writes it; `list<long>` and `map<string, long>` are read too, and JSON.

    Raises ValidationError.
    """
    if text.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise forms.ValidationError("This is not JSON.") from None
    return _read_type(text.strip(), shape, depth=0)


def _read_type(text: str, shape: TableShape, depth: int) -> Any:
    if depth > 20:
        raise forms.ValidationError("The type is nested too deep.")
    if generic := _GENERIC.fullmatch(text):
        parts = _split(generic[2])
        if generic[1].lower() == "list" and len(parts) == 1:
            return {"type": "list", "elementType": _read_type(parts[0], shape, depth + 1)}
        if generic[1].lower() == "map" and len(parts) == 2:
            key, value = (_read_type(part, shape, depth + 1) for part in parts)
            return {"type": "map", "keyType": key, "valueType": value}
    try:
        primitive = parse_primitive(text)
    except ValueError as wrong:
        raise forms.ValidationError(f"{str(wrong).capitalize()}.") from None
    if primitive is not None:
        return str(primitive)
    if shape.takes_other_types:
        return {"type": "external", "catalogString": text}
    raise forms.ValidationError(f"There is no type {quote(text)}. Common are {', '.join(shape.types[1:8])}.")


def _split(text: str) -> list[str]:
    """The parts between commas that lie in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]
