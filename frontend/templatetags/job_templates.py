"""The fields of a job template's form."""

from __future__ import annotations

from typing import NamedTuple

from django import template

from frontend.forms.job_templates import Part, parts_of

register = template.Library()


class Field(NamedTuple):
    part: Part
    text: str
    is_folded: bool


@register.simple_tag
def template_fields(asked: dict[str, str], *, folded: bool) -> list[Field]:
    """The fields of what is typed: those of every job, or `folded` those of Spark alone where the type is to choose.

    Those in `left_out` are not shown.
    """
    is_new = asked.get("what") != "alter-template"
    parts = parts_of(None if is_new else asked.get("type"))
    left_out = asked.get("left_out", "").split(",")
    listed = [Field(each, asked.get(each.name, ""), is_new and each.types == ("spark",)) for each in parts]
    return [each for each in listed if each.is_folded == folded and each.part.name not in left_out]
