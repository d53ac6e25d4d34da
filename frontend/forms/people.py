"""Forms for people: a name, and a pasted list of names."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from django import forms
from django.http import QueryDict

from access.explain.queries import Whom
from frontend.forms.fields import DescribedForm, name_field
from frontend.forms.properties import PropertiesField
from metalake.errors import TooLarge

MOST_NAMES = 10_000
_DIVIDED = re.compile(r"[\r\n,;]+")


class Names(NamedTuple):
    """The names of a pasted list in order, without duplicates, and the duplicates."""

    names: list[str]
    repeated: list[str]


def read_names(text: str) -> Names:
    """The names in a text, separated by newlines, commas or semicolons. Raises TooLarge for more than MOST_NAMES."""
    counts = Counter(name for part in _DIVIDED.split(text) if (name := part.strip()))
    if counts.total() > MOST_NAMES:
        raise TooLarge(
            f"These are {counts.total():,} names; at most {MOST_NAMES:,} are read at once. Nothing was changed: "
            "paste them in parts."
        )
    return Names(list(counts), [name for name, count in counts.items() if count > 1])


class UserForm(DescribedForm):
    """Users to add to a metalake."""

    name = name_field("User name", "As they sign in: a short name or an e-mail address.")


class GroupForm(DescribedForm):
    """A new group with its members."""

    name = name_field("Name of the group")
    people = forms.CharField(
        label="People",
        required=False,
        help_text="One a line, or divided by commas. They must be users of the metalake already.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )


class WhomField(forms.CharField):
    """A user by name, or a group as `group:sales`."""

    def __init__(self, **given: Any) -> None:
        attrs = {"list": "people-names", "autocomplete": "off", "spellcheck": "false"}
        super().__init__(max_length=200, widget=forms.TextInput(attrs=attrs), **given)

    def clean(self, value: Any) -> Whom:
        text = super().clean(value)
        sort, divider, name = text.partition(":")
        return Whom(sort, name) if divider and sort in ("user", "group") else Whom("user", text)


class CompareForm(DescribedForm):
    """Two whose rights are compared, bound once one of them is named."""

    one = WhomField(label="Who", help_text="A user, or a group as group:sales.")
    other = WhomField(label="Compared with")

    def __init__(self, query: QueryDict) -> None:
        asked = {name: query[name] for name in ("one", "other") if query.get(name)}
        super().__init__(asked if len(asked) == 2 else None, initial=asked)


class RoleForm(DescribedForm):
    """A new role, without grants."""

    name = name_field("Name of the role", "Letters, digits and _ / = -, up to 64. It cannot be changed later.")
    properties = PropertiesField(help_text="One a line, as name=value. They cannot be changed later.")


class PasswordForm(DescribedForm):
    """The first password of a new account, typed twice."""

    password = forms.CharField(
        label="Password",
        max_length=4096,
        strip=False,
        help_text="12 characters or more.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label="The same password again",
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean(self) -> dict[str, str]:
        given: dict[str, str] = super().clean() or {}
        if given.get("password") and given.get("again") and given["password"] != given["again"]:
            self.add_error("again", "These two passwords differ.")
        return given


class OwnPasswordForm(PasswordForm):
    """A new password of one's own, by the old one."""

    old = forms.CharField(
        label="Your password now",
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    keep_tokens = forms.BooleanField(label="My tokens stay valid", required=False)
    field_order = ("old", "password", "again", "keep_tokens")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self["password"].label = "New password"
        self["again"].label = "The new password again"

    def of_new(self) -> list[forms.BoundField]:
        return [self["password"], self["again"]]
