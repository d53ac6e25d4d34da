"""The forms of a new view, and of a view's query in one dialect."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest

from formats.native.columns import parse_primitive
from formats.native.view_definition import FLINK, HIVE, LONGEST_DIALECT, SPARK, TRINO, Representation, SecurityMode
from frontend.forms.fields import DescribedForm, name_field
from metalake.wire import quote

DIALECTS = (TRINO, SPARK, FLINK, HIVE)
"""The suggested dialects; any word is accepted."""
TYPES = ("boolean", "integer", "long", "float", "double", "decimal(10,2)", "string", "date", "timestamp", "binary")


def _dialect() -> forms.CharField:
    field = name_field("Dialect", "The engine that reads it, such as trino or spark.", LONGEST_DIALECT)
    field.widget.attrs["list"] = "dialects"
    return field


def _sql() -> forms.CharField:
    attrs = {"rows": 14, "spellcheck": "false", "autocapitalize": "none", "autocomplete": "off"}
    return forms.CharField(label="SQL", strip=False, widget=forms.Textarea(attrs=attrs))


def _default(label: str) -> forms.CharField:
    field = name_field(label, "It completes the names in the SQL.", 1024)
    field.required = False
    return field


class _QueryForm(DescribedForm):
    """A query in one dialect, with the defaults that qualify its names. The page's query string prefills fields."""

    dialects = DIALECTS

    def __init__(self, request: HttpRequest, initial: dict[str, Any]) -> None:
        if request.method == "POST":
            super().__init__(request.POST, initial=initial)
        else:
            filled = {name: request.GET[name] for name in self.base_fields if name in request.GET}
            super().__init__(initial=initial | filled)

    def clean_sql(self) -> str:
        """The SQL with its original line breaks, which browsers change."""
        sql: str = self.cleaned_data["sql"].replace("\r\n", "\n")
        before = self.initial.get("sql", "")
        return before if sql == before.replace("\r\n", "\n") else sql

    def representation(self) -> dict[str, Any]:
        """As the wire sends it."""
        given = self.cleaned_data
        return {
            "type": "sql",
            "dialect": given["dialect"],
            "sql": given["sql"],
            "defaultCatalog": given["default_catalog"] or None,
            "defaultSchema": given["default_schema"] or None,
        }


class DialectForm(_QueryForm):
    """The query of a view in one dialect; `since` is the version that it was opened on."""

    dialect = _dialect()
    sql = _sql()
    default_catalog = _default("Default catalog")
    default_schema = _default("Default schema")
    since = forms.IntegerField(min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput)

    def __init__(
        self, request: HttpRequest, since: int, now: Representation | None, draft: Representation | None = None
    ) -> None:
        """`now` is the query to update, None to add a dialect, prefilled from `draft`."""
        first = now or draft
        super().__init__(request, {"since": since} | (vars(first) if first else {}))
        if now:
            self.fields["dialect"].widget = forms.HiddenInput()


class ViewForm(_QueryForm):
    """A new view in one dialect."""

    name = name_field("Name", longest=255)
    dialect = _dialect()
    sql = _sql()
    columns = forms.CharField(
        label="Columns",
        required=False,
        help_text="One a line: its name, then its type, as in “id long”. Engines that store views in Hive need them.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )
    default_catalog = _default("Default catalog")
    default_schema = _default("Default schema")
    mode = forms.ChoiceField(
        label="Security mode",
        required=False,
        choices=[("", "As this catalog does it"), *((each.value, each.value) for each in SecurityMode)],
        help_text="DEFINER: with the rights of its owner. INVOKER: with those of whoever reads it.",
    )
    comment = forms.CharField(label="Comment", required=False, widget=forms.Textarea(attrs={"rows": 2}))

    def clean_columns(self) -> list[dict[str, str]]:
        """The columns with their types; unlike the API, rejects unknown types, which here are typos."""
        columns = [_column(line) for line in self.cleaned_data["columns"].splitlines() if line.strip()]
        for each in columns:
            if not _is_type(each["type"]):
                unknown = f"Column {quote(each['name'])} has no type that is known here: {quote(each['type'])}."
                raise forms.ValidationError(f"{unknown} Types are {', '.join(TYPES)} and the like.")
        return columns

    def body(self) -> dict[str, Any]:
        """As the wire sends it."""
        given = self.cleaned_data
        return {
            "name": given["name"],
            "representations": [self.representation()],
            "columns": given["columns"],
            "securityMode": given["mode"] or None,
            "comment": given["comment"] or None,
        }


def _is_type(text: str) -> bool:
    try:
        return parse_primitive(text) is not None
    except ValueError:
        return True  # a number in it is out of range; the request reports that


def _column(line: str) -> dict[str, str]:
    name, _, type_ = line.strip().partition(" ")
    return {"name": name, "type": type_.strip()}
