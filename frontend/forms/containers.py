"""The forms of a new metalake and a new schema."""

from __future__ import annotations

from typing import Any

from django import forms

from frontend.forms.fields import DescribedForm, name_field


def _comment() -> forms.CharField:
    return forms.CharField(label="Comment", required=False, widget=forms.Textarea(attrs={"rows": 2}))


class MetalakeForm(DescribedForm):
    """A new metalake."""

    name = name_field("Name", "Letters, digits and _ / = -, up to 64.", 64)
    comment = _comment()


class SchemaForm(DescribedForm):
    """A new schema; in a nested catalog its name may include missing parents."""

    name = name_field("Name", "This catalog has no schemas inside schemas.", 1024)
    comment = _comment()

    def __init__(self, data: Any, separator: str | None) -> None:
        super().__init__(data)
        if separator:
            self["name"].help_text = f"A{separator}B makes B in A, and A too if it is missing."
