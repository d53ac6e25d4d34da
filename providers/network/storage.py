"""A catalog's FileIO, and the hosts in its properties that it connects to.

PyArrow, used for all but S3, does its DNS lookups in C++: we check the hosts before calling it, but cannot pin them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from formats.iceberg.storage import IO_SETTINGS, Opener, file_io
from metalake.errors import Invalid, at
from providers.network.endpoints import (
    CONNECT_SECONDS,
    Endpoint,
    UnknownHost,
    connect,
    listener_name,
    listener_names,
    parse_endpoint,
    resolve,
)
from providers.network.identity import HTTP, own_places

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

S3 = ("s3", "s3a", "s3n", "oss")
CLUSTER = ("hdfs", "viewfs")
AZURE_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
AZURE_AUTHORITIES = ("adls.blob-storage-authority", "adls.dfs-storage-authority")
# The location schemes whose storage a property configures, and the hosts of a scheme's one global storage.
STORED_AT = {"s3.endpoint": ("s3", "oss"), "gcs.service.host": ("gs",), "hdfs.host": CLUSTER}
STORED_AT |= dict.fromkeys(AZURE_AUTHORITIES, ("abfss",))
AWS = r"s3(-fips)?([.-]dualstack)?([.-][a-z]{2}(-[a-z]+)+-[0-9])?\.amazonaws\.com(\.cn)?"
WORLDWIDE = {"s3": re.compile(AWS), "gs": re.compile(r"(storage|www)\.googleapis\.com")}
SITE = "default"  # the file system of the operator's core-site.xml


def open_storage(catalog_id: int, properties: Mapping[str, str], more: Mapping[str, str] | None = None) -> FileIO:
    """The FileIO of a catalog's properties, after checking its hosts; `more` are defaults for these.

    Raises the errors of `reach_storage`.
    """
    reach_storage(properties)
    given = {**(more or {}), **properties}
    return file_io(given, open_remote, own_places(given, parse_storage(properties), catalog_id))


def open_remote(settings: Mapping[str, str], scheme: str, is_own: bool) -> Any:
    return client_of(scheme)(settings, scheme, is_own)


def client_of(scheme: str) -> Opener:
    """The client class for a scheme, imported on first use."""
    if scheme in S3:
        from providers.network.s3 import S3Files  # botocore

        return S3Files
    from providers.network.arrow import ArrowFiles  # pyarrow and pyiceberg: 90 MB and a second

    return ArrowFiles


def parse_storage(properties: Mapping[str, str]) -> list[tuple[str, Endpoint]]:
    """The endpoints in the properties, without a DNS lookup. Raises Invalid, naming the property."""
    for key in properties:
        if key.startswith(IO_SETTINGS) and "proxy" in key:
            raise Invalid(f"Property {key!r}: this server connects to storage without a proxy.", kind="catalog")
    account = properties.get("adls.account-name")
    if account and not AZURE_ACCOUNT.fullmatch(account):
        raise Invalid("Property 'adls.account-name' is 3 to 24 small letters or digits.", kind="catalog")
    _check_regions(properties)
    endpoints = []
    for key, url, schemes in _urls(properties):
        with at(f"Property {key!r}"):
            endpoints.append((key, parse_endpoint(url, schemes)))
    return endpoints


def check_storage(properties: Mapping[str, str]) -> None:
    """Look up the hosts of properties to be registered, all within CONNECT_SECONDS.

    Raises Invalid for an unknown host or one that the server must not connect to, ProviderUnavailable if DNS fails.
    """
    try:
        reach_storage(properties)
    except UnknownHost as unknown:
        raise Invalid(f"{unknown.message} Check its spelling.", kind="catalog") from None


def reach_storage(properties: Mapping[str, str]) -> None:
    """`check_storage` for use before each access: raises UnknownHost for an unknown host."""
    deadline = monotonic() + CONNECT_SECONDS
    for key, endpoint in parse_storage(properties):
        with at(f"Property {key!r}"):
            try:
                resolve(endpoint.host, endpoint.port, seconds=max(deadline - monotonic(), 0.001))
            except UnknownHost:
                if endpoint.scheme not in CLUSTER:  # may be a name service in the operator's hdfs-site.xml
                    raise


def storages_named(properties: Mapping[str, str]) -> list[str]:
    """The bucket storages in the properties, as `s3://host:port`, without a DNS lookup. Raises Invalid."""
    return _storages(properties, lambda host, port: [f"{listener_name(host)}:{port}"])


def storages_at(properties: Mapping[str, str]) -> list[str]:
    """`storages_named`, plus their addresses from a DNS lookup. Raises Invalid or ProviderUnavailable."""
    return _storages(properties, listener_names)


def _storages(properties: Mapping[str, str], names: Callable[[str, int], list[str]]) -> list[str]:
    words = set()
    for key, endpoint in parse_storage(properties):
        schemes = [scheme for scheme in STORED_AT.get(key, ()) if not _is_worldwide(scheme, endpoint.host)]
        if schemes:
            words |= {f"{scheme}://{name}" for name in names(endpoint.host, endpoint.port) for scheme in schemes}
    return sorted(words)


def _is_worldwide(scheme: str, host: str) -> bool:
    return scheme in WORLDWIDE and WORLDWIDE[scheme].fullmatch(host) is not None


def require_listening(properties: Mapping[str, str]) -> None:
    """Raise ProviderUnavailable for an endpoint that accepts no connection, which clients would retry repeatedly."""
    for key, endpoint in parse_storage(properties):
        if endpoint.scheme in HTTP:
            with at(f"Property {key!r}"):
                connect(endpoint.host, endpoint.port).close()


def _urls(properties: Mapping[str, str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Each property with a host: its name, its value as a URL, and the allowed schemes."""
    for key in ("s3.endpoint", "gcs.service.host"):
        if properties.get(key):
            yield key, properties[key], HTTP
    for key in AZURE_AUTHORITIES:
        if authority := properties.get(key):
            scheme = properties.get(key.replace("authority", "scheme")) or "https"
            account = properties.get("adls.account-name", "") if authority.startswith(".") else ""
            yield key, f"{scheme}://{account}{authority}", HTTP
    host = properties.get("hdfs.host")
    if host and host != SITE:
        yield "hdfs.host", f"hdfs://{host}:{properties.get('hdfs.port') or 8020}", CLUSTER
    for key in ("warehouse", "allowed-locations"):
        for location in properties.get(key, "").split(","):
            scheme, _, rest = location.strip().partition("://")
            if scheme.lower() in CLUSTER and rest.partition("/")[0]:
                yield key, f"{scheme}://{rest.partition('/')[0]}", CLUSTER


def _check_regions(properties: Mapping[str, str]) -> None:
    # Without an endpoint the region becomes part of the host name.
    for key in ("s3.region", "client.region"):
        if properties.get(key):
            from providers.network.aws import check_region  # botocore, on first use

            with at(f"Property {key!r}"):
                check_region("s3", properties[key], properties.get("s3.endpoint"))
