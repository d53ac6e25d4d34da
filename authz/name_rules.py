"""Validation of user, group, role and token names, and of role properties."""

from __future__ import annotations

import re
from collections.abc import Mapping

from metalake.errors import Invalid, TooLarge

MAX_NAME = 128
MAX_PROPERTIES = 1000
MAX_VALUE = 64 * 1024
MAX_ROLE_NAME = 64
JOBS_PRINCIPAL = "system-jobs"
"""The service account that writes job results; nobody can sign in with it."""
ROLE_NAME = re.compile(rf"\w[\w/=-]{{0,{MAX_ROLE_NAME - 1}}}")


def check_name(name: str, kind: str) -> None:
    """Raise Invalid unless a group or token name is 1 to 128 printable characters without surrounding spaces."""
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name != name.strip():
        raise Invalid(f"{name!r} cannot be a {kind} name: use 1 to {MAX_NAME} printable characters.", kind=kind)


def check_user_name(name: str) -> None:
    """As `check_name`; also rejects a colon, which ends the name in Basic credentials. Raises Invalid."""
    check_name(name, "user")
    if ":" in name:
        raise Invalid(f"{name!r} cannot be a user name: a colon ends the name in a Basic credential.", kind="user")


def check_role_name(name: str) -> None:
    """Raise Invalid unless a role name follows Gravitino's rule: a word character, then up to 63 of `\\w / = -`."""
    if not ROLE_NAME.fullmatch(name):
        raise Invalid(
            f"{name!r} cannot be a role name: use up to 64 letters, digits or any of _ / = - and start with a letter, "
            "a digit or _.",
            kind="role",
        )


def check_properties(properties: Mapping[str, str]) -> None:
    if len(properties) > MAX_PROPERTIES:
        raise TooLarge(f"A role may have {MAX_PROPERTIES} properties, not {len(properties)}.", kind="role")
    for key, value in properties.items():
        if not key or not key.isprintable() or "\x00" in value:
            raise Invalid(f"Property {key!r} must have a printable name and a value without NUL.", kind="role")
        if len(key) > MAX_NAME or len(value) > MAX_VALUE:
            raise TooLarge(f"Property {key[:MAX_NAME]!r} is too long.", kind="role")
