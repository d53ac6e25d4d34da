"""MySQL and MariaDB: information_schema, their types, and their DDL, of which each statement is a transaction.

Nothing there tells one table from a later one of its name, so an object has no identity, and the later one keeps the
grants of the first. A write is one statement whose lost answer is read back once the lock of its marker is free
(GET_LOCK): a creation is recognised by what it made, since its name was free before, an alteration by its result, a
drop and a rename by what is there. What others altered within these seconds waits for a person, as does the undoing of
a creation unless it is as the call answered, to the second of its making. Sources: MySQL, "Information Schema",
"Identifier Case Sensitivity", "Atomic Data Definition Statement Support", "Server Error Message Reference"; MariaDB
Server documentation, "Information Schema Tables", "Atomic DDL".
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from metalake.errors import (
    Invalid,
    MetalakeError,
    NotEmpty,
    OutcomeUnknown,
    ProviderBusy,
    ProviderUnavailable,
    Unsupported,
)
from metalake.kinds import Kind
from metalake.wire import quote
from providers.jdbc.connections import LOCK_SECONDS, STATEMENT_SECONDS, Login, Session, ended_after
from providers.jdbc.dialect import CatalogRows, Dialect, Statements, schema_of
from providers.jdbc.errors import About, Failure
from providers.jdbc.mysql_ddl import MySQLDdl
from providers.jdbc.url import MYSQL_TLS, Tls
from providers.network.endpoints import READ_SECONDS, connect
from providers.remote_objects import Json, Remote

SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
PAGE = 10_000  # tables
SQL_MODE = "STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
LOST = frozenset({1053, 1927, 2003, 2006, 2013, 2014, 2027, 2055})  # the server's own: it or the session is ended
NO_TLS, NO_DATABASE = 2026, 1049
KIND = "IF(t.table_type IN ('VIEW', 'SYSTEM VIEW'), 'view', 'table')"
SHOWN = "t.table_type NOT IN ('SEQUENCE', 'TEMPORARY')"
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "Z": "\x1a"}

TABLES = f"""
SELECT t.table_name, t.table_name, '', {KIND}, IF({KIND} = 'view', NULL, t.table_comment), CAST(t.create_time AS CHAR),
    v.view_definition, v.security_type, 0,
    t.engine, t.table_collation, IF(LOCATE('partitioned', t.create_options), 'true', NULL)
FROM information_schema.tables t
LEFT JOIN information_schema.views v ON v.table_schema = %s AND v.table_name = t.table_name{{view}}
WHERE t.table_schema = %s AND {{among}} AND {SHOWN} ORDER BY BINARY t.table_name LIMIT {{limit}}
"""  # noqa: S608 (constants)
COLUMNS = """
SELECT t.table_name, t.column_name, t.column_type, t.is_nullable, t.column_default, t.extra, t.column_comment,
    t.character_set_name, t.collation_name, t.generation_expression
