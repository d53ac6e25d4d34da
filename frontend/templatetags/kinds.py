"""What pages show of each kind of object, from its declaration."""

from __future__ import annotations

from django import template

from metalake.kinds import KINDS

register = template.Library()


@register.simple_tag
def icons() -> list[tuple[str, str]]:
    """The kinds that have an icon, and the paths of their symbols."""
    return [(kind.value, declared.icon) for kind, declared in KINDS.items() if declared.icon]
