"""The provider of a catalog as it is kept, its secrets open."""

from __future__ import annotations

from collections.abc import Mapping

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
    """A statement more where it has secrets."""
    has_secrets = MASK in row.properties.values()
    return provider_for(row.provider, row.pk, vault.properties_of(row.pk) if has_secrets else row.properties)


def provider_at(located: Located) -> Provider:
    """The provider of the catalog on a lineage; one statement."""
    try:
        return provider_for(located.provider or "", located.catalog.id, vault.properties_of(located.catalog.id))
    except NotFound:
        raise missing(Kind.CATALOG, [located.catalog.name]) from None


def files_of(located: Located) -> MetadataFiles:
    """The metadata files of a catalog whose tables are ours. Raises Unsupported for another; one statement."""
    return provider_at(located).files


def files_in(row: Catalog) -> MetadataFiles:
    """The same for a catalog's row; a statement where it has secrets."""
    return provider_of(row).files


def kept_provider(catalog_id: int, provider: str, properties: Mapping[str, str]) -> Provider:
    """A catalog's provider that can say its locations; its secrets are opened only where a location is one of them."""
    kept = provider_for(provider, catalog_id, properties)
    try:
        kept.locations()
    except Invalid:
        kept = provider_for(provider, catalog_id, vault.properties_of(catalog_id))
    return kept
