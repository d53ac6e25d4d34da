"""A template's content: the JSON object of the API, and its placeholders.

A placeholder `{{name}}` may appear in arguments and in values of environments and configs. Its value stays within that
one item, so it can add none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from metalake.errors import Invalid
from metalake.wire import quote

LONGEST_VALUE = 8192  # characters of an item with its placeholders filled
Content = Mapping[str, Any]

_MARK = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_NUMBER = re.compile(r"-[0-9.]+([eE][+-]?[0-9]+)?", re.ASCII)
_FILLED = ("arguments", "environments", "configs")


def placeholders(content: Content) -> list[str]:
    """The placeholders' names, in order. Raises Invalid for a malformed one, or one in a field that allows none."""
    for field, value in content.items():
        where = _texts(value) if field not in _FILLED else iter(value) if isinstance(value, dict) else iter(())
        for text in where:
            if _MARK.search(text):
                raise Invalid(
                    f"{field}: {quote(text)} has a placeholder, which can stand in arguments and in values of "
                    "environments and configs only.",
                    kind="job_template",
                )
    return list(dict.fromkeys(name for field in _FILLED for text in _texts(content.get(field)) for name in _in(text)))


def changed_fields(was: Content, is_now: Content) -> list[str]:
    """The fields in which two contents differ, except customFields, which change nothing in a run."""
    return [name for name in sorted({*was, *is_now} - {"customFields"}) if was.get(name) != is_now.get(name)]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _in(text: str) -> Iterator[str]:
    for mark in _MARK.finditer(text):
        if not _NAME.fullmatch(mark[1]):
            raise Invalid(
                f"{quote(mark[0])} is no placeholder: its name has up to 64 letters, digits or any of _ . -",
                kind="job_template",
            )
        yield mark[1]


def fill(content: Content, given: Mapping[str, str]) -> dict[str, Any]:
    """The content with its placeholders filled. Raises Invalid naming a missing, unknown or unsuitable value."""
    names = placeholders(content)
    if unknown := [name for name in given if name not in names]:
        known = f"it has {', '.join(names)}" if names else "it has none"
        raise Invalid(f"jobConf: the template has no placeholder {quote(unknown[0])}; {known}.", kind="job_template")
    if missing := [name for name in names if name not in given]:
        raise Invalid(f"jobConf: the template needs a value for {', '.join(missing)}.", kind="job_template")
    filled = dict(content)
    if "arguments" in content:
        filled["arguments"] = [
            _filled(text, given, f"arguments[{place}]", begins=True) for place, text in enumerate(content["arguments"])
        ]
    for field in ("environments", "configs"):
        if field in content:
            filled[field] = {key: _filled(text, given, f"{field}.{key}") for key, text in content[field].items()}
    return filled


def _filled(text: str, given: Mapping[str, str], place: str, *, begins: bool = False) -> str:
    """With `begins`, raises Invalid if the values make it begin with a dash, since it would be read as an option."""
    filled = _MARK.sub(lambda mark: given[mark[1]], text)
    if begins and filled.startswith("-") and not text.startswith("-") and not _NUMBER.fullmatch(filled):
        raise Invalid(
            f"jobConf.{', '.join(_in(text))}: {quote(filled)} would be an option of the program ({place}), so it "
            "cannot begin with a dash.",
            kind="job_template",
        )
    if len(filled) > LONGEST_VALUE:
        raise Invalid(f"{place} has more than {LONGEST_VALUE} characters once it is filled.", kind="job_template")
    return filled
