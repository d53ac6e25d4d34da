"""The security mode of an Iceberg view: the format has no field for it, but Trino stores it in a property.

Source: Trino's Iceberg connector. If the property names an owner, Trino runs the view with that Trino user's rights
(SECURITY DEFINER, Trino's default), otherwise with the invoker's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from formats.native.view_definition import SecurityMode, ViewDefinition
from metalake.errors import Invalid
from metalake.kinds import Kind

RUN_AS_OWNER = "trino.run-as-owner"


def names_owner(name: str) -> bool:
    """Whether this is Trino's property, ignoring case; requests may write it only in Trino's own spelling."""
    return name.upper().casefold() == RUN_AS_OWNER


def noted(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that name the owner Trino runs the view as, in any spelling."""
    return {name: value for name, value in properties.items() if names_owner(name)}


def security_mode(properties: Mapping[str, str]) -> SecurityMode | None:
    """DEFINER if Trino runs the view with its owner's rights; None if no owner is stored, which counts as INVOKER."""
    return SecurityMode.DEFINER if noted(properties) else None


def with_same_owner(properties: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Another version's properties, with the owner of `now`: restoring them does not change the security mode."""
    return {name: value for name, value in properties.items() if not names_owner(name)} | noted(now)


def with_noted_mode(after: ViewDefinition, before: ViewDefinition, user: str) -> ViewDefinition:
    """The changed view with properties and security mode in agreement; a view turned DEFINER runs as `user`."""
    properties = after.properties
    if after.security_mode is not before.security_mode:
        properties = with_same_owner(properties, {RUN_AS_OWNER: user} if after.is_definer else {})
    return replace(after, properties=properties, security_mode=security_mode(properties))


def check_spelling(properties: Mapping[str, str], before: Mapping[str, str] | None = None) -> None:
    """Raise Invalid for a new property that is Trino's in another case: an engine that ignores case would obey it."""
    for name, value in noted(properties).items():
        if name != RUN_AS_OWNER and (before or {}).get(name) != value:
            raise Invalid(f"properties.{name}: this spelling is reserved; Trino's is {RUN_AS_OWNER}", kind=Kind.VIEW)
