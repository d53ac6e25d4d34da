"""A database's schemas, tables and views. No object carries a marker, so `outcome` tells by other means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from formats.native.changes import changed_schema, read_changes
from formats.native.tables import CreateTableRequest
from formats.native.view_definition import Representation, SecurityMode, ViewDefinition
from metalake.errors import Conflict, MetalakeError, NotFound, Unsupported
from metalake.kinds import Kind
from providers.absent import NoPartitions, NoPointers
from providers.jdbc.catalog import JdbcCatalog
from providers.jdbc.changes import drafted
from providers.jdbc.connections import Session
from providers.jdbc.definitions import essence, shown_column, shown_table, version_of
from providers.jdbc.errors import About
from providers.remote_objects import Json, Levels, NewTable, Page, Remote, ViewEntry
from providers.stores import Ending, Outcome, OutcomeUnknowable, Read, RemoteSchemas, RemoteStore, RemoteTables, ending
from providers.view_stores import ReadOnlyViews


class JdbcSchemas(RemoteSchemas):
    provider: JdbcCatalog
    carries_markers = False

    def list(self, page: str | None = None) -> Page:
        with self.provider.reading(About(Kind.CATALOG, self.provider.where)) as session:
            return Page(self.provider.dialect.schemas(session))

    def load(self, schema: Levels, settled: str = "") -> Remote:
        with self.provider.reading(About(Kind.SCHEMA, schema[0])) as session:
            if settled:
                self.provider.dialect.wait_for(session, settled)
            return _schema(self, session, schema)

    def create(self, schema: Levels, definition: Json, marker: str = "") -> Remote:
        dialect, name = self.provider.dialect, schema[0]
        return self._wrote(schema, marker, lambda session: dialect.ddl.create_schema(name, definition["comment"]))

    def alter(
        self,
        schema: Levels,
        changes: Sequence[Json] | None,
        version: str,
        expected: Json | None = None,
        marker: str = "",
    ) -> Remote:
        def statements(session: Session) -> list[str]:
            there = _schema(self, session, schema)
            _require_version(there, version)
            after = self.altered(there.definition, changes or ())
            return self.provider.dialect.ddl.alter_schema(schema[0], after["comment"])

        return self._wrote(schema, marker, statements)

    def _wrote(self, schema: Levels, marker: str, statements: Callable[[Session], Sequence[str]]) -> Remote:
        return self.provider.wrote(About(Kind.SCHEMA, schema[0]), marker, statements, lambda: self.load(schema))

    def drop(self, schema: Levels, identity: str, cascade: bool = False, by_owner: bool = False) -> None:
        def statements(session: Session) -> list[str]:
            _require_identity(_schema(self, session, schema), identity)
            return self.provider.dialect.drop_schema(session, schema[0], cascade=cascade)

        self.provider.write(About(Kind.SCHEMA, schema[0]), "", statements)

    def draft(self, comment: str | None, properties: dict[str, str]) -> Json:
        if properties:
            raise self._no_properties(next(iter(properties)))
        return {"comment": comment}

    def altered(self, definition: Json, changes: Sequence[Json]) -> Json:
        comment, _ = changed_schema(definition["comment"], {}, changes)
        named = [change["property"] for change in changes if "property" in change]
        if named:
            raise self._no_properties(named[0])
        return {"comment": comment}

    def _no_properties(self, name: str) -> Unsupported:
        return Unsupported(f"properties.{name}: schemas of {self.label} have no properties", kind=Kind.SCHEMA)

    def show(self, definition: Json) -> Json:
        return {"comment": definition["comment"], "properties": {}}

    def is_marked(self, schema: Remote, marker: str) -> bool:
        raise OutcomeUnknowable(f"{self.label} does not say who made schema {schema.name}.")

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        there = read("load_schema", schema=arguments["schema"], settled=marker)
        return _ending(self.label, verb, arguments, there, lambda made: made.get("comment") or None)


class JdbcTables(RemoteTables):
    provider: JdbcCatalog
    partitions, pointers = NoPartitions, NoPointers
    carries_markers = False

    def list(self, schema: Levels, page: str | None = None, whole: bool = False) -> Page:
        dialect, name = self.provider.dialect, schema[0]
        with self.provider.reading(About(Kind.SCHEMA, name)) as session:
            if whole:
                remotes, following = dialect.relations(session, name, after=page or "")
            else:
                remotes, following = dialect.names(session, name), None
            if not remotes:
                _schema(self, session, schema)
        return Page(remotes, following)

    def load(self, schema: Levels, table: str, settled: str = "") -> Remote:
        with self.provider.reading(About(Kind.TABLE, _full(schema, table))) as session:
            if settled:
                self.provider.dialect.wait_for(session, settled)
            there = self._there(session, schema, table)
            return self._with_columns(session, schema, there) if there.kind == Kind.VIEW else there

    def _there(self, session: Session, schema: Levels, table: str) -> Remote:
        there, _ = self.provider.dialect.relations(session, schema[0], table)
        if not there:
            raise NotFound(f"Table {_full(schema, table)} does not exist.", kind=Kind.TABLE)
        return there[0]

    def _with_columns(self, session: Session, schema: Levels, view: Remote) -> Remote:
        """The view with the columns that its query has, if the account may run it; their types are the catalog's."""
        named = self.provider.dialect.ddl.name(schema[0], view.name)
        try:
            names = session.names_of(f"SELECT * FROM {named} WHERE 1=0")  # noqa: S608 (a quoted name)
        except MetalakeError:
            raise
        except Exception:
            return view
        known = {column["name"]: column for column in view.definition["columns"]}
        if list(known) == names or not known.keys() >= set(names):
            return view
        definition = view.definition | {"columns": [known[name] for name in names]}
        return Remote(view.name, definition, view.identity, version_of(definition), Kind.VIEW)

    def create(
        self,
        schema: Levels,
        table: str,
        definition: Json,
        plan: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote:
        dialect = self.provider.dialect
        return self._wrote(schema, table, marker, lambda _: dialect.ddl.create_table(schema[0], table, definition))

    def alter(
        self,
        schema: Levels,
        table: str,
        changes: Sequence[Json] | None,
        version: str,
        expected: Json | None = None,
        marker: str = "",
        by_owner: bool = False,
    ) -> Remote:
        def statements(session: Session) -> Sequence[str]:
            self.provider.dialect.lock_table(session, schema[0], table)
            there = self._there(session, schema, table)
            _require_version(there, version)
            definition = self.provider.dialect.alterable(session, schema[0], there)
            return self.provider.dialect.ddl.alter_table(schema[0], table, definition, read_changes(changes or ()))[0]

        return self._wrote(schema, table, marker, statements)

    def rename(
        self, schema: Levels, table: str, to_schema: Levels, to_table: str, identity: str, by_owner: bool = False
    ) -> Remote:
        def statements(session: Session) -> Sequence[str]:
            _require_identity(self._there(session, schema, table), identity)
            if to_schema != schema:
                _schema(self, session, to_schema)
            return self.provider.dialect.ddl.rename_table(schema[0], table, to_schema[0], to_table)

        self.provider.dialect.ddl.check_name(to_table, Kind.TABLE)
        return self._wrote(to_schema, to_table, "", statements)

    def drop(self, schema: Levels, table: str, identity: str, purge: bool = False, by_owner: bool = False) -> None:
        def statements(session: Session) -> Sequence[str]:
            there = self._there(session, schema, table)
            _require_identity(there, identity)
            return self.provider.dialect.ddl.drop_table(schema[0], table, there.definition)

        self.provider.write(About(Kind.TABLE, _full(schema, table)), "", statements)

    def _wrote(self, schema: Levels, table: str, marker: str, statements: Callable[[Session], Sequence[str]]) -> Remote:
        about = About(Kind.TABLE, _full(schema, table))
        return self.provider.wrote(about, marker, statements, lambda: self.load(schema, table))

    def draft(self, schema: Remote, asked: CreateTableRequest) -> NewTable:
        return NewTable(drafted(self.provider.dialect.ddl, asked))

    def altered(self, definition: Json, updates: Sequence[Any]) -> Json:
        return self.provider.dialect.ddl.alter_table("", "", definition, updates)[1]

    def show(self, definition: Json) -> Json:
        return shown_table(definition)

    def is_marked(self, table: Remote, marker: str) -> bool:
        raise OutcomeUnknowable(f"{self.label} does not say who made table {table.name}.")

    def outcome(self, verb: str, arguments: Mapping[str, Any], marker: str, read: Read) -> Ending:
        if verb == "rename_table":
            return super().outcome(verb, arguments, marker, read)
        there = read("load_table", schema=arguments["schema"], table=arguments["table"], settled=marker)
        return _ending(self.label, verb, arguments, there, essence)


class JdbcViews(ReadOnlyViews):
    provider: JdbcCatalog

    def list(self, schema: Levels, page: str | None = None) -> Page:
        with self.provider.reading(About(Kind.SCHEMA, schema[0])) as session:
            remotes, following = self.provider.dialect.relations(session, schema[0], after=page or "")
        return Page([each for each in remotes if each.kind == Kind.VIEW], following)

    def check(self, schema: Levels, view: str) -> Json | None:
        with self.provider.reading(About(Kind.VIEW, _full(schema, view))) as session:
            return self.provider.dialect.check_view(session, schema[0], view)

    def read(self, definition: Json) -> ViewEntry:
        word, sql = self.provider.dialect.word, definition["sql"]
        properties = {} if sql else {"definition": self.provider.dialect.hidden_definition}
        view = ViewDefinition(
            representations=(Representation(dialect=word, sql=sql),) if sql else (),
            columns=tuple(shown_column(column) for column in definition["columns"]),
            security_mode=SecurityMode(definition["security"]) if definition["security"] else None,
            comment=definition["comment"],
            properties=properties,
        )
        return ViewEntry(word, word, view, is_materialized=definition["materialized"])

    def _refusal(self) -> Unsupported:
        return Unsupported(
            "CREATE VIEW is not supported for JDBC catalogs; create the view in an Iceberg catalog", kind=Kind.VIEW
        )


def _schema(store: RemoteStore, session: Session, schema: Levels) -> Remote:
    """The schema as it is there. Raises NotFound."""
    there = store.provider.dialect.schemas(session, schema[0])
    if not there:
        raise NotFound(f"Schema {schema[0]} does not exist.", kind=Kind.SCHEMA)
    remote: Remote = there[0]
    return remote


def _full(schema: Levels, table: str) -> str:
    return f"{schema[0]}.{table}"


def _require_version(there: Remote, version: str) -> None:
    if there.version != version:
        raise Conflict(f"{there.name} was changed in the database meanwhile.", kind=there.kind)


def _require_identity(there: Remote, identity: str) -> None:
    if there.kind == Kind.VIEW or there.identity != identity:
        raise NotFound(f"{there.name} is another object by now.", kind=there.kind)


def _ending(
    label: str, verb: str, arguments: Mapping[str, Any], there: Remote | None, essence_of: Callable[[Json], Any]
) -> Ending:
    """How a call ended, by what is there now. Raises OutcomeUnknowable.

    A creation began when the name was free, so an object that is as it was requested is its own; an alteration began at
    its `version`.
    """

    def is_ours(there: Remote) -> bool:
        wanted = arguments["expected"] if "expected" in arguments else arguments["definition"]
        if there.kind != Kind.VIEW and essence_of(there.definition) == essence_of(wanted):
            return True
        raise OutcomeUnknowable(f"{label} does not say who made {there.name} what it is now.")

    if there is not None and there.version == arguments.get("version"):
        return Outcome.NOT_DONE, there
    return ending(verb, arguments, there, is_ours)
