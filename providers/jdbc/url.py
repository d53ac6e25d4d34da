"""JDBC URLs, which are taken apart here and never handed on.

Sources: pgJDBC, "Initializing the Driver"; MySQL Connector/J, "Connection URL Syntax"; MariaDB Connector/J, "Connection
Strings". Of their parameters only those are accepted that choose TLS, and those of a driver's own behaviour, which have
no effect here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from metalake.errors import Invalid, at
from metalake.kinds import Kind
from providers.network.endpoints import Endpoint, parse_endpoint

LONGEST = 2_048
URL = re.compile(r"jdbc:([a-z]+)://(\[[^\]/?]*\]|[^\[\]/?:,]*)(:[^/?]*)?(?:/([^?]*))?(?:\?(.*))?")
DATABASE = re.compile(r"[A-Za-z0-9_$.-]{0,64}")
VALUE = re.compile(r"[A-Za-z0-9_.:+/ -]{0,128}")
CREDENTIALS = frozenset({"user", "password", "username", "jdbc-user", "jdbc-password"})


class Tls(StrEnum):
    """How the connection is encrypted; the server's certificate is checked by VERIFY alone."""

    OFF = "off"
    PREFER = "prefer"
    REQUIRE = "require"
    VERIFY = "verify"


# The values of each parameter that chooses TLS, in lower case.
POSTGRES_TLS = {
    "sslmode": {"disable": Tls.OFF, "allow": Tls.PREFER, "prefer": Tls.PREFER, "require": Tls.REQUIRE}
    | {"verify-full": Tls.VERIFY},
    "ssl": {"true": Tls.VERIFY, "false": Tls.PREFER},
}
MYSQL_TLS = {
    "sslmode": {"disabled": Tls.OFF, "preferred": Tls.PREFER, "required": Tls.REQUIRE, "verify_identity": Tls.VERIFY}
    | {"disable": Tls.OFF, "trust": Tls.REQUIRE, "verify-full": Tls.VERIFY},
    "usessl": {"true": Tls.REQUIRE, "false": Tls.OFF},
    "requiressl": {"true": Tls.REQUIRE, "false": Tls.PREFER},
    "verifyservercertificate": {"true": Tls.VERIFY, "false": Tls.PREFER},
}
WITHOUT_EFFECT = frozenset(
    {
        "applicationname", "connecttimeout", "logintimeout", "sockettimeout", "tcpkeepalive", "currentschema",
        "preparethreshold", "rewritebatchedinserts", "stringtype", "useunicode", "characterencoding", "servertimezone",
        "connectiontimezone", "zerodatetimebehavior", "tinyint1isbit", "rewritebatchedstatements", "autoreconnect",
        "allowpublickeyretrieval", "useserverprepstmts", "cacheprepstmts", "usecursorfetch", "defaultfetchsize",
        "nullcatalogmeanscurrent", "nulldatabasemeanscurrent", "useinformationschema",
    }
)  # fmt: skip


@dataclass(frozen=True)
class JdbcUrl:
    """Where a database listens, which database the URL names, if any, and how the connection is encrypted."""

    endpoint: Endpoint
    database: str
    tls: Tls


def parse_jdbc_url(url: str, schemes: Mapping[str, str], tls: Mapping[str, Mapping[str, Tls]]) -> JdbcUrl:
    """Parse `jdbc:<scheme>://host[:port][/database][?parameters]`, without looking the host up.

    `schemes` maps what a URL may begin with to the scheme of the endpoint. Raises Invalid; its message repeats no value
    of a parameter, which may be a credential.
    """
    usable = " or ".join(f"jdbc:{scheme}://host:port/database" for scheme in schemes)
    if len(url) > LONGEST or not url.isascii() or not url.isprintable() or set(url) & set("%\\@#;'\"`<>{}"):
        raise _invalid(f"write {usable}, without credentials, spaces and escapes")
    match = URL.fullmatch(url)
    if match is None or match[1] not in schemes:
        raise _invalid(f"write {usable}, with one host")
    written, host, port, database, query = match.groups(default="")
    if not DATABASE.fullmatch(database):
        raise _invalid("the name of the database has other characters than letters, digits, _, $, - and .")
    scheme = schemes[written]
    with at("Property 'jdbc-url'"):
        endpoint = parse_endpoint(f"{scheme}://{host}{port}", [scheme])
    return JdbcUrl(endpoint, database, _tls_of(query, tls))


def _tls_of(query: str, known: Mapping[str, Mapping[str, Tls]]) -> Tls:
    """The strictest TLS that the parameters ask for. Raises Invalid for one that is not accepted."""
    chosen, seen = [Tls.PREFER], set[str]()
    for parameter in query.split("&") if query else ():
        name, has_value, value = parameter.partition("=")
        key = name.lower()
        if key in CREDENTIALS:
            raise _invalid("user and password are the properties jdbc-user and jdbc-password")
        if key in seen or not VALUE.fullmatch(value) or (key not in known and key not in WITHOUT_EFFECT):
            tls = ", ".join(sorted(known))
            named = f"parameter {name!r}" if has_value and re.fullmatch(r"[A-Za-z]{1,32}", name) else "a parameter"
            raise _invalid(f"{named} is not accepted, or stands twice; those that choose TLS are {tls}")
        seen.add(key)
        if key in known:
            try:
                chosen.append(known[key][value.lower()])
            except KeyError:
                raise _invalid(f"parameter {name!r} is one of {', '.join(known[key])}") from None
    strictest = max(chosen, key=list(Tls).index)
    if Tls.OFF not in chosen:
        return strictest
    if strictest is not Tls.PREFER:
        raise _invalid("its parameters ask for TLS and against it")
    return Tls.OFF


def _invalid(reason: str) -> Invalid:
    return Invalid(f"Property 'jdbc-url' is not usable: {reason}.", kind=Kind.CATALOG)
