"""The filters of an object's access: by whom, which ways, a text, a privilege, and when."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from access.explain import reach
from access.explain.grants_on import bearing_on
from frontend.forms.point_in_time import AsOfField
from metalake.kinds import grantable_on
from metalake.lineage import Located
from metalake.privileges import Privilege

BY = (("user", "Users"), ("group", "Groups"), ("role", "Roles"))
CAN = (("", "Everybody"), ("reader", "Can read"), ("writer", "Can change"), ("manager", "Can grant"))
SHOW = (
    ("", "every way"),
    ("effective", "effective ways"),
    ("direct", "granted here"),
    ("inherited", "granted above"),
)
LONGEST_TEXT = 1000


class AccessForm(forms.Form):
    """Always bound: missing query parameters do not filter."""

    by = forms.ChoiceField(choices=BY, widget=forms.RadioSelect, label="By", initial="user")
    can = forms.ChoiceField(choices=CAN, widget=forms.RadioSelect, label="Who", required=False)
    show = forms.ChoiceField(choices=SHOW, label="Show", required=False)
    q = forms.CharField(label="Names with", required=False, strip=False, max_length=LONGEST_TEXT)
    privilege = forms.ChoiceField(label="Privilege", required=False)
    asOf = AsOfField()  # as in the API

    def __init__(self, query: QueryDict, target: Located) -> None:
        asked = query.copy()
        asked.setdefault("by", "user")
        super().__init__(asked)
        choice: Any = self.fields["privilege"]
        bearing = bearing_on(target, reach.type_of(target))
        choice.choices = [("", "every privilege"), *((each.value, each.value) for each in bearing)]
        for name in ("by", "can", "show", "privilege"):
            self.fields[name].error_messages["invalid_choice"] = "%(value)s is none of the choices."
        self.fields["q"].widget = forms.TextInput(attrs={"type": "search", "placeholder": "user, group or role"})

    @property
    def sort(self) -> str:
        """What the ways are listed by, as it was asked."""
        return str(self.data["by"])

    def query(self, **changed: str) -> str:
        """The query of the same filters, with some of them changed, for a link; empty ones are left out."""
        asked = {name: self.data.get(name, "") for name in self.fields} | changed
        query = QueryDict(mutable=True)
        query.update({name: value for name, value in asked.items() if value})
        return query.urlencode()


def askable(target: Located) -> list[Privilege]:
    """The privileges that apply to the object."""
    catalog_type = reach.type_of(target)
    return [each for each in Privilege if target.kind in grantable_on(each) and reach.fits(each, catalog_type)]
