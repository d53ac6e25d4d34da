"""Endpoints of remote systems: checked when registered, and again for each connection.

Registration checks have two steps, so that only callers who may register trigger a DNS lookup: `parse_endpoint` checks
the URL's text, `check_endpoint` also looks the host up. The result is not cached: each connection looks its host up
once, checks all addresses and connects to one of them, which prevents DNS rebinding.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from time import monotonic

from django.conf import settings

from metalake.errors import Invalid, ProviderUnavailable
from providers.network.addresses import (
    METADATA,
    METADATA_NAMES,
    PUBLIC,
    Address,
    kind_of,
    literal,
    parse_allowed,
    parse_host,
    reached,
)

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
THIS_MACHINE = "localhost"

MAX_URL = 2_048
PORTS = {"http": 80, "https": 443, "thrift": 9083, "hdfs": 8020, "viewfs": 8020, "postgresql": 5432, "mysql": 3306}
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(/[^?#]*)?")
AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::(.*))?")


@dataclass(frozen=True)
class Endpoint:
    """The address of a remote system; `host` is a lower-case name or an address without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        """The canonical URL, always with the port."""
        return f"{self.scheme}://{self.host}:{self.port}"


class UnknownHost(ProviderUnavailable):
    """The host name has no address."""


def check_endpoint(url: str, schemes: Collection[str]) -> Endpoint:
    """The endpoint of a URL to be registered, after a DNS lookup.

    Raises Invalid for a malformed URL, an unknown host and an address that this server must not connect to;
    ProviderUnavailable if DNS fails. Messages never repeat possible credentials.
    """
    endpoint = parse_endpoint(url, schemes)
    try:
        resolve(endpoint.host, endpoint.port)
    except UnknownHost as unknown:
        raise Invalid(f"{unknown.message} Check its spelling.", kind="catalog") from None
    return endpoint


def parse_endpoint(url: str, schemes: Collection[str]) -> Endpoint:
    """The endpoint of a URL, without a DNS lookup. Raises Invalid, also for a literal address that is not allowed."""
    endpoint = read_endpoint(url, schemes)
    if literal(endpoint.host) or endpoint.host in METADATA_NAMES:
        resolve(endpoint.host, endpoint.port)
    return endpoint


def read_endpoint(url: str, schemes: Collection[str]) -> Endpoint:
    """The endpoint of a URL, allowed or not. Raises Invalid for a malformed one."""
    usable = " or ".join(f"{scheme}://" for scheme in schemes)
    if not isinstance(url, str) or len(url) > MAX_URL or not url.isprintable() or " " in url or "\\" in url:
        raise _not_usable(f"it must be printable text such as {usable}host, without spaces or backslashes")
    if "@" in url or "?" in url or "#" in url:
        raise _not_usable(
            "it may hold no user information, query or fragment; credentials have properties of their own"
        )
    match = URL.fullmatch(url)
    if not match or match[1].lower() not in schemes:
        raise _not_usable(f"it must begin with {usable}")
    scheme = match[1].lower()
    authority = AUTHORITY.fullmatch(match[2])
    if not authority:
        raise _not_usable(f"write {scheme}://host or {scheme}://host:port, an IPv6 address in brackets")
    try:
        host = parse_host(authority[1])
    except Invalid as wrong:
        raise _not_usable(wrong.message) from None
    port = PORTS[scheme] if authority[2] is None else _port(authority[2])
    return Endpoint(scheme, host, port)


def resolve(host: str, port: int, *, seconds: float = CONNECT_SECONDS, trusted: bool = False) -> list[Address]:
    """All addresses of a host, each allowed; those of `trusted` hosts may be private, as AWS's are in a VPC.

    Raises Invalid if this server must not connect to any one of them, UnknownHost, or ProviderUnavailable if DNS fails.
    """
    if host in METADATA_NAMES:
        raise _refused(host, METADATA)
    address = literal(host)
    addresses = [address] if address else _look_up(host, port, seconds)
    for address in addresses:
        kind = kind_of(address)
        if kind == METADATA or not (kind == PUBLIC or trusted or _is_named(host, port, address)):
            raise _refused(host, kind)
    return addresses


def listener_names(host: str, port: int) -> list[str]:
    """The known `host:port` names of a listener: its host name and its addresses.

    All addresses of this machine count as one name. A system with several addresses, or behind a proxy, may have more
    names. Raises the errors of `resolve`.
    """
    names = {_one_spelling(address) for address in resolve(host, port)}
    return sorted(f"{each}:{port}" for each in {listener_name(host), *names})


