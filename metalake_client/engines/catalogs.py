"""The catalogs of a metalake, as engines are configured with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from metalake_client.rest import Client

MASK = "******"
"""What the server shows in the place of a secret."""


@dataclass(frozen=True, kw_only=True)
class EngineCatalog:
    """A catalog that its reader may use; `properties` are as the server shows them, secrets masked."""

    name: str
    provider: str
    type: str = "relational"
    properties: Mapping[str, str] = field(default_factory=dict)
    is_enabled: bool = True

    @property
    def masked(self) -> tuple[str, ...]:
        """The properties that the server masks; an engine needs their values from elsewhere."""
        return tuple(sorted(key for key, value in self.properties.items() if value == MASK))


def catalogs_of(client: Client, metalake: str) -> list[EngineCatalog]:
    """All catalogs that the caller may use, by name, in one request. Raises Failure."""
    reply = client.get("metalakes", metalake, "catalogs", details="true")
    return sorted(map(_catalog, reply["catalogs"]), key=lambda each: each.name)


def iceberg_uri(url: str, metalake: str) -> str:
    """Where the Iceberg REST wire of a metalake is; a catalog is its `warehouse`."""
    return f"{url.rstrip('/')}/iceberg/{quote(metalake, safe='')}"


def _catalog(shown: Mapping[str, object]) -> EngineCatalog:
    properties = dict(shown.get("properties") or {})  # type: ignore[call-overload]
    return EngineCatalog(
        name=str(shown["name"]),
        provider=str(shown.get("provider") or ""),
        type=str(shown.get("type") or "relational"),
        properties=properties,
        is_enabled=properties.get("in-use", "true") == "true",
    )
