"""What the stores need of one database: sessions, and queries of its catalog."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from metalake.errors import MetalakeError
from metalake.interfaces import Interface
from metalake.kinds import Kind
from providers.jdbc.connections import Login, Row, Session
from providers.jdbc.ddl import Ddl
from providers.jdbc.definitions import PRIMARY, UNIQUE, version_of
from providers.jdbc.errors import About
from providers.jdbc.url import Tls
from providers.remote_objects import Json, Remote

NO_CONSTRAINT: Json = {"properties": {"constraint": "false"}}  # of a unique index that is none
Statements = Callable[[Session], Sequence[str]]


class CatalogRows(NamedTuple):
    """What the database's own catalog has of a page of tables and views.

    A relation's first field is what columns and keys name it by; the others are its name, identity, kind, comment, time
    of creation, SQL, security mode, whether it is materialized, and `Dialect.facts`. A key has a row for each field:
    name, whether it is primary, whether it is a constraint, and the field, None for one that is no whole column.
    """

    relations: Sequence[Row]
    columns: Sequence[tuple[str, Json]]
    keys: Sequence[Row]
    following: str | None


class Dialect(Interface):
    word: ClassVar[str]  # the dialect of its views
    schemes: ClassVar[Mapping[str, str]]  # what a JDBC URL begins with, and the scheme of its endpoint
    tls: ClassVar[Mapping[str, Mapping[str, Tls]]]
    drivers: ClassVar[frozenset[str]]
    hidden_definition: ClassVar[str]  # why a view has no SQL here
    facts: ClassVar[Sequence[str]]  # the properties of tables that `catalog_rows` has
    ddl: Ddl

    # Sessions

    @abstractmethod
    def connect(self, login: Login, *, writes: bool = False) -> Session:
        """A new session. Raises the driver's errors, ProviderUnavailable, and Unsupported for another product."""

    @abstractmethod
    def write(self, session: Session, login: Login, marker: str, statements: Statements) -> None:
        """Run the statements, all or none, while nobody else has the lock of `marker`.

        Raises the driver's errors if they certainly did nothing, else OutcomeUnknown.
        """

    def check_case(self, session: Session, about: About) -> None:
        """Raise Invalid for a name that the server would store in other letters."""

    @abstractmethod
    def wait_for(self, session: Session, marker: str) -> None:
        """Wait until no session writes under this marker. Raises ProviderUnavailable."""

    @abstractmethod
    def lock_table(self, session: Session, schema: str, table: str) -> None:
        """Let nobody else change a table until the session ends."""

    @abstractmethod
    def error(self, failure: Exception, about: About, where: str) -> MetalakeError:
        """Our error for the driver's, for a call that certainly did nothing."""

    # Reading

    @abstractmethod
    def schemas(self, session: Session, name: str | None = None) -> list[Remote]:
        """The schemas that are no system's, in order of name."""

    @abstractmethod
    def names(self, session: Session, schema: str) -> list[Remote]:
        """The tables and views of a schema by name and kind alone, in order of name."""

    @abstractmethod
    def catalog_rows(self, session: Session, schema: str, name: str | None, after: str) -> CatalogRows: ...

    def relations(
        self, session: Session, schema: str, name: str | None = None, after: str = ""
    ) -> tuple[list[Remote], str | None]:
        """Tables and views with their definitions, in order of name from behind `after`, by three statements.

        The second part is the name to go on behind, None at the end.
        """
        rows = self.catalog_rows(session, schema, name, after)
        columns, keys = defaultdict[str, list[Json]](list), defaultdict[str, dict[str, Json]](dict)
        for relation, column in rows.columns:
            columns[relation].append(column)
        for relation, key, is_primary, is_constraint, field in rows.keys:
            named = {"indexType": PRIMARY if is_primary else UNIQUE, "name": key, "fieldNames": []}
            index = keys[relation].setdefault(key, named if is_constraint else named | NO_CONSTRAINT)
            index["fieldNames"].append([field])
        remotes = [self._relation(row, columns[of], list(keys[of].values())) for of, *row in rows.relations]
        return remotes, rows.following

    def _relation(self, row: Sequence[Any], columns: list[Json], keys: list[Json]) -> Remote:
        name, identity, kind, comment, created, sql, security, is_materialized, *facts = row
        definition: Json = {"comment": comment or None, "columns": columns}
        if kind == Kind.VIEW:
            definition["columns"] = [column | {"defaultValue": None} for column in columns]  # MySQL makes some up
            definition |= {"sql": sql or None, "security": security, "materialized": bool(is_materialized)}
            return Remote(name, definition, identity, version_of(definition), kind)
        properties = dict(zip(self.facts, facts, strict=True))
        properties |= {f"generated.{each['name']}": each.pop("generated", None) for each in columns}
        definition["properties"] = {key: value for key, value in properties.items() if value}
        definition |= {"indexes": [key for key in keys if [None] not in key["fieldNames"]], "created": created}
        return Remote(name, definition, identity, version_of(definition), kind, self.word)

    def alterable(self, session: Session, schema: str, table: Remote) -> Json:
        """A table's definition with what else an alteration must repeat of its columns (`restated`)."""
        return table.definition

    @abstractmethod
    def check_view(self, session: Session, schema: str, view: str) -> Json | None:
        """What the database's planner says of a view, as `RemoteViews.check`. Raises the driver's errors."""

    @abstractmethod
    def drop_schema(self, session: Session, schema: str, *, cascade: bool) -> list[str]:
        """The DDL that drops a schema, with `cascade` also one that contains anything. Raises NotEmpty."""


def schema_of(name: str, identity: str, comment: str | None) -> Remote:
    definition = {"comment": comment or None}
    return Remote(name, definition, identity, version_of(definition), Kind.SCHEMA)
