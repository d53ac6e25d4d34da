"""Marks invisible and confusable characters in names.

On pages about access that is security: `admin` with a Cyrillic letter, or with a trailing zero-width space, is another
account. The rules follow the idea of Unicode Technical Standard 39 (confusables, mixed scripts); the few letters that
look like Latin ones are listed here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

ORDINARY = re.compile(r"(?:[!-~]+ )*[!-~]+")
"""Printable ASCII with single spaces inside: nothing to mark."""
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that are blank though they count as letters, marks or symbols."""
SELECTORS = (range(0xFE00, 0xFE10), range(0xE0000, 0xE1000))
STEADY = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
MOST_ACCENTS = 2  # on one letter; none where the same name has a shorter spelling, which looks the same
WRITTEN_TOGETHER = frozenset({"HIRAGANA", "KATAKANA", "CJK", "HANGUL", "BOPOMOFO", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"})
"""Scripts that are written with each other, and with Latin letters."""
LIKE_LATIN = frozenset("авеѕіјкмноӏпрԛгстухһѵѡԁԝүӔАВЕЅІЈКМНОРСТУХҺѴԜԌӀαγινοπρτυχωκηϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹօսոցհյքզԼՕՍՏ")
"""Cyrillic, Greek and Armenian letters that look like Latin ones."""
LIKE_SIGNS = frozenset("\u2010\u2011\u2012\u2212\u2044\u2215\u2236\ua789\u02d0\u05c3\u02bc\u2024\u0589\u01c3")
"""Signs that look like - / : ' . and !"""


class Piece(NamedTuple):
    """A part of a name: `text` as it is, or with `says` a mark in its place or a letter that is underlined."""

    text: str
    says: str = ""
    is_letter: bool = False


def shown(name: object) -> SafeString:
    """The name as HTML, escaped, with a mark for each deceptive character."""
    text = str(name)
    if ORDINARY.fullmatch(text) or not text:
        return escape(text)
    marked = mark_safe("".join(map(_marked, _pieces(text))))  # noqa: S308 (each piece is escaped)
    return format_html("<bdi>{}</bdi>{}", marked, _note(text))


def sentence(text: object) -> SafeString:
    """A sentence with names in it: each word is checked separately, since a sentence may mix scripts."""
    return mark_safe(" ".join(shown(word) for word in str(text).split(" ")))  # noqa: S308 (each word is escaped)


def spelled(name: object) -> str:
    """The same as plain text, for titles and labels: `admin[U+200B]`."""
    text = str(name)
    if ORDINARY.fullmatch(text) or not text:
        return text
    if whole := _posing_script(text):
        return f"{text} [{whole}]"
    return "".join(_in_words(piece) for piece in _pieces(text))


def _in_words(piece: Piece) -> str:
    if not piece.says:
        return piece.text
    return f"{piece.text}[{piece.says}]" if piece.is_letter else f"[{_code(piece.text)}]"


def _marked(piece: Piece) -> SafeString:
    if not piece.says:
        return escape(piece.text)
    if piece.is_letter:
        return format_html(
            '<span class="alike" title="{}">{}<span class="hide"> ({})</span></span>',
            piece.says,
            piece.text,
            piece.says,
        )
    return format_html('<span class="odd" title="{}">{}</span>', piece.says, _code(piece.text))


def _note(text: str) -> SafeString:
    script = _posing_script(text)
    if not script:
        return mark_safe("")
    return format_html(' <span class="odd" title="Its letters look like Latin ones.">{}</span>', script)


def _code(char: str) -> str:
    return "space" if char == " " else f"U+{ord(char):04X}"


def _pieces(text: str) -> Iterator[Piece]:
    strangers = _strangers(text)
    most_accents = MOST_ACCENTS if unicodedata.is_normalized("NFC", text) else 0
    plain, accents = "", 0
    for place, char in enumerate(text):
        accents = accents + 1 if unicodedata.combining(char) else 0
        is_hidden = _is_hidden(text, place) or accents > most_accents
        if not is_hidden and char not in strangers and not _looks_plain(char):
            plain += char
            continue
        if plain:
            yield Piece(plain)
            plain = ""
        yield Piece(char, _name_of(char), not is_hidden)
    if plain:
        yield Piece(plain)


def _is_hidden(text: str, place: int) -> bool:
    """Whether this character is invisible: an outer or repeated space, a control or format character, a blank."""
    char = text[place]
    if char == " ":
        return place in (0, len(text) - 1) or text[place - 1] == " "
    if char in INVISIBLE or unicodedata.category(char) in STEADY or unicodedata.category(char) == "Zs":
        return True
    return any(ord(char) in selectors for selectors in SELECTORS)


def _looks_plain(char: str) -> bool:
    """Whether this is another spelling of an ASCII character, as a wide or a mathematical letter is."""
    return not char.isascii() and (char in LIKE_SIGNS or unicodedata.normalize("NFKC", char).isascii())


def _strangers(text: str) -> frozenset[str]:
    """The letters of scripts that are not written together with the rest of the name."""
    letters = {char: script_of(char) for char in text if char.isalpha()}
    scripts = {script for script in letters.values() if script not in WRITTEN_TOGETHER}
    if len(scripts) < 2:
        return frozenset()
    home = "LATIN" if "LATIN" in scripts else max(sorted(scripts), key=list(letters.values()).count)
    return frozenset(char for char, script in letters.items() if script in scripts and script != home)


def _posing_script(text: str) -> str:
    """The script of a name whose letters all look like Latin ones though none is; "" of any other name."""
    letters = [char for char in text if char.isalpha()]
    is_posing = bool(letters) and all(char in LIKE_LATIN for char in letters)
    return script_of(letters[0]).capitalize() if is_posing and not _strangers(text) else ""


@cache
def script_of(char: str) -> str:
    """The first word of a letter's Unicode name, which names its script: `CYRILLIC`."""
    return unicodedata.name(char, "UNKNOWN").split()[0]


def _name_of(char: str) -> str:
    if char == " ":
        return "a space"
    name = unicodedata.name(char, "") or CONTROLS.get(char, "a character without a name")
    return f"{name.lower()}, {_code(char)}"


CONTROLS = {
    "\x00": "null",
    "\t": "tab",
    "\n": "line break",
    "\r": "carriage return",
    "\x1b": "escape",
    "\x7f": "delete",
}
