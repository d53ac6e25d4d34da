"""Provider names to classes, imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from django.conf import settings

from metalake.errors import Unsupported
from providers.base import Provider

PROVIDERS = {
    "glue": "providers.glue.provider:GlueProvider",
    "jdbc-doris": "providers.jdbc.provider:DorisProvider",
    "jdbc-mysql": "providers.jdbc.provider:MySQLProvider",
    "jdbc-postgresql": "providers.jdbc.provider:PostgreSQLProvider",
    "jdbc-starrocks": "providers.jdbc.provider:StarRocksProvider",
    "hive": "providers.hive.provider:HiveProvider",
    "lakehouse-iceberg": "providers.iceberg.provider:IcebergProvider",
    **settings.METALAKE_PROVIDERS,
}


def provider_class(name: str) -> type[Provider]:
    """The provider class registered under a name. Raises Unsupported, listing the available names."""
    try:
        path = PROVIDERS[name]
    except KeyError:
        raise Unsupported(
            f"There is no provider {name!r}; available: {', '.join(sorted(PROVIDERS))}.", kind="catalog"
        ) from None
    return _imported(path)


def providers_of(type_: str) -> list[str]:
    """The names of the providers for this catalog type; empty if the server has none.

    Imports every provider, which takes seconds the first time.
    """
    return sorted(name for name in PROVIDERS if provider_class(name).catalog_type == type_)


@cache
def _imported(path: str) -> type[Provider]:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def provider_for(name: str, catalog_id: int, properties: Mapping[str, str]) -> Provider:
    """The provider of a catalog. Raises Unsupported for an unknown name."""
    return provider_class(name)(catalog_id, properties)
