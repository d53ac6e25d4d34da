"""The forms of a new metalake and a new schema."""

from __future__ import annotations

from django import forms


def _name(label: str, help_text: str, longest: int) -> forms.CharField:
    attrs = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
    return forms.CharField(label=label, max_length=longest, help_text=help_text, widget=forms.TextInput(attrs=attrs))


def _comment() -> forms.CharField:
    return forms.CharField(label="Comment", required=False, widget=forms.Textarea(attrs={"rows": 2}))


class MetalakeForm(forms.Form):
    """A new metalake."""

    name = _name("Name", "Letters, digits and _ / = -, up to 64.", 64)
    comment = _comment()


class SchemaForm(forms.Form):
    """A new schema, whose name may name missing parents in a catalog that nests schemas."""

    name = _name("Name", "", 1024)
    comment = _comment()

    def __init__(self, data: object, separator: str | None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        if separator:
            self.fields["name"].help_text = f"A{separator}B makes B in A, and A too if it is missing."
