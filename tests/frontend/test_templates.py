"""What templates hold to: icons are there and pictures are drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.contrib.messages import get_messages
from django.contrib.messages.storage.cookie import CookieStorage
from django.template.loader import render_to_string
from django.test import RequestFactory

from frontend import toasts
from frontend.templatetags.ui import icon, kind_icon
from metalake.kinds import KINDS
from tests.architecture.rooms import REPOSITORY
from tests.cases import each

FOLDER = REPOSITORY / "frontend" / "templates"
SENT = re.compile(r'\b(?:value|id|for|name|data-[\w-]+)="[^"]*"')
"""Attributes that nobody reads, with names exactly as they are."""
NAME = re.compile(
    r"{{ (?!choice|field|form|moment|row|tab)(?:\w+\.)*"
    r"(?:name|full_name|username|owner|creator|last_modifier|grantor|role|group|user|actor|actor_name|requested_by|key)"
    r"(?!\|shown|\|spelled|\|urlencode)(?:\|[^}]*)? }}"
)
"""Where a template writes what somebody has named, and not as what it is."""
CARDS = re.compile(r'<table [^>]*class="[^"]*\b(?:simple|dense)\b.*?</table>', re.DOTALL)
PARTS = re.compile(r"<(?:table|thead|tbody|tr|th|td)\b[^>]*")


@each("path", sorted(FOLDER.rglob("*.html")))
def test_names_are_shown_as_what_they_are(path: Path) -> None:
    """With {{ name|shown }}, and in attributes and titles with {{ name|spelled }}."""
    assert NAME.findall(SENT.sub("", path.read_text(encoding="utf-8"))) == []


@each("path", sorted(FOLDER.rglob("*.html")))
def test_a_table_whose_rows_are_cards_on_a_phone_names_its_parts(path: Path) -> None:
    """Some browsers forget what a table is made of once its rows are blocks, so each part has its role."""
    for table in CARDS.findall(path.read_text(encoding="utf-8")):
        assert [part for part in PARTS.findall(table) if " role=" not in part] == []


@pytest.mark.parametrize("kind", [kind for kind, declared in KINDS.items() if declared.icon])
def test_the_icon_of_a_kind_is_there(kind: str) -> None:
    assert kind_icon(kind).startswith("<svg")


def test_an_icon_is_decoration_in_the_colour_of_its_text() -> None:
    drawn = icon("table-2")
    assert 'aria-hidden="true"' in drawn and 'stroke="currentColor"' in drawn
    assert "style=" not in drawn


def test_a_kind_without_an_icon_has_one() -> None:
    assert kind_icon("topic").startswith("<svg")


def test_a_path_is_drawn_with_its_names_as_text() -> None:
    from frontend.svg import Stop, path

    drawn = path([Stop("person", "<b>&\u200b", "ok"), Stop("table", "x" * 300, "bad")])
    assert drawn.count("<svg") == 2, "one for wide screens and one for narrow ones"
    assert "&lt;b&gt;&amp;[U+200B]" in drawn and "<b>" not in drawn
    assert 'class="link bad"' in drawn
    assert path([]) == ""


def test_a_toast_says_what_was_done_and_takes_it_back() -> None:
    request = RequestFactory().get("/")
    request._messages = CookieStorage(request)  # type: ignore[attr-defined]
    toasts.add(request, "<b> may read it", undo_path="/metalakes/1/undo", undo_token="a-token")
    toasts.add(request, "Nothing to take back")
    drawn = render_to_string("frontend/toasts_part.html", {"messages": get_messages(request)}, request)
    assert "&lt;b&gt; may read it" in drawn and 'hx-swap-oob="beforeend"' in drawn
    assert drawn.count("<form") == 1 and 'action="/metalakes/1/undo"' in drawn and 'value="a-token"' in drawn
    assert "csrfmiddlewaretoken" in drawn


def test_the_top_stands_without_a_request() -> None:
    assert "Objects" in render_to_string("frontend/error.html", {"title": "x", "message": "y"})
