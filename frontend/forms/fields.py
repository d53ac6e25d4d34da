"""Shared form parts: name fields without autocomplete, and fields that reference their help and errors."""

from __future__ import annotations

from typing import Any

from django import forms


class DescribedForm(forms.Form):
    """A form whose fields reference their help and errors, as frontend/field.html renders them."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for bound in self.visible_fields():
            described = [f"{bound.auto_id}-help"] if bound.field.help_text else []
            bound.field.widget.attrs["aria-describedby"] = " ".join([*described, f"{bound.auto_id}-error"])


def name_field(label: str, help_text: str = "", longest: int = 128) -> forms.CharField:
    """A field for a name."""
    attrs = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
    return forms.CharField(label=label, max_length=longest, help_text=help_text, widget=forms.TextInput(attrs=attrs))
