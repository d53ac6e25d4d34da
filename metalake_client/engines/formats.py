"""Which formats of tables a catalog of another system shows, by its properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from metalake_client.engines.catalogs import EngineCatalog
from metalake_client.engines.rendered import Refusal, value_of


def shown_formats(catalog: EngineCatalog) -> set[str]:
    """The formats that a Glue catalog shows; `all` where it leaves none out."""
    given = value_of(catalog, "table-type-filter") or value_of(catalog, "table-format-filter") or "all"
    return {word.strip().lower() for word in given.split(",") if word.strip()}


def require_iceberg(engine: str, catalog: EngineCatalog) -> None:
    """Raise Refusal for a catalog that shows no Iceberg tables to an engine that reads no others."""
    if not _SHOWS_ICEBERG[catalog.provider](catalog):
        raise Refusal(f"Catalog {catalog.name} is not in {engine}, which reads Iceberg tables alone: it shows none.")


_SHOWS_ICEBERG: Mapping[str, Callable[[EngineCatalog], bool]] = {
    "hive": lambda catalog: catalog.properties.get("list-all-tables") != "false",
    "glue": lambda catalog: bool(shown_formats(catalog) & {"all", "iceberg"}),
}
