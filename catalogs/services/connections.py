"""Trying the connection that a registration, or an alteration of a catalog, would lead to; nothing is kept."""

from __future__ import annotations

from django.db import transaction

from authz import operations, policy
from authz.actor import Actor
from catalogs.lookup import find
from catalogs.models import Catalog
from catalogs.services import catalog_places, systems
from catalogs.services.catalogs import altered_provider, check_registration, try_out
from catalogs.services.changes import (
    Alteration,
    require_enabled,
    row_of,
)
from metalake.lineage import Address
from metalake.models import new_id


def test_connection(
    actor: Actor, metalake: str, name: str, type_: str, provider: str | None, properties: dict[str, str]
) -> None:
    """Try what a registration would use; asks the same right as creating."""
    located = find(actor, Address(metalake=metalake))
    policy.require(actor, operations.TEST_CONNECTION, located)
    require_enabled(located)
    chosen = check_registration(name, type_, provider, properties)
    trial = new_id()
    tried = chosen(trial, chosen.completed(trial, properties))
    try_out(tried, located.id, tried.test_connection)


def test_altered_connection(actor: Actor, metalake: str, name: str, alteration: Alteration) -> None:
    """Try what an alteration would lead to, keeping none of it; whoever may alter the catalog may try.

    Its secrets go wherever the altered properties point, so no lesser right will do.
    """
    altered, metalake_id = altered_provider(actor, metalake, name, alteration)
    try_out(altered, metalake_id, altered.test_connection)
    system = systems.look_up_again(altered, metalake_id)
    with transaction.atomic():
        row = row_of(Catalog, find(actor, Address(metalake=metalake, catalog=name)))
        catalog_places.claim_anew(actor, row, row.properties, altered.properties, system)
        transaction.set_rollback(True)  # what is reserved for the actor is used by the alteration itself
