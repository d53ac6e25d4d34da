"""Dotted full names (`catalog.schema.table`): a dot inside a name is written %2E, a percent sign %25."""

from collections.abc import Iterable


def dotted(parts: Iterable[str]) -> str:
    return ".".join(part.replace("%", "%25").replace(".", "%2E") for part in parts)


def undotted(full_name: str) -> list[str]:
    """The names in a dotted full name, each decoded once."""
    return [part.replace("%2E", ".").replace("%2e", ".").replace("%25", "%") for part in full_name.split(".")]