def listener_name(host: str) -> str:
    """The canonical name of a host, without a DNS lookup; any address of this machine is THIS_MACHINE."""
    address = literal(host)
    return _one_spelling(address) if address else host


def _one_spelling(address: Address) -> str:
    return THIS_MACHINE if _is_here(address) else str(reached(address)[0])


def _is_here(address: Address) -> bool:
    """Whether an address is this machine's: a connection to it would have it as the source. Sends nothing."""
    plain = reached(address)[0]
    if kind_of(address) in ("loopback", "unspecified"):
        return True
    with socket.socket(socket.AF_INET if plain.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(plain), 9))
            return literal(str(probe.getsockname()[0])) == plain
        except OSError:
            return False


def connect(host: str, port: int, *, seconds: float = CONNECT_SECONDS, trusted: bool = False) -> socket.socket:
    """A connected socket with a timeout of `seconds` for each later operation; the caller adds TLS.

    Raises the errors of `resolve`, and ProviderUnavailable if no address accepts a connection; nothing was sent then.
    """
    deadline = monotonic() + seconds
    addresses = resolve(host, port, seconds=seconds, trusted=trusted)
    failure: OSError = TimeoutError()
    for place, address in enumerate(addresses):
        left = (deadline - monotonic()) / (len(addresses) - place)
        try:
            return _connected(address, port, max(left, 0.001), seconds)
        except OSError as error:
            failure = error
    raise ProviderUnavailable(_connection_failure(failure, f"{host}:{port}", seconds), kind="catalog") from None


def _connected(address: Address, port: int, connect_seconds: float, seconds: float) -> socket.socket:
    connection = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        connection.settimeout(connect_seconds)
        connection.connect((str(address), port))
        connection.settimeout(seconds)
    except OSError:
        connection.close()
        raise
    return connection


def _look_up(host: str, port: int, seconds: float) -> list[Address]:
    # getaddrinfo has no timeout, and the user who registers an endpoint may control a slow name server.
    answer: Future[list[Address]] = Future()

    def look() -> None:
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = [literal(str(sockaddr[0])) for *_, sockaddr in answers]
            answer.set_result([address for address in dict.fromkeys(addresses) if address])
        except Exception as error:
            answer.set_exception(error)

    Thread(target=look, name="look up a host", daemon=True).start()
    try:
        addresses = answer.result(seconds)
    except TimeoutError:
        raise ProviderUnavailable(f"{host} could not be looked up within {seconds:g} s.", kind="catalog") from None
    except socket.gaierror as error:
        if error.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
            raise _unknown(host) from None
        raise ProviderUnavailable(f"{host} could not be looked up now.", kind="catalog") from None
    except (OSError, UnicodeError):
        raise _unknown(host) from None
    if not addresses:
        raise _unknown(host)
    return addresses


def _is_named(host: str, port: int, address: Address) -> bool:
    return any(entry.covers(host, port, address) for entry in parse_allowed(settings.METALAKE_REMOTE_ALLOW))


def _port(digits: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", digits) or not 0 < int(digits) < 65_536:
        raise _not_usable("its port is not a number from 1 to 65535")
    return int(digits)


def _connection_failure(failure: OSError, where: str, seconds: float) -> str:
    match failure:
        case TimeoutError():
            return f"{where} did not accept a connection within {seconds:g} s."
        case ConnectionRefusedError():
            return f"Nothing listens at {where}: the connection was refused."
    return f"{where} cannot be reached: {failure.strerror or type(failure).__name__}."


def _refused(host: str, kind: str) -> Invalid:
    leads = "is" if literal(host) else "leads to"
    article = "an" if kind[0] in "aeiou" else "a"
    if kind == METADATA:
        why = "this server never connects there"
    else:
        why = "this server connects there only if its operator names the host or the address in METALAKE_REMOTE_ALLOW"
    return Invalid(f"{host} {leads} {article} {kind} address; {why}.", kind="catalog")


def _unknown(host: str) -> UnknownHost:
    return UnknownHost(f"Unknown host {host}: it has no address.", kind="catalog")


def _not_usable(reason: str) -> Invalid:
    return Invalid(f"The URL is not usable: {reason}.", kind="catalog")
