"""Who may choose a place: those of schemas are for whoever owns the catalog."""

from __future__ import annotations

from collections.abc import Mapping

from authz import operations, policy
from authz.policy import Actor
from catalogs.lookup import Found
from metalake.errors import Forbidden
from metalake.privileges import Kind

LOCATION, OPENED = "location", "allowed-locations"  # properties of a schema


def chooses(actor: Actor, found: Found) -> bool:
    """Whether the actor owns the catalog of this object, or its metalake: to them every place of it is open."""
    return policy.permits(actor, operations.CHOOSE_PLACES, found)


def require_choice(actor: Actor, found: Found, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Raise Forbidden where a schema's places differ and the actor may not choose any (decision 24).

    `found` is anything in the catalog; nothing else is looked at, so the refusal tells nothing of what is hidden.
    """
    changed = [key for key in (LOCATION, OPENED) if before.get(key) != after.get(key)]
    if changed and not chooses(actor, found):
        raise Forbidden(
            f"{actor.name} may not choose where a schema lies: {' and '.join(changed)} are for the owner of catalog "
            f"{found.catalog.name}, who may create the schema with them, or set them.",
            kind=Kind.SCHEMA,
        )
