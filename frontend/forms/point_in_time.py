"""A field for a past point in time, and the form that compares two."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from access.wire.access import read_as_of
from metalake.errors import Invalid
from metalake.wire import quote, utc

HOUR, DAY, WEEK = 3600, 86_400, 7 * 86_400  # seconds
AHEAD = (("in an hour", HOUR), ("in a day", DAY), ("in a week", WEEK))
PAST = (("an hour ago", -HOUR), ("a day ago", -DAY), ("a week ago", -WEEK))


class MomentInput(forms.TextInput):
    """A datetime-local input: its value has no offset and milliseconds, rounded up.

    With scripts it shows the reader's local time, and has buttons for `presets`: each a label and seconds from now. The
    time zone is always shown next to it.
    """

    def __init__(self, presets: Sequence[tuple[str, int]] = AHEAD) -> None:
        super().__init__(attrs={"type": "datetime-local", "step": "any"})
        self.presets = presets

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        given = attrs or {}
        zone = f"{given.get('id', name)}-zone"
        described = f"{given.get('aria-describedby') or self.attrs.get('aria-describedby', '')} {zone}".strip()
        picker = super().render(name, value, given | {"aria-describedby": described}, renderer)
        preset = '<button type="button" class="bare small" data-ahead="{}">{}</button>'
        presets = format_html_join("", preset, ((seconds, label) for label, seconds in self.presets))
        inside = format_html(
            '{}<span class="zone" id="{}">UTC</span><span class="presets">{}</span>', picker, zone, presets
        )
        return format_html("<local-moment>{}</local-moment>", inside)

    def format_value(self, value: Any) -> str | None:
        try:
            moment = read_as_of(value or None) if isinstance(value, str) else value
        except Invalid:
            return None
        return shown_in_picker(moment) if moment else None


class MomentField(forms.CharField):
    """An ISO 8601 timestamp, empty for none; without an offset it is UTC, which is what browsers' pickers send."""

    widget = MomentInput

    def to_python(self, value: Any) -> datetime | None:  # type: ignore[override]
        text = super().to_python(value)
        try:
            return self.moment_of(text) if text else None
        except ValueError:
            raise forms.ValidationError("This is no moment: choose a day and a time.") from None
        except Invalid:
            raise forms.ValidationError(f"{quote(str(text))} is no moment: write it like 2026-08-01T12:00Z.") from None

    def moment_of(self, text: str) -> datetime | None:
        """Parse a timestamp. Raises ValueError or Invalid, which the field turns into a hint."""
        moment: datetime = utc(text)
        return moment

    def run_validators(self, value: Any) -> None:
        """None: CharField's validators are for strings."""


class AsOfField(MomentField):
    """A past point in time, empty for now."""

    def __init__(self, label: str = "As of", *, required: bool = False) -> None:
        super().__init__(label=label, required=required, widget=MomentInput(PAST))

    def moment_of(self, text: str) -> datetime | None:
        return read_as_of(text)


def shown_in_picker(moment: datetime) -> str:
    """The time in UTC for `datetime-local`; rounded up, so that a change at that moment is included."""
    rounded = moment.astimezone(UTC)
    past = rounded.microsecond % 1000
    if past and rounded.year < MAXYEAR:
        rounded += timedelta(microseconds=1000 - past)
    return rounded.replace(tzinfo=None).isoformat(timespec="milliseconds" if rounded.microsecond else "seconds")


class AsOfForm(forms.Form):
    """A point in time, empty for now."""

    asOf = AsOfField()  # named as in the APIs


class CompareForm(forms.Form):
    """Two points in time; an empty `to` is now. Bound only if the query has `from`."""

    def __init__(self, query: QueryDict) -> None:
        super().__init__(query if "from" in query else None)
        self.fields |= {"from": AsOfField(label="From", required=True), "to": AsOfField(label="To, or now")}

    def clean(self) -> dict[str, Any]:
        asked: dict[str, Any] = super().clean() or self.cleaned_data
        asked["to"] = asked.get("to") or timezone.now()
        if "from" in asked and asked["from"] >= asked["to"]:
            raise forms.ValidationError("The first moment has to be before the second.")
        return asked
