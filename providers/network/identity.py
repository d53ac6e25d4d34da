"""Where the server uses its ambient credentials: in its warehouse, and for the entries of METALAKE_OWN_IDENTITY.

Users who may create catalogs choose buckets, roles and hosts; with the server's credentials they could read the
operator's data there, or capture the credentials on their own host. Elsewhere access is by the catalog's keys or
anonymous.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from django.conf import settings

from formats.iceberg.locations import canonical
from metalake.errors import Invalid
from providers.network.endpoints import Endpoint, read_endpoint

HTTP = ("https", "http")
ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]{1,576}", re.ASCII)
GLUE = re.compile(r"glue://(server|[0-9]{12}[A-Za-z0-9:_./-]{0,241})/[a-z0-9-]{1,63}")
EVERYWHERE = re.compile(r"(s3|oss|gs|abfss|hdfs|viewfs)://\*")
ENTRY = re.compile(r"(https?://[^/]+)/*(.*)", re.IGNORECASE)
AZURE = re.compile(r"abfss://([^/@]+)@([a-z0-9]+)\.dfs\.core\.windows\.net(/.*)?")
# Location scheme -> the properties with which a catalog's owner points its client to another host.
SYSTEMS = {
    "s3": ("s3.endpoint",),
    "oss": ("s3.endpoint",),
    "gs": ("gcs.service.host",),
    "abfss": ("adls.blob-storage-authority", "adls.dfs-storage-authority"),
    "hdfs": (),
    "viewfs": (),
}
ROLES = ("s3.role-arn", "client.role-arn")
ADVICE = (
    "The catalog has no keys for it: give it some, or ask the operator whether METALAKE_OWN_IDENTITY, which says what "
    "the server's own identity is for, can name it."
)


@lru_cache(maxsize=16)
def parse_identity(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Parse METALAKE_OWN_IDENTITY into canonical entries. Raises Invalid, naming a malformed one."""
    return tuple(_entry(entry.strip()) for entry in entries)


def are_named(uses: Iterable[str]) -> bool:
    """Whether all are entries of METALAKE_OWN_IDENTITY: `glue://account/region`, a role's ARN, an endpoint's URL."""
    return set(parse_identity(settings.METALAKE_OWN_IDENTITY)).issuperset(uses)


def own_places(properties: Mapping[str, str], chosen: Iterable[tuple[str, Endpoint]], catalog_id: int) -> list[str]:
    """Where a catalog without keys uses the server's own identity: locations, or a whole system as `s3://*`.

    `chosen` are the endpoints in the properties, each with its property. They and a role must be entries as well.
    """
    entries = list(parse_identity(settings.METALAKE_OWN_IDENTITY))
    if settings.METALAKE_WAREHOUSE:
        entries.append(canonical(f"{settings.METALAKE_WAREHOUSE}/{catalog_id}"))
    urls = {key: endpoint.url for key, endpoint in chosen}
    if "hdfs.host" in urls:  # the host of locations without one
        entries = [entry for entry in entries if not entry.startswith(("hdfs:///", "viewfs:///"))]
    places: list[str] = []
    for scheme, keys in SYSTEMS.items():
        leading = [urls[key] for key in keys if key in urls]
        if scheme in ("s3", "oss") and not are_named(properties[key] for key in ROLES if properties.get(key)):
            continue
        if leading:
            places += set.intersection(*(_at(entries, scheme, url) for url in leading))
        else:
            account = properties.get("adls.account-name", "")
            places += [_of_account(entry, account) for entry in entries if entry.startswith(f"{scheme}://")]
    return places


def _of_account(entry: str, account: str) -> str:
    """An Azure location without the account, which its client reads from a property; other entries unchanged."""
    named = AZURE.fullmatch(entry)
    return f"abfss://{named[1]}{named[3] or ''}" if named and named[2] == account else entry


def _at(entries: list[str], scheme: str, url: str) -> set[str]:
    """The locations at an endpoint."""
    below = {f"{scheme}://{entry.removeprefix(url)[1:]}" for entry in entries if entry.startswith(f"{url}/")}
    return {f"{scheme}://*"} if url in entries else below


def _entry(entry: str) -> str:
    if ROLE.fullmatch(entry) or GLUE.fullmatch(entry) or EVERYWHERE.fullmatch(entry):
        return entry
    try:
        if url := ENTRY.fullmatch(entry):
            below = canonical(f"s3://{url[2]}").removeprefix("s3:/") if url[2] else ""
            return read_endpoint(url[1], HTTP).url + below
        place = canonical(entry)
        if place.startswith("file:"):
            raise Invalid("Files of this machine need no keys", kind="location")
    except Invalid as wrong:
        raise Invalid(
            f"{entry!r:.200} is no place (s3://lake/tables, or s3://* for all), endpoint (https://minio.lan:9000, or "
            f"https://minio.lan:9000/bucket/folder), glue://account/region or role's ARN: {wrong.message}",
            kind="catalog",
        ) from None
    return place
