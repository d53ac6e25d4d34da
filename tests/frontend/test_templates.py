"""What templates hold to: icons are there and pictures are drawn."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string

from frontend.templatetags.ui import icon, kind_icon
from metalake.kinds import KINDS


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
    from frontend.drawing import Stop, path

    drawn = path([Stop("person", "<b>&\u200b", "ok"), Stop("table", "x" * 300, "bad")])
    assert drawn.count("<svg") == 2, "one for wide screens and one for narrow ones"
    assert "&lt;b&gt;&amp;[U+200B]" in drawn and "<b>" not in drawn
    assert 'class="link bad"' in drawn
    assert path([]) == ""


def test_the_top_stands_without_a_request() -> None:
    assert "Objects" in render_to_string("frontend/error.html", {"title": "x", "message": "y"})
