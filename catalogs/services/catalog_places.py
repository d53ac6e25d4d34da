"""The places of catalogs: each belongs to one catalog, except that one owner's views of one system may share them.

Source: docs/authorization.md, rule 13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from authz.actor import Actor
from authz.objects import by_ids
from catalogs.lookup import by_id
from catalogs.models import Catalog
from catalogs.services import reserved_denies, reserved_places, storage_identity, systems
from catalogs.services.provider_of import provider_with_locations
from catalogs.services.systems import System
from formats.iceberg.locations import canonical, is_under, may_meet, real_path
from metalake.errors import Invalid
from metalake.kinds import Kind
from metalake.lineage import Node
from providers.base import Provider
from providers.registry import provider_for


def claim_again(
    actor: Actor, row: Catalog, before: Mapping[str, str], opened: Mapping[str, str], system: System
) -> None:
    """Claim a catalog's places again if an alteration changed its places, their storages, its formats or its system."""
    former, altered = provider_with_locations(row.pk, row.provider, before), provider_for(row.provider, row.pk, opened)
    claimed, claims = ((of.locations(), of.only_formats) for of in (former, altered))
    has_moved = row.storages != system.storages
    leads_elsewhere = storage_identity.of_properties(before) != storage_identity.of_properties(row.properties)
    is_left = any(not any(is_under(place, other) for other in altered.locations()) for place in former.locations())
    if is_left or leads_elsewhere or systems.has_moved(row, system):
        there = by_id(row.pk)
        assert there is not None
        reserved_denies.require_lift_on(actor, there, f"Leading catalog {there.name} elsewhere")
    if claimed != claims or has_moved or systems.has_moved(row, system):
        claim(actor, row, altered, system, () if has_moved else former.locations())


def claim(actor: Actor, row: Catalog, provider: Provider, system: System, before: Sequence[str] = ()) -> None:
    """Raise Invalid if a place of the catalog overlaps one of another catalog (docs/authorization.md, rule 13), or if
    one outside those of `before` is reserved for another owner: both are refused alike.
    """
    mine = provider.locations()
    refusal = Invalid(
        f"{', '.join(mine)} overlaps a location of another catalog, or one that is reserved for a dropped, unpurged "
        "object, whose former owner may use or release it; if its catalog was dropped too, an operator may.",
        kind=Kind.CATALOG,
    )
    systems.lock_registrations()
    for other in Catalog.objects.exclude(pk=provider.catalog_id):
        their_provider = provider_with_locations(other.pk, other.provider, other.properties)
        of_other = storage_identity.of(other)
        for theirs in their_provider.locations():
            for location in mine:
                if not may_meet(location, theirs) or not storage_identity.may_be_same(
                    location, system.storages, of_other
                ):
                    continue
                if not systems.may_share_places(system, row, provider, other, their_provider):
                    raise refusal
    # After comparing the catalogs: one dropped in the meantime has reserved its places by now.
    added = [location for location in mine if not any(is_under(location, place) for place in before)]
    real_places = [canonical(real_path(location)) for location in added]
    every = list(dict.fromkeys([*added, *real_places]))
    metalake_id = row.lineage_ids[0]
    node = Node(row.pk, Kind.CATALOG, row.name, row.owner_user_id, row.owner_group_id)
    home = by_ids([metalake_id])[metalake_id].below(node)
    try:
        reserved_places.take(actor, every, Kind.CATALOG, home, system.storages)
    except reserved_places.OfOthers:
        raise refusal from None
