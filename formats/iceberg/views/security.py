"""With whose rights engines run an Iceberg view: the format has no such field, but Trino notes it in a property.

Source: Trino's Iceberg connector. A view whose property names an owner is run with the rights of that owner of Trino's
(SECURITY DEFINER, which is Trino's default), any other with those of whoever selects from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from formats.native.view_definition import SecurityMode, ViewDefinition
from metalake.errors import Invalid
from metalake.kinds import Kind

RUN_AS_OWNER = "trino.run-as-owner"


def names_owner(name: str) -> bool:
    """Whether a property is Trino's for whoever ignores case; no request writes it but in Trino's own spelling."""
    return name.upper().casefold() == RUN_AS_OWNER


def noted(properties: Mapping[str, str]) -> dict[str, str]:
    """What the properties say of whose rights Trino runs the view with, in any spelling."""
    return {name: value for name, value in properties.items() if names_owner(name)}


def security_mode(properties: Mapping[str, str]) -> SecurityMode | None:
    """DEFINER if Trino runs the view with its owner's rights; None if nothing is noted, which counts as INVOKER."""
    return SecurityMode.DEFINER if noted(properties) else None


def with_same_owner(properties: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The properties of another version for a view that runs as it does now."""
    return {name: value for name, value in properties.items() if not names_owner(name)} | noted(now)


def with_noted_mode(after: ViewDefinition, before: ViewDefinition, user: str) -> ViewDefinition:
    """A changed view, whose properties say its new mode, and whose mode is what they say; it would run as `user`."""
    properties = after.properties
    if after.security_mode is not before.security_mode:
        properties = with_same_owner(properties, {RUN_AS_OWNER: user} if after.is_definer else {})
    return replace(after, properties=properties, security_mode=security_mode(properties))


def check_spelling(properties: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
    """Raise Invalid for a new property that is Trino's in another case: who ignores case would obey it."""
    for name, value in noted(properties).items():
        if name != RUN_AS_OWNER and (before or {}).get(name) != value:
            raise Invalid(f"properties.{name}: this spelling is reserved; Trino's is {RUN_AS_OWNER}", kind=Kind.VIEW)
