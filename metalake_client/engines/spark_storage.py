"""Where the files of a catalog lie, in the words of Iceberg's Java; their secrets are the caller's to bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metalake_client.engines.catalogs import EngineCatalog
from metalake_client.engines.spark_pairs import Pair
from metalake_client.failures import Exit, Failure

# Properties of catalogs, and what Iceberg's Java calls them.
PROPERTIES = {
    "s3.endpoint": "s3.endpoint",
    "s3.region": "client.region",
    "s3.access-key-id": "s3.access-key-id",
    "s3.secret-access-key": "s3.secret-access-key",
    "s3.session-token": "s3.session-token",
    "aws-region": "client.region",
    "aws-access-key-id": "s3.access-key-id",
    "aws-secret-access-key": "s3.secret-access-key",
    "aws-session-token": "s3.session-token",
    "adls.account-name": "adls.auth.shared-key.account.name",
    "adls.account-key": "adls.auth.shared-key.account.key",
    "gcs.oauth2.token": "gcs.oauth2.token",
    "gcs.project-id": "gcs.project-id",
}
BUNDLES = {"s3": "aws", "s3a": "aws", "s3n": "aws", "gs": "gcp", "gcs": "gcp", "abfs": "azure", "abfss": "azure"}


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Iceberg's properties, Maven coordinates of the jars that they need, and the missing secrets."""

    properties: dict[str, str]
    packages: tuple[str, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...]


def storage_of(catalog: EngineCatalog, brought: Mapping[str, str], pair: Pair) -> Storage:
    """Raises Failure for a secret that nothing here has a use for."""
    if strange := sorted(brought.keys() - PROPERTIES.keys()):
        raise Failure(f"secrets of {catalog.name}: Spark has no use for {strange[0]}.", Exit.USAGE)
    missing = tuple(key for key in catalog.masked if key in PROPERTIES and key not in brought)
    known = {key: value for key, value in catalog.properties.items() if key not in catalog.masked} | dict(brought)
    own = {iceberg: known[key] for key, iceberg in PROPERTIES.items() if known.get(key)}
    if "s3.endpoint" in own and known.get("s3.force-virtual-addressing", "false") == "false":
        own["s3.path-style-access"] = "true"
    bundles = dict.fromkeys(pair.bundle(kind) for kind in _kinds(catalog) if kind)
    return Storage(properties=own, packages=tuple(bundles), missing=missing, notes=_bring(catalog, missing))


def _kinds(catalog: EngineCatalog) -> list[str | None]:
    """The kinds of storage that the catalog's places and properties tell of."""
    places = ",".join(catalog.properties.get(key, "") for key in ("warehouse", "allowed-locations")).split(",")
    kinds = [BUNDLES.get(place.strip().partition("://")[0].lower()) for place in places]
    return [*kinds, "aws" if any(key.startswith(("s3.", "aws-")) for key in catalog.properties) else None]


def _bring(catalog: EngineCatalog, missing: tuple[str, ...]) -> tuple[str, ...]:
    if not missing:
        return ()
    wanted = ", ".join(f"{key!r}: ..." for key in missing)
    return (
        f"the server gives no secrets away: secrets={{{catalog.name!r}: {{{wanted}}}}} brings yours; "
        "without them Spark takes what its machine has.",
    )
