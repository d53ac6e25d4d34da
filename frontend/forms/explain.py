"""The form that asks why somebody may, or may not, use a privilege on an object."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from django.urls import reverse

from frontend.forms.access import askable
from frontend.forms.point_in_time import AsOfField
from metalake.lineage import Located

ABOUT_YOURSELF = "You may ask about yourself alone: asking about others here takes the right to grant."


class WhyForm(forms.Form):
    """Who, which privilege, and when. It is bound once a privilege is asked about; `name` is who asks."""

    user = forms.CharField(label="Person", strip=False)
    privilege = forms.ChoiceField(
        label="Privilege", error_messages={"invalid_choice": "%(value)s is no privilege that can be used here."}
    )
    asOf = AsOfField()  # as in the API

    def __init__(self, query: QueryDict, target: Located, name: str, is_reader: bool) -> None:
        asked = query.copy()
        asked.setdefault("user", name)
        super().__init__(asked if "privilege" in asked else None, initial=asked.dict())
        self.name, self.is_reader = name, is_reader
        choice: Any = self.fields["privilege"]
        choice.choices = [(privilege.value, privilege.value) for privilege in askable(target)]
        asking: dict[str, Any] = {"readonly": True}
        if is_reader:
            url = reverse("frontend:suggest-users", args=[target.id])
            asking = {"list": "why-users", "autocomplete": "off", "hx-get": url, "hx-target": "#why-users"}
            asking |= {"hx-trigger": "input changed delay:150ms", "hx-sync": "this:replace", "hx-push-url": "false"}
        self.fields["user"].widget.attrs |= asking

    def clean_user(self) -> str:
        user: str = self.cleaned_data["user"]
        if user != self.name and not self.is_reader:
            raise forms.ValidationError(ABOUT_YOURSELF)
        return user
