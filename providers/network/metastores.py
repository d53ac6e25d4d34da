"""Thrift connections to Hive metastores."""

from __future__ import annotations

from collections.abc import Callable, Collection

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TTransportException

from metalake.errors import Invalid, at
from providers.network.endpoints import (
    CONNECT_SECONDS,
    READ_SECONDS,
    Endpoint,
    check_endpoint,
    connect,
    listener_name,
    listener_names,
    parse_endpoint,
)

MAX_METASTORES = 16


def parse_metastores(uris: str) -> list[Endpoint]:
    """The endpoints of `thrift://host:port[,thrift://host:port]`, in order, without a DNS lookup. Raises Invalid."""
    return _each(uris, parse_endpoint)


def check_metastores(uris: str) -> list[Endpoint]:
    """The endpoints to be registered, after a DNS lookup. Raises Invalid or ProviderUnavailable."""
    return _each(uris, check_endpoint)


def systems_named(uris: str) -> list[str]:
    """URLs that identify these metastores, without a DNS lookup."""
    return sorted({f"thrift://{listener_name(endpoint.host)}:{endpoint.port}" for endpoint in parse_metastores(uris)})


def systems_at(uris: str) -> list[str]:
    """URLs that identify these metastores, by host name and by address. Raises Invalid or ProviderUnavailable."""
    names = {f"thrift://{each}" for at in parse_metastores(uris) for each in listener_names(at.host, at.port)}
    return sorted(names)


class CheckedSocket(TSocket):
    """A socket that connects only to checked addresses; `open` raises Invalid or ProviderUnavailable."""

    def __init__(self, host: str, port: int, connect_timeout: float, read_timeout: float) -> None:
        super().__init__(host, port)
        self.setTimeout(read_timeout * 1000)
        self._connect_seconds = connect_timeout

    def open(self) -> None:
        if self.handle:
            raise TTransportException(TTransportException.ALREADY_OPEN, "already open")
        handle = connect(self.host, self.port, seconds=self._connect_seconds)
        handle.settimeout(self._timeout)
        self.setHandle(handle)


def thrift_socket(
    host: str, port: int, connect_timeout: float = CONNECT_SECONDS, read_timeout: float = READ_SECONDS
) -> CheckedSocket:
    """An unopened socket for a Thrift transport; timeouts are in seconds."""
    return CheckedSocket(host, port, connect_timeout, read_timeout)


def _each(uris: str, read: Callable[[str, Collection[str]], Endpoint]) -> list[Endpoint]:
    divided = [uri.strip() for uri in uris.split(",")]
    if not all(divided) or len(divided) > MAX_METASTORES:
        raise Invalid(
            f"The metastores are 1 to {MAX_METASTORES} of thrift://host:port, divided by commas.", kind="catalog"
        )
    endpoints = []
    for number, uri in enumerate(divided, 1):
        with at(f"Metastore {number}"):
            endpoints.append(read(uri, ["thrift"]))
    return endpoints
