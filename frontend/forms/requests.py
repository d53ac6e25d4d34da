"""The forms that ask for access, and that decide about it; both end it after one of a few spans of time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone

from access.requests.asking import LONGEST
from frontend.forms.fields import DescribedForm
from metalake.privileges import Privilege

SPANS = {
    "hour": ("For an hour", timedelta(hours=1)),
    "day": ("For a day", timedelta(days=1)),
    "week": ("For a week", timedelta(days=7)),
    "month": ("For 30 days", timedelta(days=30)),
    "quarter": ("For 90 days", timedelta(days=90)),
}
CHOICES = [(name, label) for name, (label, _) in SPANS.items()]
ASKED = "asked"


def _text(label: str, help_text: str) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 3, "class": "prose"})
    return forms.CharField(label=label, help_text=help_text, max_length=LONGEST, widget=area)


def end_of(span: str) -> datetime:
    """When access for this span ends, if it begins now."""
    return timezone.now() + SPANS[span][1]


class RequestForm(DescribedForm):
    """Privileges on an object, what for, and until when; `first` are shown and ticked, the others folded."""

    privilege = forms.MultipleChoiceField(
        label="What you ask for",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Tick at least one.", "invalid_choice": "%(value)s cannot be asked for here."},
    )
    purpose = _text("What you need it for", "Whoever decides reads this, and it stays in the audit.")
    ends = forms.ChoiceField(label="For how long", choices=CHOICES, initial="week")

    def __init__(self, sent: Any, can_be_asked: Collection[Privilege], first: Collection[Privilege], **more: Any):
        super().__init__(sent, **more)
        choice: Any = self.fields["privilege"]
        choice.choices = [(each.value, each.value) for each in can_be_asked]
        self.initial.setdefault("privilege", [each.value for each in first])

    def boxes(self) -> tuple[list[Any], list[Any]]:
        """The ticked privileges and the others; all of them first if none is ticked."""
        boxes = list(self["privilege"])
        ticked = [box for box in boxes if box.data["selected"]]
        return (ticked, [box for box in boxes if not box.data["selected"]]) if ticked else (boxes, [])


class DecideForm(DescribedForm):
    """When the access ends, by default when it was asked to, and what a refused requester reads."""

    ends = forms.ChoiceField(label="For how long", required=False)
    reason = _text("Why", "The requester reads it.")

    def __init__(self, sent: Any, asked: datetime):
        super().__init__(sent)
        self.asked = asked
        self.fields["reason"].required = False
        is_ahead = asked > timezone.now()
        choice: Any = self.fields["ends"]
        as_asked = f"Until {asked:%Y-%m-%d %H:%M} UTC" + ("" if is_ahead else ", past")
        choice.choices = [(ASKED, as_asked), *CHOICES]

    @property
    def chosen(self) -> str:
        given = self.data.get("ends", ASKED)
        return given if given in SPANS else ASKED

    @property
    def end(self) -> datetime:
        return self.asked if self.chosen == ASKED else end_of(self.chosen)
