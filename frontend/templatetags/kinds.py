"""The icons of kinds as symbols, which a tree of many rows refers to."""

from __future__ import annotations

import re

from django import template
from django.utils.safestring import SafeString, mark_safe

from frontend.templatetags.ui import kind_icon
from metalake.kinds import KINDS

register = template.Library()


@register.simple_tag
def icons() -> list[tuple[str, SafeString]]:
    """The kinds that have an icon, with its SVG shapes."""
    return [(kind.value, _shapes(kind)) for kind, declared in KINDS.items() if declared.icon]


def _shapes(kind: str) -> SafeString:
    return mark_safe(re.sub(r"^<svg[^>]*>|</svg>\s*$", "", kind_icon(kind).strip()))  # noqa: S308 (an icon of the package)
