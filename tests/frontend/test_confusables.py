"""Names are shown as what they are: what nobody sees and what looks like something else gets a mark."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.template import engines

from frontend.confusables import shown, spelled
from tests.cases import each

HONEST = [
    "lake.travel:nyc",
    "a b",
    "café",
    "Привет",
    "データlake",
    "東京",
    "שלום",
    "سوق",
    "naïve_Größe",
    "αβγδ",
    "ij",
    "x²y"[0],
]
HIDDEN = {
    "admin\u200b": "U+200B",  # zero-width space
    "ad\u200dmin": "U+200D",
    "\ufeffadmin": "U+FEFF",
    "nimda\u202e": "U+202E",  # right-to-left override
    "\u2066admin\u2069": "U+2066",
    "admin ": "space",
    " admin": "space",
    "ad  min": "space",
    "ad\u00a0min": "U+00A0",
    "ad\tmin": "U+0009",
    "ad\nmin": "U+000A",
    "ad\x00min": "U+0000",
    "ad\u00admin": "U+00AD",  # soft hyphen
    "ad\u3164min": "U+3164",  # Hangul filler
    "admin\ufe0f": "U+FE0F",
    "admin\U000e0061": "U+E0061",  # tag
    "cafe\u0301": "U+0301",  # the other spelling of café
    "\ud800": "U+D800",
}
ALIKE = {
    "\u0430dmin": "cyrillic small letter a",
    "adm\u0456n": "cyrillic small letter byelorussian-ukrainian i",
    "\u03bfwner": "greek small letter omicron",
    "\uff41dmin": "fullwidth latin small letter a",
    "\U0001d41adm": "mathematical bold small a",
    "a\uff1ab": "fullwidth colon",
    "a\u2236b": "ratio",
    "a\u2010b": "hyphen",
}


@each("name", HONEST)
def test_an_honest_name_stays_as_it_is(name: str) -> None:
    assert shown(name) in (name, f"<bdi>{name}</bdi>")
    assert spelled(name) == name


@each("name", HIDDEN)
def test_what_nobody_sees_is_a_mark(name: str) -> None:
    assert re.search(rf'<span class="odd" title="[^"]+">{re.escape(HIDDEN[name])}</span>', shown(name))
    assert f"[{HIDDEN[name]}]" in spelled(name)
    assert not re.search(r"[\x00-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", shown(name) + spelled(name))


@each("name", ALIKE)
def test_what_looks_like_something_else_is_underlined_and_read_out(name: str) -> None:
    assert re.search(
        rf'<span class="alike" title="{ALIKE[name]}, U\+\w+">.<span class="hide"> \({ALIKE[name]}', shown(name)
    )
    assert ALIKE[name] in spelled(name)


def test_a_whole_name_that_poses_as_latin_is_marked() -> None:
    assert '<span class="odd" title="Its letters look like Latin ones.">Cyrillic</span>' in shown(
        "\u0441\u043e\u0440\u0435"
    )
    assert spelled("\u0441\u043e\u0440\u0435").endswith(" [Cyrillic]")


@pytest.mark.parametrize("name", ["<b>&\"'", "<b>\u200b", "\u0430<script>"])
def test_markup_in_a_name_is_text(name: str) -> None:
    assert not re.search(r"<(?!/?(?:bdi|span)\b)", shown(name))
    assert "&lt;" in shown(name)


def test_two_names_are_never_shown_alike() -> None:
    names = [*HONEST, *HIDDEN, *ALIKE, "admin", "ad min", "owner", "a:b", "a-b"]
    assert len({re.sub("<.*?>", "", shown(name)) for name in names}) == len(names)


def test_a_moment_is_utc_and_says_so() -> None:
    at = datetime(2026, 3, 29, 14, 30, 5, tzinfo=timezone(timedelta(hours=2)))
    template = engines["django"].from_string('{% moment at %}|{% moment at "seconds" %}|{% moment none %}')
    minutes, seconds, nothing = template.render({"at": at, "none": None}).split("|")
    assert 'datetime="2026-03-29T12:30:05.000+00:00" title="2026-03-29 12:30:05 UTC">2026-03-29 12:30 UTC<' in minutes
    assert ">2026-03-29 12:30:05 UTC<" in seconds
    assert not nothing
    assert at.astimezone(UTC).hour == 12
