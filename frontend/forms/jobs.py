"""The form that runs a job template, now or on a schedule: a field for each of its placeholders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

VALUE = "value-"  # prefix of the names of placeholder fields


class JobForm(forms.Form):
    """The values of a template's placeholders, and the times of a schedule."""

    def __init__(self, data: Any, placeholders: Iterable[str], defaults: Mapping[str, str]) -> None:
        super().__init__(data)
        self.placeholders = [*placeholders]
        for name in self.placeholders:
            field = forms.CharField(label=name, initial=defaults.get(name), required=False, strip=False)
            self.fields[f"{VALUE}{name}"] = field
        self.fields["name"] = forms.CharField(label="Name of the schedule", required=False, max_length=64)
        self.fields["cron"] = forms.CharField(
            label="Cron", required=False, help_text="Minute, hour, day of the month, month, day of the week; in UTC"
        )
        self.fields["every"] = forms.IntegerField(
            label="Or every so many seconds", required=False, min_value=60, max_value=10**9
        )

    def values(self) -> dict[str, str]:
        return {name: self.cleaned_data[f"{VALUE}{name}"] for name in self.placeholders}

    def of_values(self) -> list[forms.BoundField]:
        return [self[f"{VALUE}{name}"] for name in self.placeholders]

    def of_schedule(self) -> list[forms.BoundField]:
        return [self["name"], self["cron"], self["every"]]
