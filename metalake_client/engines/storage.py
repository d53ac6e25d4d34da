"""Where the files of a catalog lie, as its properties say it, for engines that open them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from metalake_client.engines.catalogs import EngineCatalog
from metalake_client.engines.rendered import Refusal, is_masked, value_of, variable_of


class Kind(enum.StrEnum):
    """A kind of storage."""

    FILE = "file"
    S3 = "s3"
    GCS = "gcs"
    AZURE = "azure"
    HDFS = "hdfs"


SCHEMES = {
    "file": Kind.FILE,
    "s3": Kind.S3,
    "s3a": Kind.S3,
    "s3n": Kind.S3,
    "gs": Kind.GCS,
    "gcs": Kind.GCS,
    "abfs": Kind.AZURE,
    "abfss": Kind.AZURE,
    "wasb": Kind.AZURE,
    "wasbs": Kind.AZURE,
    "hdfs": Kind.HDFS,
    "viewfs": Kind.HDFS,
}
KEYS = ("access-key-id", "secret-access-key", "session-token", "external-id")
_AWS = ".amazonaws.com"


@dataclass(frozen=True, kw_only=True)
class S3:
    """How S3 is reached; `variables` maps KEYS to the environment variables with masked keys."""

    endpoint: str = ""
    region: str = ""
    role: str = ""
    path_style: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The kinds of a catalog's places, the places, and how those on S3 are reached."""

    kinds: tuple[Kind, ...]
    places: tuple[str, ...] = ()
    s3: S3 = field(default_factory=S3)


def storage_of(catalog: EngineCatalog) -> Storage:
    """Raises Refusal for a location on an unknown storage, and for a value that an engine would substitute."""
    named = [value_of(catalog, "warehouse"), *value_of(catalog, "allowed-locations").split(",")]
    places = tuple(place.strip() for place in named if place.strip())
    kinds = list(dict.fromkeys(_kind(catalog, place) for place in places))
    if not kinds and (catalog.provider == "glue" or any(key.startswith("s3.") for key in catalog.properties)):
        kinds.append(Kind.S3)
    return Storage(kinds=tuple(kinds), places=places, s3=_s3(catalog))


def _kind(catalog: EngineCatalog, place: str) -> Kind:
    scheme = place.partition(":")[0].lower() if ":" in place else "file"
    try:
        return SCHEMES[scheme]
    except KeyError:
        raise Refusal(f"Catalog {catalog.name} has files at {scheme}:, which is not offered to engines here.") from None


def _s3(catalog: EngineCatalog) -> S3:
    """By the properties s3.*, or what a Glue catalog says of AWS."""
    prefix = "s3." if any(f"s3.{key}" in catalog.properties for key in KEYS) else "aws-"
    endpoint = value_of(catalog, "s3.endpoint")
    forced = value_of(catalog, "s3.force-virtual-addressing") == "true"
    host = urlsplit(endpoint).hostname or ""
    return S3(
        endpoint=endpoint,
        region=value_of(catalog, "s3.region") or value_of(catalog, "aws-region"),
        role=value_of(catalog, "s3.role-arn") or value_of(catalog, "aws-role-arn"),
        path_style=bool(endpoint) and not host.endswith(_AWS) and not forced,
        variables={key: variable_of(catalog, prefix + key) for key in KEYS if is_masked(catalog, prefix + key)},
    )
