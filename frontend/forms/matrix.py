"""The form of a matrix: which people may use which privileges on which objects of a metalake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from access.explain.queries import MAX_QUESTIONS, Place
from authz.operations import FAMILIES
from frontend.forms.point_in_time import AsOfField
from metalake.full_names import undotted
from metalake.kinds import KINDS, STORED_KINDS, Kind, grantable_on
from metalake.privileges import Privilege
from metalake.wire import quote

BY_PARTS = (Kind.CATALOG, Kind.SCHEMA, Kind.TABLE)
TOO_MANY = (
    "These are {count:,} questions: {people} people, {objects} objects and {privileges} privileges. "
    f"At most {MAX_QUESTIONS:,} are answered at once."
)
OFFERED = [
    privilege
    for privilege in Privilege
    if any(privilege in (*KINDS[kind].creating, *KINDS[kind].privileges) for kind in STORED_KINDS)
]
"""The privileges that apply to the existing kinds of objects."""
FIRST_ASKED = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE)
AN_OBJECT = "is no object: write a path such as lake.travel:nyc, with the word view before a view's."


class _Lines(forms.Textarea):
    """A text area; a value that is sent several times is as many lines."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str | None:
        return "\n".join(data.getlist(name)) if name in data else None


class LinesField(forms.CharField):
    """Lines of text, without empty lines and duplicates."""

    def __init__(self, **given: Any) -> None:
        super().__init__(widget=_Lines(attrs={"rows": 4, "spellcheck": "false"}), **given)

    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]
        lines = (line.strip() for line in (super().to_python(value) or "").splitlines())
        return list(dict.fromkeys(filter(None, lines)))

    def run_validators(self, value: Any) -> None:
        for line in value:
            super().run_validators(line)


class MatrixForm(forms.Form):
    """Bound only once objects are requested; `name` is the caller."""

    people = LinesField(label="People", help_text="One name a line.")
    objects = LinesField(label="Objects", help_text="One path a line: lake, lake.travel:nyc, lake.travel.flights.")
    privilege = forms.MultipleChoiceField(
        label="Privileges",
        choices=[(each.value, each.value) for each in OFFERED],
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "required": "Choose at least one privilege.",
            "invalid_choice": "%(value)s is no privilege of objects here.",
        },
    )
    asOf = AsOfField()  # named as in the APIs

    def __init__(self, data: QueryDict, name: str) -> None:
        on = data.get("on", "")
        first = {"people": name, "objects": on, "privilege": [each.value for each in _first_asked(on)]}
        super().__init__(data if "objects" in data else None, initial=first)

    def clean_objects(self) -> list[Place]:
        return [read_place(line) for line in self.cleaned_data["objects"]]

    def clean(self) -> dict[str, Any]:
        asked: dict[str, Any] = super().clean() or self.cleaned_data
        sizes = {name: len(asked.get(name, ())) for name in ("people", "objects")}
        sizes["privileges"] = len(asked.get("privilege", ()))
        count = sizes["people"] * sizes["objects"] * sizes["privileges"]
        if count > MAX_QUESTIONS:
            raise forms.ValidationError(TOO_MANY.format(count=count, **sizes))
        return asked


def _first_asked(on: str) -> Sequence[Privilege]:
    """The initially ticked privileges; those of the object's kind where the default ones do not apply."""
    try:
        place = read_place(on)
    except forms.ValidationError:
        return FIRST_ASKED
    if any(applies(privilege, place) for privilege in FIRST_ASKED):
        return FIRST_ASKED
    return [privilege for privilege in OFFERED if privilege in KINDS[place.kind].privileges]


def read_place(line: str) -> Place:
    """The object of a line: its kind follows from the number of names, or from a word before the path."""
    word, _, path = line.partition(" ")
    if word in FAMILIES["read_access"] and path:
        return Place(Kind(word), path.strip())
    parts = len(undotted(line))
    if parts > len(BY_PARTS):
        raise forms.ValidationError(f"{quote(line)} {AN_OBJECT}")
    return Place(BY_PARTS[parts - 1], line)


def applies(privilege: Privilege, on: Place) -> bool:
    """Whether the privilege applies to an object of this kind."""
    return on.kind in grantable_on(privilege)
