"""The form of a new personal token."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms
from django.utils import timezone

LIFETIMES = [("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "a year"), ("", "until it is revoked")]


class TokenForm(forms.Form):
    """A new personal token."""

    name = forms.CharField(max_length=128, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    days = forms.ChoiceField(choices=LIFETIMES, initial="90", required=False, label="Valid for")

    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=int(days)) if days else None
