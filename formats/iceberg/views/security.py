"""With whose rights engines run an Iceberg view: the format has no such field, but Trino notes it in a property.

Source: Trino's Iceberg connector. A view whose property names an owner is run with the rights of that owner of Trino's
(SECURITY DEFINER, which is Trino's default), any other with those of whoever selects from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from formats.native.view_definition import SecurityMode
from metalake.errors import Invalid
from metalake.kinds import Kind

RUN_AS_OWNER = "trino.run-as-owner"


def security_mode(properties: Mapping[str, str]) -> SecurityMode | None:
    """DEFINER if Trino runs the view with its owner's rights; None if nothing is noted, which counts as INVOKER."""
    return SecurityMode.DEFINER if RUN_AS_OWNER in properties else None


def with_same_owner(properties: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The properties of another version for a view that runs as it does now."""
    others = {name: value for name, value in properties.items() if name != RUN_AS_OWNER}
    return others | {name: value for name, value in now.items() if name == RUN_AS_OWNER}


def require_same_owner(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raise Invalid if a view would run with other rights than before: that is decided when it is created."""
    if before.get(RUN_AS_OWNER) != after.get(RUN_AS_OWNER):
        raise Invalid(
            f"Property {RUN_AS_OWNER} says with whose rights Trino runs the view, and never changes: drop the view and "
            "create it again",
            kind=Kind.VIEW,
        )
