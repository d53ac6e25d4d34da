"""The client's address for rate limiting, also behind trusted proxies.

Sources: RFC 7239 for Forwarded; X-Forwarded-For is a list to which each proxy appends its peer.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from metalake.errors import Invalid

log = logging.getLogger(__name__)

UNIX = "unix"
IPV6_PREFIX = 64  # bits: a customer gets at least a /64, so all its addresses count as one
_FORWARDED_FOR = re.compile(r'(?:^|;)\s*for="?([^";,]*)"?\s*(?=;|$)', re.IGNORECASE)

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Proxies:
    """The trusted proxies: networks, and with `unix` every peer on a socket without an address."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    unix: bool = False

    def __contains__(self, hop: Address | None) -> bool:
        if hop is None:
            return self.unix
        return any(hop in network for network in self.networks)


def parse_proxies(entries: Iterable[str]) -> Proxies:
    """Parse METALAKE_TRUSTED_PROXIES. Raises Invalid unless an entry is an address, a network or the word unix."""
    networks, unix = [], False
    for entry in entries:
        if entry == UNIX:
            unix = True
            continue
        try:
            networks.append(ip_network(entry))
        except ValueError as wrong:
            raise Invalid(f"{entry!r} is no address, network (10.0.0.0/8) or the word unix: {wrong}") from None
    return Proxies(tuple(networks), unix)


def client_of(meta: Mapping[str, Any], proxies: Proxies) -> str:
    """The client's address for counting: an IPv4 address, the /64 of an IPv6 address, or "" if there is none.

    Headers count only if a trusted proxy sent them. They are read from the right: the client is the first hop that is
    not a trusted proxy. If a hop cannot be parsed, the proxy that forwarded it counts as the client.
    """
    peer = meta.get("REMOTE_ADDR") or ""
    if "HTTP_X_FORWARDED_FOR" not in meta and "HTTP_FORWARDED" not in meta:
        return counted(peer)
    last = _read(peer)
    if last not in proxies:
        _warn_once(peer)
        return counted(peer)
    for hop in reversed(_hops(meta)):
        known = _read(hop)
        if known is None:
            break
        last = known
        if known not in proxies:
            break
    return counted("" if last is None else str(last))


def is_trusted(peer: str, proxies: Proxies) -> bool:
    """Whether to trust the peer's forwarding headers: a trusted proxy, or a peer on this machine."""
    address = _read(peer)
    return address in proxies or (address is not None and address.is_loopback)


@lru_cache(maxsize=10_000)
def counted(address: str) -> str:
    """The rate-limiting key of an address: IPv4, or the /64 of an IPv6 address; "" if there is none."""
    known = _read(address)
    if isinstance(known, IPv6Address):
        return str(ip_network((int(known), IPV6_PREFIX), strict=False))
    return "" if known is None else str(known)


def _hops(meta: Mapping[str, Any]) -> list[str]:
    """The client and the proxies after it, as the headers list them; empty if the two headers disagree.

    A proxy appends to one of the two headers and forwards the other as its client sent it, so headers that disagree
    prove nothing.
    """
    lists = []
    if "HTTP_X_FORWARDED_FOR" in meta:
        lists.append([hop.strip() for hop in meta["HTTP_X_FORWARDED_FOR"].split(",")])
    if "HTTP_FORWARDED" in meta:
        elements = meta["HTTP_FORWARDED"].split(",")
        lists.append([match[1] if (match := _FORWARDED_FOR.search(each)) else "" for each in elements])
    return lists[0] if _agree(lists) else []


def _agree(lists: Collection[list[str]]) -> bool:
    return len({tuple(_read(hop) for hop in hops) for hops in lists}) == 1


@lru_cache(maxsize=10_000)
def _read(hop: str) -> Address | None:
    """The address in a hop, with or without a port; None if it has none, such as `unknown` or a socket's path."""
    text = hop.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


_has_warned = False


def _warn_once(peer: str) -> None:
    """Warn about the missing setting: all clients of this proxy are counted as one."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        log.warning(
            "%s forwards requests of others but is not in METALAKE_TRUSTED_PROXIES, so failed sign-ins of all its "
            "clients count as its own",
            peer or "a peer without an address",
        )
