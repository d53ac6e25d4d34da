"""The databases behind JDBC catalogs, whose URLs are taken apart and built anew for each engine.

Of a URL's parameters only those that choose TLS are carried over, in the words of the drivers' documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from urllib.parse import quote

from metalake_client.engines.catalogs import EngineCatalog
from metalake_client.engines.rendered import Refusal, value_of

PASSWORD = "jdbc-password"  # noqa: S105 (the name of a property)
OWN_RIGHTS = "{} asks the database itself: only the rights that the database gives to its account hold."


class Tls(IntEnum):
    """How a connection is encrypted; the server's certificate is checked by VERIFY alone."""

    OFF, PREFER, REQUIRE, VERIFY = range(4)


@dataclass(frozen=True)
class Driver:
    """A JDBC driver, with its parameters for each Tls, and those by which Spark lists one schema's tables alone."""

    scheme: str
    port: int
    java_class: str
    package: str
    tls: tuple[str, str, str, str]
    for_spark: str = ""


_JAVAS_TRUST = "sslmode=verify-full&sslfactory=org.postgresql.ssl.DefaultJavaSSLFactory"  # else a file's certificates
POSTGRESQL = Driver(
    *("postgresql", 5432, "org.postgresql.Driver", "org.postgresql:postgresql:42.7.13"),
    ("sslmode=disable", "", "sslmode=require", _JAVAS_TRUST),
)
MYSQL = Driver(
    *("mysql", 3306, "com.mysql.cj.jdbc.Driver", "com.mysql:mysql-connector-j:9.7.0"),
    ("sslMode=DISABLED", "", "sslMode=REQUIRED", "sslMode=VERIFY_IDENTITY"),
    "databaseTerm=SCHEMA",
)
MARIADB = Driver(
    *("mariadb", 3306, "org.mariadb.jdbc.Driver", "org.mariadb.jdbc:mariadb-java-client:3.5.11"),
    ("sslMode=disable", "", "sslMode=trust", "sslMode=verify-full"),
    "permitMysqlScheme=true&useCatalogTerm=schema",
)
DRIVERS: Mapping[str, tuple[Driver, ...]] = {"jdbc-postgresql": (POSTGRESQL,), "jdbc-mysql": (MYSQL, MARIADB)}

_HOST = r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]"
_URL = re.compile(rf"jdbc:([a-z]+)://({_HOST})(?::(\d{{1,5}}))?(?:/([A-Za-z0-9_$.-]*))?(?:\?(.*))?")
_ASKED = {
    Tls.OFF: "sslmode=disable sslmode=disabled usessl=false",
    Tls.PREFER: "sslmode=allow sslmode=prefer sslmode=preferred "
    "ssl=false requiressl=false verifyservercertificate=false",
    Tls.REQUIRE: "sslmode=require sslmode=required sslmode=trust usessl=true requiressl=true",
    Tls.VERIFY: "sslmode=verify-full sslmode=verify_identity ssl=true verifyservercertificate=true",
}
_TLS = {parameter: tls for tls, parameters in _ASKED.items() for parameter in parameters.split()}


@dataclass(frozen=True, kw_only=True)
class Database:
    """Where a database listens, by which driver, as whom, and how encrypted; `name` is of use to PostgreSQL alone."""

    driver: Driver
    host: str
    port: int
    name: str
    user: str
    tls: Tls

    def url(self, scheme: str = "", path: str = "", more: str = "") -> str:
        """A JDBC URL of these parts; PostgreSQL's has the database in its path."""
        if self.driver is POSTGRESQL:
            path = f"/{quote(self.name, safe='')}"
        query = "&".join(filter(None, (self.driver.tls[self.tls], more)))
        return f"jdbc:{scheme or self.driver.scheme}://{self.host}:{self.port}{path}{'?' if query else ''}{query}"


def database_of(catalog: EngineCatalog) -> Database:
    """The database of a catalog, by its properties. Raises Refusal for those that this client cannot pass on."""
    match = _URL.fullmatch(value_of(catalog, "jdbc-url"))
    schemes = {driver.scheme: driver for driver in DRIVERS[catalog.provider]}
    if match is None or match[1] not in schemes:
        forms = " or ".join(f"jdbc:{scheme}://host:port/database" for scheme in schemes)
        raise Refusal(f"Catalog {catalog.name}: its jdbc-url cannot be passed on; {forms} can.")
    classes = {driver.java_class: driver for driver in schemes.values()}
    driver = classes.get(value_of(catalog, "jdbc-driver"), schemes[match[1]])
    return Database(
        driver=driver,
        host=match[2],
        port=int(match[3] or driver.port),
        name=value_of(catalog, "jdbc-database") or match[4] or "",
        user=value_of(catalog, "jdbc-user"),
        tls=_tls_of(catalog, (match[5] or "").lower().split("&")),
    )


def _tls_of(catalog: EngineCatalog, parameters: list[str]) -> Tls:
    """The strictest TLS that the parameters ask for; none if one says so and the others are content with it."""
    names = {parameter.partition("=")[0] for parameter in _TLS}
    asked = [parameter for parameter in parameters if parameter.partition("=")[0] in names]
    if odd := next((parameter for parameter in asked if parameter not in _TLS), None):
        raise Refusal(f"Catalog {catalog.name}: its jdbc-url cannot be passed on: {odd} is an unknown value.")
    chosen = {_TLS[parameter] for parameter in asked}
    strictest = max(chosen, default=Tls.PREFER)
    return Tls.OFF if strictest is Tls.PREFER and Tls.OFF in chosen else strictest
