"""Dry run of a catalog's connection before it is registered or altered; nothing is stored."""

from __future__ import annotations

from django.db import transaction

from authz import operations, policy
from authz.actor import Actor
from catalogs.lookup import find
from catalogs.models import Catalog
from catalogs.services import catalog_places
from catalogs.services.alterations import Alteration, require_enabled, row_of
from catalogs.services.catalogs import altered_provider, check_registration, look_up_again, run_trial
from metalake.lineage import Address
from metalake.models import new_id


def test_connection(
    actor: Actor, metalake: str, name: str, type_: str, provider: str | None, properties: dict[str, str]
) -> None:
    """Test the connection of a catalog to be registered; needs the same right as creating it."""
    located = find(actor, Address(metalake=metalake))
    policy.require(actor, operations.TEST_CONNECTION, located)
    require_enabled(located)
    _, chosen = check_registration(name, type_, provider, properties)
    trial = new_id()
    tried = chosen(trial, chosen.completed(trial, properties))
    run_trial(tried, located.id, tried.test_connection)


def test_altered_connection(actor: Actor, metalake: str, name: str, alteration: Alteration) -> None:
    """Test the connection that a catalog would have after an alteration.

    Needs the right to alter the catalog, since its secrets go wherever the altered properties point.
    """
    altered, metalake_id = altered_provider(actor, metalake, name, alteration)
    run_trial(altered, metalake_id, altered.test_connection)
    system = look_up_again(altered, metalake_id)
    with transaction.atomic():
        row = row_of(Catalog, find(actor, Address(metalake=metalake, catalog=name)))
        catalog_places.claim_again(actor, row, row.properties, altered.properties, system)
        transaction.set_rollback(True)  # dry run: the alteration itself makes the claims
