"""Names in Iceberg REST requests: in paths, in the `parent` parameter, in bodies, in the catalog's prefix.

Paths are matched while still encoded, and each segment is form-decoded exactly once: Java's client encodes a space as
`+`, Python's as `%20`. Source: Iceberg REST specification, "namespace-separator".
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from urllib.parse import unquote

from metalake.errors import Invalid
from metalake.hierarchy import check_segment
from metalake.kinds import Kind
from metalake.request_target import decode

Levels = tuple[str, ...]

SEPARATOR = "%1F"
ENCODED_PREFIX = "~"  # no catalog's name begins with it

_ENCODED_SEPARATOR = re.compile("%1F", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")


def name_in(segment: str, kind: Kind) -> str:
    """The name in a path segment. Raises Invalid for a name that Iceberg REST could not return."""
    return checked_name(decode(segment, form=True), kind)


def levels_in(segment: str) -> Levels:
    """The levels of the namespace in a path segment. Raises Invalid for an empty or invalid level."""
    return checked_levels(decode(level, form=True) for level in _ENCODED_SEPARATOR.split(segment))


def checked_name(name: str, kind: Kind) -> str:
    """The name. Raises Invalid if Iceberg REST cannot carry it."""
    check_segment(name, kind)
    return name


def checked_levels(levels: Iterable[str]) -> Levels:
    """The levels, at least one. Raises Invalid for an empty or invalid one."""
    checked = tuple(checked_name(level, Kind.SCHEMA) for level in levels)
    if not checked:
        raise Invalid("A namespace has at least one level.", kind=Kind.SCHEMA)
    return checked


def readings_of_parent(value: str) -> list[Levels]:
    """The possible namespaces of a `parent` parameter, most likely first: PyIceberg double-encodes every level."""
    readings = [checked_levels(value.split("\x1f"))]
    if "%" in value:
        levels = re.split("\x1f|%1F", value, flags=re.IGNORECASE)
        try:
            readings.append(checked_levels(unquote(level, errors="strict") for level in levels))
        except (Invalid, UnicodeDecodeError):
            pass
    return readings


def dotted(levels: Iterable[str]) -> str:
    """The name of a namespace or table in Iceberg REST messages."""
    return ".".join(levels)


def prefix_of(catalog: str) -> str:
    """The catalog's name in path-safe form (`~` and base64url if needed): Java's client does not encode the prefix."""
    if _PLAIN.fullmatch(catalog):
        return catalog
    return ENCODED_PREFIX + base64.urlsafe_b64encode(catalog.encode()).decode().rstrip("=")


def catalog_in(segment: str) -> str:
    """The catalog of a path's prefix, a plain name or in the form of `prefix_of`. Raises Invalid."""
    prefix = name_in(segment, Kind.CATALOG)
    if not prefix.startswith(ENCODED_PREFIX):
        return prefix
    encoded = prefix.removeprefix(ENCODED_PREFIX)
    try:
        name = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise Invalid(f"{prefix!r} is no prefix of this server; ask /v1/config for it.", kind=Kind.CATALOG) from None
    return checked_name(name, Kind.CATALOG)
