"""Where a request comes from, as failures are counted: the address of the client, behind proxies that are trusted.

Source of the headers' forms: RFC 7239 for Forwarded; X-Forwarded-For is a list to which each proxy appends its peer.
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
IPV6_PREFIX = 64  # what one customer is given; whoever has a /64 has all of it
_FORWARDED_FOR = re.compile(r'(?:^|;)\s*for="?([^";,]*)"?\s*(?=;|$)', re.IGNORECASE)

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Proxies:
    """The proxies whose word is taken: networks, and whoever comes by a socket that has no address."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    unix: bool = False

    def __contains__(self, hop: Address | None) -> bool:
        if hop is None:
            return self.unix
        return any(hop in network for network in self.networks)


def parse_proxies(entries: Iterable[str]) -> Proxies:
    """Raises Invalid for an entry that is neither an address, a network nor the word unix."""
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
    """The client's address as it is counted: IPv4 as it is, IPv6 as its /64, "" where there is none.

    Headers are believed only of trusted proxies, and from the right only: of what they say, the first hop that is not
    such a proxy itself. One that cannot be read counts as the proxy that passed it on.
    """
    peer = meta.get("REMOTE_ADDR") or ""
    if "HTTP_X_FORWARDED_FOR" not in meta and "HTTP_FORWARDED" not in meta:
        return counted(peer)
    last = _read(peer)
    if last not in proxies:
        _tell_once(peer)
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
    """Whether what it says of its clients is believed: a proxy that is trusted, or one on this machine."""
    address = _read(peer)
    return address in proxies or (address is not None and address.is_loopback)


@lru_cache(maxsize=10_000)
def counted(address: str) -> str:
    """Under what failures from an address are counted together."""
    known = _read(address)
    if isinstance(known, IPv6Address):
        return str(ip_network((int(known), IPV6_PREFIX), strict=False))
    return "" if known is None else str(known)


def _hops(meta: Mapping[str, Any]) -> list[str]:
    """The client and the proxies after it, as the last proxy was told.

    A proxy writes one of the two headers and passes the other one on as its client sent it: where they end
    differently nothing can be believed.
    """
    lists = []
    if "HTTP_X_FORWARDED_FOR" in meta:
        lists.append([hop.strip() for hop in meta["HTTP_X_FORWARDED_FOR"].split(",")])
    if "HTTP_FORWARDED" in meta:
        elements = meta["HTTP_FORWARDED"].split(",")
        lists.append([found[1] if (found := _FORWARDED_FOR.search(each)) else "" for each in elements])
    return lists[0] if _agree(lists) else []


def _agree(lists: Collection[list[str]]) -> bool:
    return len({tuple(_read(hop) for hop in hops) for hops in lists}) == 1


@lru_cache(maxsize=10_000)
def _read(hop: str) -> Address | None:
    """An address with or without a port; None for what names none, such as `unknown` or a socket's path."""
    text = hop.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    if isinstance(found, IPv6Address) and found.ipv4_mapped:
        return found.ipv4_mapped
    return found


_told: list[str] = []


def _tell_once(peer: str) -> None:
    """An operator who forgot the setting should learn it before all clients are counted as one."""
    if not _told:
        _told.append(peer)
        log.warning(
            "%s says that it passes requests on for others; METALAKE_TRUSTED_PROXIES does not name it, so failed "
            "sign-ins of all its clients count as its own",
            peer or "a peer without an address",
        )
