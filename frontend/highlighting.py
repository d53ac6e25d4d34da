"""SQL as HTML: syntax highlighting, and marks for invisible and confusable characters.

Both take time that grows with the text, so long SQL is not highlighted, and its odd characters are only spelled out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, groupby

from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from pygments.lexers.sql import SqlLexer
from pygments.token import Token, _TokenType

from frontend import confusables as names

MOST_COLOURED = 32 * 1024  # characters of a page
CLASSES: dict[_TokenType, str] = {
    Token.Keyword: "keyword",
    Token.Name.Builtin: "keyword",
    Token.Literal.String: "string",
    Token.Literal.Number: "number",
    Token.Comment: "comment",
}
PLAIN = re.compile(r"[!-~ \t\n]*")
"""Shown unchanged: printable ASCII, spaces, tabs and line breaks."""
_BLANKS = re.compile(r"([ \t\n]+)")


def coloured(texts: Iterable[str]) -> list[SafeString]:
    """Each SQL as HTML, its keywords, strings, numbers and comments in spans of these classes.

    Those that come after the first MOST_COLOURED characters are plain.
    """
    pieces, room = [], MOST_COLOURED
    for sql in map(_with_plain_breaks, texts):
        pieces.append(mark_safe("".join(_spans(sql))) if len(sql) <= room else spelled(sql))  # noqa: S308 (escaped)
        room -= len(sql)
    return pieces


def marked(text: str) -> SafeString:
    """Multi-line text, escaped, with a mark for each invisible or confusable character."""
    text = _with_plain_breaks(text)
    if PLAIN.fullmatch(text):
        return escape(text)
    pieces = (piece if _BLANKS.fullmatch(piece) else names.shown(piece) for piece in _BLANKS.split(text))
    return mark_safe("".join(pieces))  # noqa: S308 (each piece is escaped, or blank)


def spelled(text: str) -> SafeString:
    """The same for text of any length: invisible characters are spelled out, as `[U+202E]`, and nothing is marked."""
    return escape(_with_plain_breaks(text).translate(_spellings()))


def reads_as_written(text: str) -> bool:
    """Whether a text is rendered unchanged, so that it can be copied from the page."""
    return bool(PLAIN.fullmatch(text))


def _with_plain_breaks(text: str) -> str:
    return text.replace("\r\n", "\n")


@cache
def _spellings() -> dict[int, str]:
    """By code, the spelling of each control and format character."""
    codes = chain(range(0x10000), range(0xE0000, 0xE0080))
    unseen = (code for code in codes if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp"))
    return {code: f"[U+{code:04X}]" for code in unseen if chr(code) not in "\t\n"}


def _spans(text: str) -> Iterator[str]:
    for name, run in groupby(_words(text), lambda word: word[0]):
        piece = marked("".join(value for _, value in run))
        yield format_html('<span class="{}">{}</span>', name, piece) if name else piece


def _words(text: str) -> Iterator[tuple[str, str]]:
    """The tokens of the SQL, each after its CSS class; blanks and other text have none.

    A single letter is a name, such as a table's alias, though some are words of the standard.
    """
    for kind, value in SqlLexer(stripnl=False, ensurenl=False).get_tokens(text):
        name = next((name for token, name in CLASSES.items() if kind in token), "")
        yield "" if name == "keyword" and len(value) == 1 else name, value
