"""Create the provider of a stored catalog, with its secrets decrypted."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from catalogs import vault
from catalogs.models import Catalog
from catalogs.secrets import MASK
from metalake.errors import Invalid, NotFound
from metalake.kinds import Kind
from metalake.lineage import Located, missing
from providers.base import Provider
from providers.metadata_files import MetadataFiles
from providers.registry import provider_for


def provider_of(row: Catalog) -> Provider:
    """The provider of a catalog row; one more statement if it has secrets."""
    has_secrets = MASK in row.properties.values()
    return provider_for(row.provider, row.pk, vault.properties_of(row.pk) if has_secrets else row.properties)


def provider_at(located: Located) -> Provider:
    """The provider of the catalog on a lineage; one statement if it has secrets."""
    catalog_id, known = located.catalog.id, located.properties
    try:
        properties = vault.properties_of(catalog_id) if known is None else vault.opened(catalog_id, orjson.loads(known))
        return provider_for(located.provider or "", catalog_id, properties)
    except NotFound:
        raise missing(Kind.CATALOG, [located.catalog.name]) from None


def files_of(located: Located) -> MetadataFiles:
    """The metadata files of a catalog with managed tables. Raises Unsupported for other catalogs."""
    return provider_at(located).files


def files_in(row: Catalog) -> MetadataFiles:
    """As `files_of`, for a catalog row; one statement if it has secrets."""
    return provider_of(row).files


def provider_with_locations(catalog_id: int, provider: str, properties: Mapping[str, str]) -> Provider:
    """A catalog's provider whose `locations` work; decrypts secrets only if a location is among them."""
    made = provider_for(provider, catalog_id, properties)
    try:
        made.locations()
    except Invalid:
        made = provider_for(provider, catalog_id, vault.properties_of(catalog_id))
    return made
