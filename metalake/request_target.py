"""The request target: the path as sent, and the host.

Source: RFC 9112, sections 3.2 (request target) and 3.2.2 (absolute form, which overrides the Host header).
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote as encode
from urllib.parse import unquote, unquote_plus, urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from metalake.errors import Invalid
from metalake.wire import quote

WIRES = frozenset({"api", "iceberg", "configs", "health", "metrics"})
WIRE_NAMES = {"api": "native", "iceberg": "iceberg"}  # of the APIs that serve objects
# Paths that load balancers, Kubernetes and Prometheus request by a node's address.
PROBED = frozenset({"health", "metrics"})

PAGES = frozenset(
    {"account", "admin", "catalogs", "choose", "components", "invitations", "login", "logout", "metalakes", "objects"}
    | {"search", "static", "tokens", "tree"}
)

_PREFIX = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
_ABSOLUTE = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)


def wire_of(path: str) -> str:
    """ "api", "iceberg" and the like; "page" for everything else."""
    first = path.removeprefix("/").partition("/")[0]
    return first if first in WIRES else "page"


def parse_prefix(given: str) -> str:
    """The base path under which clients reach this server, such as /metalake; "" is the root. Raises Invalid."""
    if given in ("", "/"):
        return ""
    if not _PREFIX.fullmatch(given) or given.split("/")[1] in WIRES | PAGES:
        raise Invalid(
            f"write a path such as /metalake instead of {quote(given)}: parts of letters, digits and - . _ ~, without "
            "a slash at the end, and none of this server's own first"
        )
    return given


def without_prefix(target: bytes, prefix: bytes) -> bytes:
    """The target without the prefix: proxies may or may not strip METALAKE_PATH_PREFIX."""
    absolute = _ABSOLUTE.match(target.decode("latin-1"))
    host, path = target[: absolute.end() if absolute else 0], target[absolute.end() if absolute else 0 :]
    rest = path[len(prefix) :]
    if not path.startswith(prefix) or rest[:1] not in (b"", b"/", b"?"):
        return target
    return host + (rest if rest.startswith(b"/") else b"/" + rest)


def path_in(target: str) -> str:
    """The path of a request target, as sent; the target may be an absolute URL."""
    absolute = _ABSOLUTE.match(target)
    return target[absolute.end() if absolute else 0 :].partition("?")[0]


def read_target(meta: dict[str, Any]) -> str:
    """The path as sent, still encoded. If the WSGI server has only the decoded path, it is re-encoded, losing %2F.

    The host of an absolute target replaces the Host header. Raises Invalid for a target that is not an absolute path.
    """
    target = meta.get("RAW_URI") or meta.get("REQUEST_URI")
    if not target:
        return encode(meta["PATH_INFO"], safe="/:@!$&'()*+,;=~")
    path = path_in(target)
    if absolute := _ABSOLUTE.match(target):
        meta["HTTP_HOST"] = absolute[1]
        path = path or "/"
    if not path.startswith("/") or path.startswith("//") or "#" in path:
        raise Invalid("The target of a request is a path that begins with one slash, or the URL of this server.")
    # Characters that a client did not encode arrive as single bytes.
    return re.sub(r"[^\x00-\x7f]", lambda byte: encode(byte[0], encoding="latin-1"), path)


def require_one_wire(sent: str, decoded: str) -> None:
    """Raise Invalid if decoding a path leads to another API, whose checks would be bypassed."""
    if wire_of(sent) != wire_of(decoded):
        raise Invalid("The first part of this path is written without percent signs.")


def require_host(meta: dict[str, Any], wire: str) -> None:
    """Raise Invalid if the Host is not one of ours: with DNS rebinding, another site's pages would reach this server
    with the browser's credentials.

    DNS rebinding needs a name, so probes may use any address. A request without a Host, which no browser sends, counts
    as sent to the address it arrived at.
    """
    host = meta["HTTP_HOST"] if "HTTP_HOST" in meta else in_url(meta["SERVER_NAME"])
    domain = _domain_in(host)
    if domain and _is_ours(domain, tuple(settings.ALLOWED_HOSTS)):
        return
    if wire in PROBED and is_address(domain.strip("[]")):
        return
    raise Invalid(f"This server does not answer to the host {quote(host)}: METALAKE_ALLOWED_HOSTS lists its names.")


@lru_cache(maxsize=1000)
def _domain_in(host: str) -> str:
    return split_domain_port(host)[0]


@lru_cache(maxsize=1000)
def _is_ours(domain: str, allowed: tuple[str, ...]) -> bool:
    return validate_host(domain, allowed)


def in_url(host: str) -> str:
    """A host as in URLs and the Host header: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def is_private(url: str) -> bool:
    """Whether the URL is https, or http to this machine."""
    try:
        scheme, host = urlsplit(url).scheme, urlsplit(url).hostname or ""
    except ValueError:
        return False
    return bool(host) and (scheme == "https" or (scheme == "http" and is_loopback(host)))


def decode(raw: str, *, form: bool = False) -> str:
    """A path segment, decoded once. With `form`, + is a space, as Iceberg clients encode it. Raises Invalid."""
    if raw.isascii() and raw.isalnum():
        return raw
    try:
        name = (unquote_plus if form else unquote)(raw, errors="strict")
    except UnicodeDecodeError:
        raise Invalid(f"Path segment {quote(raw)} is not UTF-8.") from None
    if "\0" in name:
        raise Invalid(f"Path segment {quote(raw)} holds a NUL character.")
    return name
