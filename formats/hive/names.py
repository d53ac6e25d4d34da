"""Valid names of databases and tables, checked after lower-casing."""

from __future__ import annotations

import re
from typing import NamedTuple

from metalake.errors import Invalid
from metalake.wire import quote


class NameRule(NamedTuple):
    """The lower-case names that a system accepts, with advice for errors; `longest` is in bytes of UTF-8."""

    system: str
    allowed: re.Pattern[str]
    longest: int
    advice: str


_WORDS = "letters a to z, digits and underscores"
HIVE = NameRule("Hive", re.compile("[a-z0-9_]+"), 128, _WORDS)
GLUE = NameRule("AWS Glue", re.compile(r"[^\x00-\x1f\x7f]+"), 255, "no control characters")
ICEBERG_IN_GLUE = NameRule("Iceberg in AWS Glue", re.compile("[a-z0-9_]+"), 252, _WORDS)


def folded_name(name: str, rule: NameRule, kind: str) -> str:
    """The name in lower case, as the system stores it; `kind` is "schema", "table" or "view".

    Raises Invalid if the system does not accept it.
    """
    folded = name.lower()
    if not rule.allowed.fullmatch(folded) or folded != folded.strip() or folded in ("*", ".", ".."):
        raise Invalid(f"{quote(name)} is no name for a {kind} in {rule.system}; use {rule.advice}", kind=kind)
    if len(folded.encode(errors="replace")) > rule.longest:
        raise Invalid(
            f"{quote(name)} is too long for a {kind} in {rule.system}; use at most {rule.longest} bytes", kind=kind
        )
    return folded
