"""The filters of a metalake's audit."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone

from access.explain.audit_search import CHANGES, REFUSALS
from access.explain.permissions import Place
from frontend.forms.fields import DescribedForm, name_field
from frontend.forms.matrix import read_place
from frontend.forms.point_in_time import AsOfField
from metalake.kinds import STORED_KINDS

ALL, LONGEST_PATH = "", 3000
OUTCOMES = ((ALL, "All"), (CHANGES, "Changes"), (REFUSALS, "Refusals"))
PRESETS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
RIGHTS = (
    ("privileges", "grants"),
    ("owner", "owners"),
    ("role", "roles"),
    ("user", "users"),
    ("group", "groups"),
    ("access.applied", "applied plans"),
)
WORK = (("job", "jobs"), ("schedule", "schedules"), ("intent", "writes to other systems"), ("place", "reserved places"))
EVENTS = (
    (ALL, "every event"),
    ("Rights", RIGHTS),
    ("Objects", tuple((kind.value, str(kind.value).replace("_", " ")) for kind in STORED_KINDS)),
    ("Work", WORK),
)


class AuditForm(DescribedForm):
    """Always bound; an empty field does not filter. The names are those of the API, but for `on` and `last`."""

    user = name_field("Person", longest=255)
    on = name_field("Object, and below it", longest=LONGEST_PATH)
    event = forms.ChoiceField(label="Event", choices=EVENTS, required=False)
    outcome = forms.ChoiceField(label="Outcome", choices=OUTCOMES, widget=forms.RadioSelect, required=False)
    last = forms.ChoiceField(
        label="Time",
        choices=((ALL, "Any time"), *((name, f"1 {name}") for name in PRESETS)),
        widget=forms.RadioSelect,
        required=False,
    )
    since = AsOfField(label="From")
    until = AsOfField(label="To")

    def __init__(self, query: QueryDict) -> None:
        asked = query.copy()
        for name in ("outcome", "last"):
            asked.setdefault(name, ALL)
        super().__init__(asked)
        for name in ("user", "on"):
            self.fields[name].required = False
        self.fields["on"].widget.attrs["placeholder"] = "lake.orders:eu"
        for name in ("event", "outcome", "last"):
            self.fields[name].error_messages["invalid_choice"] = "%(value)s is none of the choices."

    def clean_on(self) -> Place | None:
        path = self.cleaned_data["on"]
        return read_place(path) if path else None

    def clean(self) -> dict[str, Any]:
        asked: dict[str, Any] = super().clean() or self.cleaned_data
        if asked.get("last"):
            start = timezone.now() - PRESETS[asked["last"]]
            asked["since"] = max(start, asked.get("since") or start)
        since, until = asked.get("since"), asked.get("until")
        if since and until and since >= until:
            raise forms.ValidationError("The time ends before it begins.")
        return asked

    def query(self, **changed: str) -> str:
        """The same filters as a query, with some of them changed; empty ones are left out."""
        asked = {name: self.data.get(name, "") for name in self.fields} | changed
        query = QueryDict(mutable=True)
        query.update({name: value for name, value in asked.items() if value})
        return query.urlencode()

    @property
    def times(self) -> tuple[datetime | None, datetime | None]:
        return self.cleaned_data.get("since"), self.cleaned_data.get("until")
