"""Properties as lines `name=value` of a text field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django import forms


class Lines(NamedTuple):
    """Properties for a form: the lines, and those that cannot be written as one and read back unchanged."""

    text: str
    raw: dict[str, str]


def as_lines(properties: Mapping[str, str]) -> Lines:
    """The properties by name."""
    rows = sorted(properties.items())
    raw = {key: value for key, value in rows if not _fits_a_line(key, value)}
    return Lines("\n".join(f"{key}={value}" for key, value in rows if key not in raw), raw)


def numbered(text: str) -> Iterator[tuple[int, str, str]]:
    """Each line's number, name and value. Raises ValidationError for what is no property, or named twice."""
    names = set[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if (pair := _pair(line)) is None:
            raise forms.ValidationError(f"Line {number} is not of the form name=value.")
        if pair[0] in names:
            raise forms.ValidationError(f"Line {number} names {pair[0]} a second time.")
        names.add(pair[0])
        yield number, *pair


class PropertiesField(forms.CharField):
    """A text field of lines; its value is a dict."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "autocomplete": "off"})
        given: dict[str, Any] = {"required": False, "widget": widget, "help_text": "One a line, as name=value."}
        super().__init__(**given | options)

    def clean(self, value: Any) -> dict[str, str]:
        return {key: text for _, key, text in numbered(super().clean(value))}


def _pair(line: str) -> tuple[str, str] | None:
    key, divides, value = line.partition("=")
    return (key.strip(), value.strip()) if divides and key.strip() else None


def _fits_a_line(key: str, value: str) -> bool:
    line = f"{key}={value}"
    return line.splitlines() == [line] and _pair(line) == (key, value)