FROM information_schema.columns t WHERE t.table_schema = %s AND {among} ORDER BY BINARY t.table_name, t.ordinal_position
"""
KEYS = """
SELECT t.table_name, t.index_name, t.index_name = 'PRIMARY', 1, IF(t.sub_part IS NULL, t.column_name, NULL)
FROM information_schema.statistics t WHERE t.table_schema = %s AND {among} AND t.non_unique = 0
ORDER BY BINARY t.table_name, t.index_name <> 'PRIMARY', t.index_name, t.seq_in_index
"""
SECURITY = "SELECT security_type FROM information_schema.views WHERE table_schema = %s AND table_name = %s"
CHECKS = """
SELECT constraint_name, check_clause FROM information_schema.check_constraints
WHERE constraint_schema = %s AND table_name = %s AND level = 'Column'
"""
NUMBERS = {
    **dict.fromkeys((1007, 1050), Failure.EXISTS),
    **dict.fromkeys((1008, 1051, 1146), Failure.MISSING),
    NO_DATABASE: Failure.NO_SCHEMA,
    **dict.fromkeys((1205, 1213), Failure.LOCKED),
    **dict.fromkeys((1317, 1969, 3024), Failure.SLOW),
    **dict.fromkeys((1040, 1203, 1226), Failure.BUSY),
    **dict.fromkeys((1045, 1524, 1698, 4151), Failure.LOGIN),
    **dict.fromkeys((1044, 1142, 1143, 1227, 1370), Failure.DENIED),
    **dict.fromkeys((1451, 3730), Failure.DEPENDS),
    NO_TLS: Failure.NO_TLS,
}
SYNTAX = 1064


class MySQL(Dialect):
    word = "mysql"
    schemes: ClassVar[Mapping[str, str]] = {"mysql": "mysql", "mariadb": "mysql"}
    tls = MYSQL_TLS
    drivers = frozenset({"com.mysql.cj.jdbc.Driver", "com.mysql.jdbc.Driver", "org.mariadb.jdbc.Driver"})
    hidden_definition = "The catalog's account may not read it; grant it SHOW VIEW on this view."
    facts = ("engine", "collation", "partitioned")

    def __init__(self, label: str = "MySQL", *, checks_views: bool = True) -> None:
        self.ddl, self.checks_views = MySQLDdl(label), checks_views

    # Sessions

    def connect(self, login: Login, *, writes: bool = False) -> Session:
        from pymysql.cursors import SSCursor

        from providers.jdbc.mysql_connection import GuardedConnection

        host, port = login.endpoint.host, login.endpoint.port
        raw = GuardedConnection(
            host=host,
            port=port,
            user=login.user,
            password=login.password.encode(),
            database=login.database or None,
            charset="utf8mb4",
            autocommit=True,
            cursorclass=SSCursor,
            read_timeout=READ_SECONDS + STATEMENT_SECONDS,
            write_timeout=READ_SECONDS,
            ssl=_tls(login.tls),
            ssl_disabled=login.tls is Tls.OFF,
            program_name="metalake",
            defer_connect=True,
        )
        try:
            connection = connect(host, port)
            with connection.dup() as same, ended_after(READ_SECONDS, same.fileno):
                raw.connect(connection)
            session = Session(raw, raw._sock.fileno, f"{host}:{port}")
            self._set_up(session, writes=writes)
        except BaseException as failure:
            raw.close()
            if _number_of(failure) == NO_DATABASE:  # not what the call is about
                message = f"{host}:{port} has no database of the name in jdbc-database or jdbc-url."
                raise ProviderUnavailable(message, kind=Kind.CATALOG, retryable=False) from None
            raise
        return session

    def _set_up(self, session: Session, *, writes: bool) -> None:
        seconds = round(STATEMENT_SECONDS)
        limit = f"max_statement_time={seconds}" if _is_mariadb(session) else f"max_execution_time={seconds * 1000}"
        session.run(f"SET SESSION sql_mode='{SQL_MODE}', lock_wait_timeout={LOCK_SECONDS:.0f}, {limit}")
        if not writes:
            session.run("SET SESSION TRANSACTION READ ONLY")

    def write(self, session: Session, login: Login, marker: str, statements: Statements) -> None:
        if marker:
            self._lock(session, marker)
        for statement in statements(session):
            try:
                session.run(statement)
            except MetalakeError:  # it was not sent
                raise
            except Exception as failure:
                if _number_of(failure) in LOST or not _number_of(failure):
                    raise OutcomeUnknown("The answer to a statement was lost.", kind=Kind.CATALOG) from None
                raise

    def check_case(self, session: Session, about: About) -> None:
        name = about.name.lower()
        if name != about.name and session.rows("SELECT @@lower_case_table_names") == [(1,)]:
            message = f"The server stores names in lower case (lower_case_table_names=1): write {quote(name)}"
            raise Invalid(message, kind=about.kind)

    def wait_for(self, session: Session, marker: str) -> None:
        self._lock(session, marker)
        session.rows("SELECT RELEASE_LOCK(%s)", [f"metalake {marker}"])

    def _lock(self, session: Session, marker: str) -> None:
        if session.rows(f"SELECT GET_LOCK(%s, {LOCK_SECONDS:.0f})", [f"metalake {marker}"]) != [(1,)]:
            raise ProviderBusy("A call of this write is still under way.", kind=Kind.CATALOG)

    def lock_table(self, session: Session, schema: str, table: str) -> None:
        session.run(f"LOCK TABLES {self.ddl.name(schema, table)} WRITE")

    def error(self, failure: Exception, about: About, where: str) -> MetalakeError:
        number, words = _number_of(failure), str(failure.args[1]) if len(failure.args) > 1 else ""
        if number == SYNTAX and about.kind is Kind.SCHEMA:
            return Unsupported("comment: MySQL's schemas have none, MariaDB's do", kind=Kind.SCHEMA)
        if isinstance(getattr(failure, "original_exception", None), ssl.SSLError):
            return Failure.NO_TLS.error(about, where)
        lost = Failure.SILENT if not number or number in LOST else Failure.REFUSED
        return NUMBERS.get(number, lost).error(about, where, words)

    # Reading

    def schemas(self, session: Session, name: str | None = None) -> list[Remote]:
        comment = "schema_comment" if _is_mariadb(session) else "''"
        rows = session.rows(
            f"SELECT schema_name, '', {comment} FROM information_schema.schemata "  # noqa: S608
            "WHERE %s IS NULL OR schema_name = %s ORDER BY BINARY schema_name",
            [name, name],
        )
        return [schema_of(*row) for row in rows if row[0].lower() not in SYSTEM and name in (None, row[0])]

    def names(self, session: Session, schema: str) -> list[Remote]:
        rows = session.rows(
            f"SELECT table_name, {KIND} FROM information_schema.tables t WHERE table_schema = %s AND {SHOWN} "  # noqa: S608
            "ORDER BY BINARY table_name",
            [schema],
        )
        return [Remote(name, {}, kind=kind) for name, kind in rows if schema.lower() not in SYSTEM]

    def catalog_rows(self, session: Session, schema: str, name: str | None, after: str) -> CatalogRows:
        if schema.lower() in SYSTEM:
            return CatalogRows([], [], [], None)
        among, given, view = "BINARY t.table_name > %s", [after], ""
        if name is not None:
            among, given, view = "t.table_name = %s", [name], " AND v.table_name = %s"
        tables = session.rows(
            TABLES.format(among=among, view=view, limit=PAGE + 1), [schema, *(given if view else []), schema, *given]
        )
        tables, is_full = [row for row in tables[:PAGE] if name in (None, row[0])], len(tables) > PAGE
        if not tables:
            return CatalogRows([], [], [], None)
        if is_full:
            among, given = f"{among} AND BINARY t.table_name <= %s", [*given, tables[-1][0]]
        rows = session.rows(COLUMNS.format(among=among), [schema, *given])
        columns = [(table, self._column(column, _is_mariadb(session))) for table, *column in rows]
        keys = session.rows(KEYS.format(among=among), [schema, *given])
        return CatalogRows(tables, columns, keys, tables[-1][0] if is_full else None)

    def alterable(self, session: Session, schema: str, table: Remote) -> Json:
        """With the columns' own CHECKs, which MariaDB drops with the column's old definition."""
        if not _is_mariadb(session):
            return table.definition
        checks: dict[str, str] = dict(session.rows(CHECKS, [schema, table.name]))
        columns = [
            column | {"restated": column["restated"] | _check(checks.get(column["name"], ""))}
            for column in table.definition["columns"]
        ]
        return table.definition | {"columns": columns}

    def check_view(self, session: Session, schema: str, view: str) -> Json | None:
        """By CHECK TABLE, which resolves a view's names: EXPLAIN would compute functions, and takes more rights."""
        if not self.checks_views:
            return None
        try:
            rows = session.rows(f"CHECK TABLE {self.ddl.name(schema, view)}")
        except Exception as failure:
            if NUMBERS.get(_number_of(failure)) is Failure.DENIED:
                return None
            raise
        is_broken = any(str(sort).lower() == "error" for _, _, sort, _ in rows)
        if is_broken and any("denied" in str(words) for *_, words in rows):
            modes = session.rows(SECURITY, [schema, view])
            if modes != [("DEFINER",)]:
                return None  # what an INVOKER view reads takes rights of our own account
        product = "MariaDB" if _is_mariadb(session) else "MySQL"
        version = session.rows("SELECT VERSION()")[0][0]
        problem = "It reads something that does not exist any more, or that its definer may not use."
        return {"engine": f"{product} {version}"[:64], "problems": [problem] if is_broken else []}

    def drop_schema(self, session: Session, schema: str, *, cascade: bool) -> list[str]:
        """MySQL itself drops one with all that it contains."""
        columns = {"tables": "table_schema", "routines": "routine_schema", "events": "event_schema"}
        for inside, column in columns.items() if not cascade else ():
            statement = f"SELECT 1 FROM information_schema.{inside} WHERE {column} = %s LIMIT 1"  # noqa: S608
            if session.rows(statement, [schema]):
                raise NotEmpty(f"Schema {schema} is not empty: it has {inside}.", kind=Kind.SCHEMA)
        return [f"DROP DATABASE {self.ddl.name(schema)}"]

    def _column(self, row: Sequence[Any], is_mariadb: bool) -> Json:
        name, spelling, nullable, default, extra, comment, charset, collation, generated = row
        extra, spelling = (extra or "").lower(), _unescaped(spelling)
        type_ = self.ddl.native(spelling)
        column = {"name": name, "type": type_, "spelling": spelling, "nullable": nullable == "YES"}
        column |= {"autoIncrement": "auto_increment" in extra, "comment": comment or None}
        restated: Json = {"collation": f"CHARACTER SET {charset} COLLATE {collation}"} if charset else {}
        if "on update" in extra:
            restated["on_update"] = True
        others = re.sub(r"on update [^\s,]+|auto_increment|default_generated", "", extra).strip(" ,")
        if generated:
            column["generated"] = generated
        if generated or others:
            restated["fixed"] = "generated" if generated else others
        if default is not None and not generated and not (is_mariadb and default == "NULL"):
            shown, restated["default"] = self._default(default, type_, "default_generated" in extra, is_mariadb)
            column["defaultValue"] = restated["shown"] = shown
            is_binary = "binary" in spelling or "blob" in spelling
            if (is_binary and "?" in default) or (shown["type"] == "unparsed" and "\\" in default):
                restated["fixed"] = "made with a default that the database does not show as it is"
        return column | {"restated": restated}

    def _default(self, text: str, type_: Any, is_expression: bool, is_mariadb: bool) -> tuple[Json, str]:
        """A default on the native wire and in SQL.

        MariaDB has all of them in SQL, with backslashes before some characters; MySQL has literals as they are.
        """
        is_time = str(type_).startswith("timestamp")
        if (is_mariadb or is_expression or is_time) and re.fullmatch(r"(?i)(current_timestamp|now)(\(\d?\))?", text):
            return {"type": "function", "funcName": "current_timestamp", "funcArgs": []}, text
        if is_mariadb and (match := re.fullmatch(r"'((?:[^']|'')*)'", text, re.DOTALL)):
            text = _unescaped(match[1].replace("''", "'"))
            sql = self.ddl.text(text)
        elif is_expression or text.startswith("b'") or (is_mariadb and not NUMBER.fullmatch(text)):
            return {"type": "unparsed", "unparsedExpression": text}, f"({text})"
        else:
            sql = text if NUMBER.fullmatch(text) else self.ddl.text(text)
        value = str(text != "0").lower() if type_ == "boolean" else text
        return {"type": "literal", "dataType": type_, "value": value}, sql


def _tls(mode: Tls) -> ssl.SSLContext | None:
    """What TLS must have; without it PyMySQL prefers TLS."""
    if mode in (Tls.OFF, Tls.PREFER):
        return None
    context = ssl.create_default_context()
    if mode is not Tls.VERIFY:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _number_of(failure: BaseException) -> int:
    """MySQL's number of an error; 0 if it is none of the server."""
    return failure.args[0] if failure.args and isinstance(failure.args[0], int) else 0


def _is_mariadb(session: Session) -> bool:
    return "MariaDB" in str(session.raw.get_server_info())


def _check(clause: str) -> Json:
    return {"fixed": "under a CHECK with a backslash"} if "\\" in clause else {"check": clause}


def _unescaped(text: str) -> str:
    """A text as it is, of one that information_schema has with backslashes."""
    return re.sub(r"\\(.)", lambda match: ESCAPED.get(match[1], match[1]), text)
