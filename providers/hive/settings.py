"""The declared properties of a Hive catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from metalake.errors import Unsupported
from metalake.kinds import Kind
from providers.places import PlacedSettings
from providers.settings import ExternalSettings

URIS = "metastore.uris"
LIST_ALL = "list-all-tables"
BYPASS = "gravitino.bypass."
KERBEROS = ("kerberos.principal", "kerberos.keytab-uri")
SWITCHES = ("impersonation-enable", "hive.metastore.sasl.enabled", "hive.metastore.use.SSL")


class HiveSettings(PlacedSettings, ExternalSettings):
    groups = {"Connection": [URIS], "Tables": [LIST_ALL]}
    uris: str = Field(
        alias=URIS,
        description="The metastore as thrift://host:port; several, divided by commas, are tried in their order.",
    )
    list_all_tables: Literal["true", "false"] = Field(
        "true",
        alias=LIST_ALL,
        description="Whether tables of other formats than Hive's own, such as Iceberg, are shown.",
    )


def require_offered(properties: Mapping[str, str]) -> None:
    """Raise Unsupported for a metastore with Kerberos or TLS."""
    for key, value in properties.items():
        name = key.removeprefix(BYPASS)
        if name in KERBEROS or (name in SWITCHES and value.strip().lower() == "true"):
            raise Unsupported(
                f"Property {key!r}: metastores that ask for Kerberos or TLS are not offered.", kind=Kind.CATALOG
            )
