"""Built-in template tags and filters: icons, names with homoglyph marks, times, drawings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Any

from django import template
from django.contrib.messages.storage.base import Message
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from lucide.templatetags.lucide import lucide

from frontend import confusables as names
from frontend import svg, toasts
from frontend.sections import Bar, Link, access_links, bar
from metalake.kinds import KINDS, Kind

register = template.Library()
PLAINEST = "circle"
"""The default icon of a kind."""


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """An inline Lucide icon: `{% icon "table" %}`; put text next to it. Raises IconDoesNotExist."""
    return SafeString(lucide(name, size=None, **{"class": f"icon icon-{name}", "aria-hidden": "true"}))


@register.simple_tag
def kind_icon(kind: str) -> SafeString:
    """The icon that a kind declares."""
    return icon(KINDS[Kind(kind)].icon or PLAINEST)


@register.simple_tag(name="shown")
@register.filter(name="shown")
def shown(name: object) -> SafeString:
    """A name, with a mark for each invisible or confusable character."""
    return names.shown(name)


@register.filter
def sentence(text: object) -> SafeString:
    """A sentence with the names in it marked."""
    return names.sentence(text)


@register.filter
def spelled(name: object) -> str:
    """The same for attributes and titles, as plain text."""
    return names.spelled(name)


@register.simple_tag
def moment(at: datetime | None, precision: str = "minutes") -> SafeString:
    """A time in UTC; scripts show it in the reader's time zone, with UTC as the tooltip."""
    if at is None:
        return mark_safe("")
    utc = at.astimezone(UTC)
    whole = utc.strftime("%Y-%m-%d %H:%M:%S UTC")
    written = whole if precision == "seconds" else utc.strftime("%Y-%m-%d %H:%M UTC")
    return format_html(
        '<local-time><time datetime="{}" title="{}">{}</time></local-time>',
        utc.isoformat(timespec="milliseconds"), whole, written,
    )  # fmt: skip


@register.filter
def precision(rows: Sequence[Any], field: str) -> str:
    """The precision to show the times in a field of these rows with: seconds where neighbours share the minute."""
    times = [at.astimezone(UTC).replace(second=0, microsecond=0) for row in rows if (at := getattr(row, field))]
    return "seconds" if any(one == other for one, other in pairwise(times)) else "minutes"


@register.simple_tag
def path_drawing(stops: Sequence[svg.Stop]) -> SafeString:
    """A path from a person to an object as boxes and lines; put the same as text next to it."""
    return svg.path(stops)


@register.filter
def undo(message: Message) -> dict[str, str] | None:
    """The URL and token of a toast's undo button; None without one."""
    return toasts.undo_of(message)


@register.simple_tag(takes_context=True)
def top_bar(context: template.Context) -> Bar:
    """The top bar, for the metalake of the shown object."""
    request, target = context.get("request"), context.get("target")
    if request is None or "caller" not in request.__dict__:
        return Bar.without_store(is_signed_in=bool(request and request.user.is_authenticated))
    return bar(request, request.__dict__["caller"], target.nodes[0] if target else None)


@register.inclusion_tag("frontend/access/nav.html", takes_context=True)
def access_nav(context: template.Context) -> dict[str, list[Link]]:
    """The tabs of the shown metalake's access."""
    request = context["request"]
    return {"links": access_links(request, request.__dict__["caller"], context["target"])}
