"""The databases behind JDBC catalogs, whose URLs are taken apart and built anew for each engine.

Of a URL's parameters only those that choose TLS are carried over; the words are those of the drivers' documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from urllib.parse import quote

from metalake_client.engines.catalogs import EngineCatalog
from metalake_client.engines.rendered import Refusal, value_of

PASSWORD = "jdbc-password"  # noqa: S105 (the name of a property)
OWN_RIGHTS = "{} asks the database itself: only the rights that the database gives to its account hold."


class Tls(IntEnum):
    """How a connection is encrypted; the server's certificate is checked by VERIFY alone."""

    OFF, PREFER, REQUIRE, VERIFY = range(4)


@dataclass(frozen=True, kw_only=True)
class Driver:
    """A JDBC driver; `tls` has its values of `tls_parameter`, where a mode is not its default."""

    scheme: str
    java_class: str
    package: str
    port: int
    tls_parameter: str
    tls: Mapping[Tls, str]
    for_spark: Mapping[str, str] = field(default_factory=dict)  # without these it lists the tables of all databases


POSTGRESQL = Driver(
    scheme="postgresql",
    java_class="org.postgresql.Driver",
    package="org.postgresql:postgresql:42.7.13",
    port=5432,
    tls_parameter="sslmode",
    tls={Tls.OFF: "disable", Tls.REQUIRE: "require", Tls.VERIFY: "verify-full"},
)
MYSQL = Driver(
    scheme="mysql",
    java_class="com.mysql.cj.jdbc.Driver",
    package="com.mysql:mysql-connector-j:9.7.0",
    port=3306,
    tls_parameter="sslMode",
    tls={Tls.OFF: "DISABLED", Tls.REQUIRE: "REQUIRED", Tls.VERIFY: "VERIFY_IDENTITY"},
    for_spark={"databaseTerm": "SCHEMA"},
)
MARIADB = Driver(
    scheme="mariadb",
    java_class="org.mariadb.jdbc.Driver",
    package="org.mariadb.jdbc:mariadb-java-client:3.5.11",
    port=3306,
    tls_parameter="sslMode",
    tls={Tls.OFF: "disable", Tls.REQUIRE: "trust", Tls.VERIFY: "verify-full"},
    for_spark={"permitMysqlScheme": "true", "useCatalogTerm": "schema"},
)
DRIVERS: Mapping[str, tuple[Driver, ...]] = {"jdbc-postgresql": (POSTGRESQL,), "jdbc-mysql": (MYSQL, MARIADB)}

_HOST = r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]"
_URL = re.compile(rf"jdbc:([a-z]+)://({_HOST})(?::(\d{{1,5}}))?(?:/([A-Za-z0-9_$.-]*))?(?:\?(.*))?")
_MODES = {
    **dict.fromkeys(("disable", "disabled"), Tls.OFF),
    **dict.fromkeys(("allow", "prefer", "preferred"), Tls.PREFER),
    **dict.fromkeys(("require", "required", "trust"), Tls.REQUIRE),
    **dict.fromkeys(("verify-ca", "verify_ca", "verify-full", "verify_identity"), Tls.VERIFY),
}
_TLS: Mapping[str, Mapping[str, Tls | None]] = {
    "sslmode": _MODES,
    "ssl": {"true": Tls.VERIFY, "false": None},
    "usessl": {"true": Tls.REQUIRE, "false": Tls.OFF},
    "requiressl": {"true": Tls.REQUIRE, "false": None},
    "verifyservercertificate": {"true": Tls.VERIFY, "false": None},
}


@dataclass(frozen=True, kw_only=True)
class Database:
    """Where a database listens, by which driver, as whom, and how encrypted; `name` is empty for all of a server."""

    driver: Driver
    host: str
    port: int
    name: str
    user: str
    tls: Tls

    def url(self, scheme: str = "", path: str = "", more: Mapping[str, str] | None = None) -> str:
        """A JDBC URL of these parts; PostgreSQL's has the database in its path."""
        driver = self.driver
        if driver is POSTGRESQL:
            path = f"/{quote(self.name, safe='')}"
        parameters = {driver.tls_parameter: driver.tls[self.tls]} if self.tls in driver.tls else {}
        if driver is POSTGRESQL and self.tls is Tls.VERIFY:  # by the certificates that Java trusts, not a file
            parameters["sslfactory"] = "org.postgresql.ssl.DefaultJavaSSLFactory"
        query = "&".join(f"{name}={value}" for name, value in (parameters | dict(more or {})).items())
        return f"jdbc:{scheme or driver.scheme}://{self.host}:{self.port}{path}{'?' if query else ''}{query}"


def database_of(catalog: EngineCatalog) -> Database:
    """The database of a catalog, by its properties. Raises Refusal for those that this client cannot pass on."""
    match = _URL.fullmatch(value_of(catalog, "jdbc-url"))
    known = {driver.scheme: driver for driver in DRIVERS[catalog.provider]}
    if match is None or match[1] not in known:
        forms = " or ".join(f"jdbc:{scheme}://host:port/database" for scheme in known)
        raise Refusal(f"Catalog {catalog.name}: its jdbc-url cannot be passed on; {forms} can.")
    driver = next(
        (each for each in known.values() if each.java_class == value_of(catalog, "jdbc-driver")), known[match[1]]
    )
    return Database(
        driver=driver,
        host=match[2],
        port=int(match[3] or driver.port),
        name=value_of(catalog, "jdbc-database") or match[4] or "",
        user=value_of(catalog, "jdbc-user"),
        tls=_tls_of(catalog, match[5] or ""),
    )


def _tls_of(catalog: EngineCatalog, query: str) -> Tls:
    """The strictest TLS that the parameters ask for."""
    modes = []
    for parameter in query.split("&"):
        name, _, value = parameter.partition("=")
        if name.lower() in _TLS:
            try:
                modes.append(_TLS[name.lower()][value.lower()])
            except KeyError:
                raise Refusal(f"Catalog {catalog.name}: {name} of its jdbc-url has an unknown value.") from None
    return max((mode for mode in modes if mode is not None), default=Tls.PREFER)
