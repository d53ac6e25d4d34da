"""A database as a catalog: its properties, and its sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import ClassVar

from metalake.errors import Invalid, OutcomeUnknown, at
from metalake.kinds import Kind
from providers.base import Provider
from providers.jdbc.connections import Login, Session, opened
from providers.jdbc.dialect import Dialect, Statements
from providers.jdbc.errors import About
from providers.jdbc.settings import DATABASE, URL, JdbcSettings
from providers.jdbc.url import JdbcUrl, parse_jdbc_url
from providers.network.endpoints import check_endpoint, listener_name, listener_names
from providers.remote_objects import Remote


class JdbcCatalog(Provider):
    dialect: ClassVar[Dialect]
    settings = JdbcSettings
    needs_database: ClassVar[bool] = False  # whether a connection sees one database alone
    immutable: ClassVar[Mapping[str, str]] = {DATABASE: "its schemas would be those of another database"}

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> JdbcSettings:
        given: JdbcSettings = super().check(properties)
        url = cls._parsed(given)
        known = cls.dialect.drivers
        if given.driver is not None and given.driver not in known:
            raise Invalid(f"Property 'jdbc-driver' is one of {', '.join(sorted(known))}.", kind=Kind.CATALOG)
        if given.database and url.database and given.database != url.database:
            raise Invalid(f"Property {DATABASE!r} names another database than {URL!r}.", kind=Kind.CATALOG)
        if cls.needs_database and not (given.database or url.database):
            raise Invalid(f"Property {DATABASE!r} is missing: the URL names no database.", kind=Kind.CATALOG)
        if "\0" in given.user + given.password.get_secret_value() + (given.database or ""):
            raise Invalid("Properties of the login must have no NUL character.", kind=Kind.CATALOG)
        return given

    @classmethod
    def _parsed(cls, given: JdbcSettings) -> JdbcUrl:
        return parse_jdbc_url(given.url, cls.dialect.schemes, cls.dialect.tls)

    @cached_property
    def login(self) -> Login:
        given = self.check(self.properties)
        url = self._parsed(given)
        return Login(
            url.endpoint,
            given.database or url.database,
            given.user,
            given.password.get_secret_value(),
            url.tls,
            given.most_pooled,
        )

    def check_locations(self) -> None:
        endpoint = self.login.endpoint
        with at(f"Property {URL!r}"):
            check_endpoint(endpoint.url, [endpoint.scheme])

    def system_names(self) -> list[str]:
        return self._urls([f"{listener_name(self.login.endpoint.host)}:{self.login.endpoint.port}"])

    def system(self) -> list[str]:
        return self._urls(listener_names(self.login.endpoint.host, self.login.endpoint.port))

    def _urls(self, listeners: Iterable[str]) -> list[str]:
        path = f"/{self.login.database}" if self.needs_database else ""  # what of the server the catalog shows
        return [f"{self.login.endpoint.scheme}://{each}{path}" for each in listeners]

    @property
    def where(self) -> str:
        return f"{self.login.endpoint.host}:{self.login.endpoint.port}"

    def test_connection(self) -> None:
        with self.opened(About(Kind.CATALOG, self.where)) as session:
            self.dialect.schemas(session, "")

    def checked_name(self, name: str) -> str:
        return self.dialect.ddl.check_name(name, Kind.SCHEMA)

    def reading(self, about: About) -> AbstractContextManager[Session]:
        """A session that only reads. Raises our errors, about what is read."""
        return self.opened(about, reuses=True)

    def opened(self, about: About, *, reuses: bool = False, writes: bool = False) -> AbstractContextManager[Session]:
        dialect, login = self.dialect, self.login
        connect = lambda: dialect.connect(login, writes=writes)  # noqa: E731
        return opened(login, connect, lambda failure: dialect.error(failure, about, self.where), reuses=reuses)

    def wrote(self, about: About, marker: str, statements: Statements, read: Callable[[], Remote]) -> Remote:
        """`write`, and what `read` returns then. Raises OutcomeUnknown if it was written and cannot be read."""
        self.write(about, marker, statements)
        try:
            return read()
        except Exception:
            raise OutcomeUnknown("It was written, and cannot be read back.", kind=about.kind) from None

    def write(self, about: About, marker: str, statements: Statements) -> None:
        """Run the statements that `statements` returns for the state that it reads, all or none."""
        with self.opened(about, writes=True) as session:
            self.dialect.check_case(session, about)
            self.dialect.write(session, self.login, marker, statements)
