"""Which hosts and addresses the server may connect to: public ones, and those in METALAKE_REMOTE_ALLOW."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from metalake.errors import Invalid

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PUBLIC = "public"
METADATA = "cloud metadata"

# Instance metadata services of clouds, which serve a machine's credentials. The addresses in fd00::/8 were published by
# AWS, Google, Oracle, Scaleway, Akamai and Alibaba, in this order; 168.63.129.16 is Azure's, though it looks public.
METADATA_NETWORKS = [
    ip_network(text)
    for text in (
        "169.254.169.0/24", "169.254.170.0/24", "169.254.0.23", "169.254.10.10", "169.254.42.42",
        "100.100.100.200", "168.63.129.16", "192.0.0.192",
        "fd00:ec2::/32", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42", "fd00:a9fe:a9fe::1", "fd00:100::100:200",
    )
]  # fmt: skip
METADATA_NAMES = frozenset({
    "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
    "metadata.azure.internal", "metadata.azure.com", "metadata.tencentyun.com", "metadata.oraclecloud.com",
    "metadata.packet.net", "metadata.platformequinix.com", "rancher-metadata",
})  # fmt: skip

# IANA's special-purpose address registries; the ipaddress module's version differs between patch releases.
SPECIAL = {
    ip_network(text): kind
    for kind, texts in {
        "loopback": ("127.0.0.0/8", "::1"),
        "private": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
        "shared (carrier-grade NAT)": ("100.64.0.0/10",),
        "link-local": ("169.254.0.0/16", "fe80::/10"),
        "multicast": ("224.0.0.0/4", "ff00::/8"),
        "unspecified": ("0.0.0.0/8", "::"),
        "reserved": (
            "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
            "240.0.0.0/4", "2001::/23", "2001:db8::/32", "3fff::/20",
        ),
    }.items()
    for text in texts
}  # fmt: skip
GLOBAL_UNICAST = IPv6Network("2000::/3")
NAT64 = IPv6Network("64:ff9b::/96")

LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
ENTRY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:]*)(?::(?P<port>[0-9]{1,5}))?")


def parse_host(written: str) -> str:
    """The host to connect to: a lower-case name, or an address in canonical form, without brackets.

    Raises Invalid for text that another parser may read as a different host.
    """
    if not written.isascii():  # before lower-casing: the Kelvin sign becomes a k
        raise _invalid("the host is not ASCII; write its xn-- form")
    host = written.lower()
    if host.startswith("["):
        return _in_brackets(host)
    host = host.removesuffix(".")
    if not host:
        raise _invalid("there is no host")
    labels = host.split(".")
    if len(host) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise _invalid("the host is not a host name")
    if NUMBER.fullmatch(labels[-1]):
        # The C library parses these as addresses: 127.1, 0x7f000001, 0177.0.0.1, 2130706433.
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise _invalid(f"{host} is an odd spelling of an address; write four decimal numbers") from None
    return host


def _in_brackets(host: str) -> str:
    try:
        if "%" in host or not host.endswith("]"):
            raise ValueError
        address = IPv6Address(host[1:-1])
    except ValueError:
        raise _invalid("what stands in brackets is not an IPv6 address") from None
    return str(address.ipv4_mapped or address)


def literal(host: str) -> Address | None:
    """A parsed host as an address; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def reached(address: Address) -> list[Address]:
    """The addresses that a connection reaches: this one, or the IPv4 address embedded in it."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address.sixtofour:
        return [address.sixtofour]
    if address in NAT64:
        return [_low(address)]
    return [address]


def kind_of(address: Address) -> str:
    """The kind of an address: `public`, `cloud metadata`, or a special one such as `loopback` or `private`."""
    if _is_metadata(address):
        return METADATA
    return next((kind for kind in map(_special, reached(address)) if kind != PUBLIC), PUBLIC)


def _special(address: Address) -> str:
    for network, kind in SPECIAL.items():
        if address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return "reserved"
    return PUBLIC


def _is_metadata(address: Address) -> bool:
    candidates: set[Address] = {address, *reached(address)}
    if isinstance(address, IPv6Address):
        # Mapped, translated and ISATAP addresses end in an IPv4 address; Teredo has two, one of them inverted.
        candidates |= {_low(address), *(address.teredo or ())}
    return any(one in network for one in candidates for network in METADATA_NETWORKS)


def _low(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)


@dataclass(frozen=True)
class Allowed:
    """One entry of METALAKE_REMOTE_ALLOW: a name, a `*.suffix` or a network, with an optional port."""

    name: str
    network: Network | None
    port: int | None

    def covers(self, host: str, port: int, address: Address) -> bool:
        if self.port not in (None, port):
            return False
        if self.network:
            return address in self.network or all(one in self.network for one in reached(address))
        return host.endswith(self.name[1:]) if self.name.startswith("*") else host == self.name


@lru_cache(maxsize=16)
def parse_allowed(entries: tuple[str, ...]) -> tuple[Allowed, ...]:
    """Parse METALAKE_REMOTE_ALLOW. Raises Invalid, naming the malformed entry."""
    return tuple(_entry(entry.strip()) for entry in entries)


def _entry(entry: str) -> Allowed:
    is_bare_ipv6 = entry.count(":") > 1 and not entry.startswith("[")
    match = ENTRY.fullmatch(f"[{entry}]" if is_bare_ipv6 else entry)
    if not match:
        raise _no_entry(entry)
    host, port = match["host"], int(match["port"]) if match["port"] else None
    if port is not None and not 0 < port < 65_536:
        raise _no_entry(entry)
    try:
        return Allowed("", ip_network(host.strip("[]")), port)
    except ValueError:
        pass
    wildcard = "*." if host.startswith("*.") else ""
    try:
        return Allowed(wildcard + parse_host(host.removeprefix(wildcard)), None, port)
    except Invalid:
        raise _no_entry(entry) from None


def _no_entry(entry: str) -> Invalid:
    return _invalid(
        f"{entry!r} is not a host (minio.lan), a pattern (*.lan), an address or a network (10.0.0.0/8, fd12::/32), "
        "each perhaps with a port (minio.lan:9000, [fd12::1]:9000)"
    )


def _invalid(reason: str) -> Invalid:
    return Invalid(reason, kind="catalog")
