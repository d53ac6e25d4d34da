"""A database as a catalog: its properties, and its sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar

from metalake.errors import Invalid, OutcomeUnknown, at
from metalake.kinds import Kind
from providers.base import Provider
from providers.jdbc.connections import Login, Session, opened, reading
from providers.jdbc.dialect import Dialect, Statements
from providers.jdbc.errors import About
from providers.jdbc.settings import DATABASE, URL, JdbcSettings
from providers.jdbc.url import JdbcUrl, parse_jdbc_url
from providers.network.endpoints import check_endpoint, listener_name, listener_names


class JdbcCatalog(Provider):
    dialect: ClassVar[Dialect]
    settings = JdbcSettings
    needs_database: ClassVar[bool] = False  # whether a connection sees one database alone
    immutable: ClassVar[Mapping[str, str]] = {DATABASE: "its schemas would be those of another database"}

    @classmethod
    def check(cls, properties: Mapping[str, str]) -> Any:
        given = super().check(properties)
        assert isinstance(given, JdbcSettings)
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
    def given(self) -> JdbcSettings:
        given = self.check(self.properties)
        assert isinstance(given, JdbcSettings)
        return given

    @cached_property
    def login(self) -> Login:
        url = self._parsed(self.given)
        return Login(
            url.endpoint,
            self.given.database or url.database,
            self.given.user,
            self.given.password.get_secret_value(),
            url.tls,
            self.given.most_pooled,
        )

    def check_locations(self) -> None:
        endpoint = self.login.endpoint
        with at(f"Property {URL!r}"):
            check_endpoint(endpoint.url, [endpoint.scheme])

    def system_names(self) -> list[str]:
        endpoint = self.login.endpoint
        return [f"{endpoint.scheme}://{listener_name(endpoint.host)}:{endpoint.port}{self._part}"]

    def system(self) -> list[str]:
        endpoint = self.login.endpoint
        return [f"{endpoint.scheme}://{each}{self._part}" for each in listener_names(endpoint.host, endpoint.port)]

    @property
    def _part(self) -> str:
        """What of the server the catalog shows."""
        return f"/{self.login.database}" if self.needs_database else ""

    @property
    def where(self) -> str:
        return f"{self.login.endpoint.host}:{self.login.endpoint.port}"

    def test_connection(self) -> None:
        with self.opened(About(Kind.CATALOG, self.where)) as session:
            self.dialect.schemas(session, "")

    def checked_name(self, name: str) -> str:
        return self.dialect.ddl.check_name(name, Kind.SCHEMA)

    @contextmanager
    def reading(self, about: About) -> Iterator[Session]:
        """A session that only reads. Raises our errors, about what is read."""
        dialect, login = self.dialect, self.login
        with reading(login, lambda: dialect.connect(login), lambda e: dialect.error(e, about, self.where)) as session:
            yield session

    @contextmanager
    def opened(self, about: About, *, writes: bool = False) -> Iterator[Session]:
        """A session of its own."""
        dialect, login = self.dialect, self.login
        connect = lambda: dialect.connect(login, writes=writes)  # noqa: E731
        with opened(login, connect, lambda failure: dialect.error(failure, about, self.where)) as session:
            yield session

    def write(self, about: About, marker: str, statements: Statements) -> None:
        """Run the statements that `statements` returns for the state that it reads, all or none."""
        with self.opened(about, writes=True) as session:
            self.dialect.write(session, self.login, marker, statements)

    def wrote(self, about: About, marker: str, statements: Statements, read: Any) -> Any:
        """`write`, and what `read` returns then. Raises OutcomeUnknown if it was written and cannot be read."""

        def checked(session: Session) -> Sequence[str]:
            self.dialect.check_case(session, about)
            return statements(session)

        self.write(about, marker, checked)
        try:
            return read()
        except Exception:
            raise OutcomeUnknown("It was written, and cannot be read back.", kind=about.kind) from None
