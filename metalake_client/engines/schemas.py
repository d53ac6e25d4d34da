"""Which schemas of a catalog contain others, loaded from the server level by level."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from metalake_client.engines.catalogs import EngineCatalog
from metalake_client.rest import Client

AT_ONCE = 8  # catalogs that are loaded concurrently
SEPARATOR = "gravitino.schema.separator"

Path = tuple[str, ...]


def parents_of(client: Client, metalake: str, catalogs: Iterable[EngineCatalog]) -> dict[str, list[Path]]:
    """By catalog, the paths of the schemas that hold others, as lists of levels. Raises Failure."""
    nested = [each for each in catalogs if each.is_enabled and each.properties.get("nested-namespaces") == "true"]
    if not nested:
        return {}
    separator = separator_of(client)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        paths_of_each = pool.map(lambda each: _parents(client, metalake, each.name, separator), nested)
        return {each.name: paths for each, paths in zip(nested, paths_of_each, strict=True)}


def separator_of(client: Client) -> str:
    """What divides the levels of a schema's name on the native wire."""
    return str(client.settings().get(SEPARATOR) or ":")


def _parents(client: Client, metalake: str, catalog: str, separator: str) -> list[Path]:
    parents, asked = list[Path](), list[str | None]([None])
    while asked:
        schema = asked.pop()
        reply = client.get("metalakes", metalake, "catalogs", catalog, "schemas", parentSchema=schema)
        inner = [str(each["name"]) for each in reply["identifiers"]]
        if schema is not None and inner:
            parents.append(tuple(schema.split(separator)))
        asked += inner
    return sorted(parents)
