"""PostgreSQL: its catalog (pg_catalog), its types, and its DDL, which is transactional.

An object's identity is its oid. A commit whose answer is lost is looked up by its transaction's status
(pg_xact_status) on another connection. After a crash nobody knows the transaction: then a creation is recognised by
what it made, since its name was free before, an alteration by its result, a drop and a rename by the oid. What was
altered by others within these seconds waits for a person, as does the undoing of a creation that gave no answer.
Sources: PostgreSQL, "System Catalogs", "Transaction ID and Snapshot Information Functions", "Error Codes".
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from typing import Any, ClassVar

from metalake.errors import MetalakeError, OutcomeUnknown, Unsupported
from metalake.kinds import Kind
from providers.jdbc.connections import LOCK_SECONDS, STATEMENT_SECONDS, Login, Session
from providers.jdbc.dialect import CatalogRows, Dialect, Statements, schema_of
from providers.jdbc.errors import About, Failure
from providers.jdbc.postgresql_ddl import PostgreSQLDdl
from providers.jdbc.url import POSTGRES_TLS, Tls
from providers.network.endpoints import CONNECT_SECONDS, resolve
from providers.remote_objects import Json, Remote

OLDEST = 130_000  # the first with pg_current_xact_id and pg_xact_status of it
DENIED = "42501"
PAGE_COLUMNS = 250_000  # of the tables of one page
SSL_MODES = {Tls.OFF: "disable", Tls.PREFER: "prefer", Tls.REQUIRE: "require", Tls.VERIFY: "verify-full"}
NO_SYSTEM = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
SHOWN = "c.relkind IN ('r', 'p', 'f', 'v', 'm')"
IS_VIEW = "c.relkind IN ('v', 'm')"
KIND = f"CASE WHEN {IS_VIEW} THEN 'view' ELSE 'table' END"
LITERAL = re.compile(r"\(?'?(-?\d+(?:\.\d+)?)'?\)?(?:::[a-z ]+(?:\(\d+(?:,\d+)?\))?)?|'((?:[^']|'')*)'(?:::[^()']+)?")
NOW = frozenset({"now()", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "transaction_timestamp()"})

SCHEMAS = f"""
SELECT n.nspname, n.oid::text, obj_description(n.oid, 'pg_namespace') FROM pg_namespace n
WHERE {NO_SYSTEM} AND (%s::text IS NULL OR n.nspname = %s) ORDER BY n.nspname COLLATE "C"
"""  # noqa: S608 (constants)
NAMES = f"""
SELECT c.relname, {KIND} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND {NO_SYSTEM} AND {SHOWN} ORDER BY c.relname COLLATE "C"
"""  # noqa: S608
_AMONG = f"""
WITH numbered AS (
    SELECT c.*, sum(c.relnatts) OVER (ORDER BY c.relname COLLATE "C") AS so_far
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND {NO_SYSTEM} AND {SHOWN} AND (%s::text IS NULL OR c.relname = %s::text)
    AND c.relname COLLATE "C" > %s
), c AS (SELECT * FROM numbered WHERE so_far - relnatts < {PAGE_COLUMNS})
"""  # noqa: S608
INVOKER = "coalesce(lower(array_to_string(c.reloptions, ',')) ~ 'security_invoker=(true|on|1|yes)', false)"
RELATIONS = f"""{_AMONG}
SELECT c.oid::text, c.relname, c.oid::text, {KIND}, obj_description(c.oid, 'pg_class'), NULL,
    CASE WHEN {IS_VIEW} THEN btrim(pg_get_viewdef(c.oid), E' \\n;') END,
    CASE WHEN c.relkind = 'v' THEN CASE WHEN {INVOKER} THEN 'INVOKER' ELSE 'DEFINER' END END, c.relkind = 'm',
    CASE c.relkind WHEN 'p' THEN 'partitioned table' WHEN 'f' THEN 'foreign table' END,
    CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END,
    CASE WHEN c.relispartition THEN (SELECT p.relnamespace::regnamespace || '.' || quote_ident(p.relname)
        FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid = c.oid) END,
    (SELECT s.srvname FROM pg_foreign_table f JOIN pg_foreign_server s ON s.oid = f.ftserver WHERE f.ftrelid = c.oid),
    c.so_far
FROM c ORDER BY c.relname COLLATE "C"
"""  # noqa: S608
COLUMNS = f"""{_AMONG}
SELECT c.oid::text, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity::text,
    a.attgenerated::text, pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum),
    CASE WHEN a.attcollation <> t.typcollation THEN a.attcollation::regcollation::text END
FROM c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
ORDER BY c.relname COLLATE "C", a.attnum
"""  # noqa: S608
KEYS = f"""{_AMONG}
SELECT c.oid::text, k.relname, x.indisprimary,
    EXISTS (SELECT FROM pg_constraint o WHERE o.conindid = x.indexrelid AND o.conrelid = c.oid), a.attname
FROM c JOIN pg_index x ON x.indrelid = c.oid AND x.indisunique AND x.indisvalid AND x.indpred IS NULL
    AND x.indexprs IS NULL
JOIN pg_class k ON k.oid = x.indexrelid
JOIN unnest(x.indkey) WITH ORDINALITY AS place(attnum, number) ON place.number <= x.indnkeyatts
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = place.attnum
ORDER BY c.relname COLLATE "C", NOT x.indisprimary, k.relname COLLATE "C", place.number
"""  # noqa: S608
VIEW = f"""
SELECT c.relkind::text, pg_get_viewdef(c.oid), c.relkind = 'v' AND NOT {INVOKER}, current_setting('server_version'),
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND {IS_VIEW}
"""  # noqa: S608

FOREIGN = """
SELECT 1 FROM information_schema.foreign_tables WHERE foreign_table_schema = %s AND foreign_table_name = %s
"""
STATES = {
    "42P07": Failure.EXISTS, "42P06": Failure.EXISTS, "42710": Failure.EXISTS, "42P01": Failure.MISSING,
    "3F000": Failure.NO_SCHEMA, "2BP01": Failure.DEPENDS, "42501": Failure.DENIED, "57014": Failure.SLOW,
    "55P03": Failure.LOCKED, "40P01": Failure.LOCKED, "3D000": Failure.LOGIN, "28000": Failure.LOGIN,
    "28P01": Failure.LOGIN, "53": Failure.BUSY, "22": Failure.REFUSED, "23": Failure.REFUSED, "42": Failure.REFUSED,
    "0A": Failure.REFUSED, "54": Failure.REFUSED, "25": Failure.REFUSED, "2B": Failure.REFUSED, "55": Failure.REFUSED,
    "P0": Failure.REFUSED,
}  # fmt: skip


class PostgreSQL(Dialect):
    word = "postgresql"
    schemes: ClassVar[Mapping[str, str]] = {"postgresql": "postgresql"}
    tls = POSTGRES_TLS
    drivers = frozenset({"org.postgresql.Driver"})
    ddl = PostgreSQLDdl()
    hidden_definition = "The database did not show it."
    facts = ("kind", "partitioned-by", "partition-of", "foreign-server")

    # Sessions

    def connect(self, login: Login, *, writes: bool = False) -> Session:
        import psycopg  # takes a while, and most processes never need it

        host, port = login.endpoint.host, login.endpoint.port
        addresses = [str(address) for address in resolve(host, port)]
        raw = psycopg.connect(
            _without_environment(),
            host=",".join([host] * len(addresses)),
            hostaddr=",".join(addresses),  # so that libpq looks nothing up
            port=port,
            dbname=login.database,
            user=login.user,
            password=login.password,
            sslmode=SSL_MODES[login.tls],
            sslrootcert="system" if login.tls is Tls.VERIFY else "",
            sslcertmode="disable",  # nothing of this machine's own identity
            gssencmode="disable",
            passfile=os.devnull,
            require_auth="!gss,!sspi" + ("" if login.tls is Tls.VERIFY else ",!password"),  # none in the clear
            connect_timeout=max(2, round(CONNECT_SECONDS)),
            application_name="metalake",
            client_encoding="UTF8",
            autocommit=True,
            prepare_threshold=None,
        )
        session = Session(raw, raw.fileno, f"{host}:{port}")
        try:
            self._set_up(session, writes=writes)
        except BaseException:
            session.close()
            raise
        return session

    def _set_up(self, session: Session, *, writes: bool) -> None:
        wanted = {
            "statement_timeout": f"{STATEMENT_SECONDS:.0f}s",
            "lock_timeout": f"{LOCK_SECONDS:.0f}s",
            "idle_in_transaction_session_timeout": "60s",
            "search_path": "pg_catalog",  # every name is spelled whole
            "default_transaction_read_only": "off" if writes else "on",
            "standard_conforming_strings": "on",
            "client_min_messages": "error",
        }
        settings = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in wanted.items())
        product = session.rows(f"SELECT version(), current_setting('server_version_num')::int, {settings}")[0]
        if not str(product[0]).startswith("PostgreSQL ") or product[1] < OLDEST:
            raise Unsupported(
                f"{session.where} is {str(product[0])[:60]!r}, not PostgreSQL {OLDEST // 10_000} or newer.",
                kind=Kind.CATALOG,
            )
        session.raw.autocommit = not writes

    def write(self, session: Session, login: Login, marker: str, statements: Statements) -> None:
        if marker:
            self.wait_for(session, marker)
        transaction = session.rows("SELECT pg_current_xact_id()::text")[0][0]
        for statement in statements(session):
            session.run(statement)
        try:
            session.commit()
        except Exception as failure:
            self._require_committed(login, str(transaction), failure)

    def _require_committed(self, login: Login, transaction: str, failure: Exception) -> None:
        """Return if it is committed, whatever was answered: a server may be shut down between commit and answer."""
        status = None
        with suppress(Exception), closing(self.connect(login)) as session:
            status = session.rows("SELECT pg_xact_status(%s::xid8)", [transaction])[0][0]
        if status == "aborted":
            raise failure
        if status != "committed":
            raise OutcomeUnknown("The answer to a commit was lost.", kind=Kind.CATALOG)

    def wait_for(self, session: Session, marker: str) -> None:
        """By a lock that is held until the transaction ends, which in a session that reads is this statement."""
        session.rows("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))::text", [f"metalake {marker}"])

    def lock_table(self, session: Session, schema: str, table: str) -> None:
        if not session.rows(FOREIGN, [schema, table]):  # which cannot be locked but by altering it
            session.run(f"LOCK TABLE {self.ddl.name(schema, table)} IN ACCESS EXCLUSIVE MODE")

    def error(self, failure: Exception, about: About, where: str) -> MetalakeError:
        state = getattr(failure, "sqlstate", None) or ""
        if state:
            words = str(getattr(getattr(failure, "diag", None), "message_primary", None) or "")
            return (STATES.get(state) or STATES.get(state[:2], Failure.SILENT)).error(about, where, words)
        text = str(failure)  # of libpq: it did not come as far as a statement
        if any(word in text for word in ("authentication", "does not exist", "pg_hba", "no password")):
            return Failure.LOGIN.error(about, where)
        is_tls = ("SSL" in text or "certificate" in text) and "invalid response" not in text
        return (Failure.NO_TLS if is_tls else Failure.SILENT).error(about, where)

    # Reading

    def schemas(self, session: Session, name: str | None = None) -> list[Remote]:
        rows = session.rows(SCHEMAS, [name, name])
        return [schema_of(*row) for row in rows]

    def names(self, session: Session, schema: str) -> list[Remote]:
        return [Remote(name, {}, kind=kind) for name, kind in session.rows(NAMES, [schema])]

    def catalog_rows(self, session: Session, schema: str, name: str | None, after: str) -> CatalogRows:
        parameters = [schema, name, name, after]
        relations = session.rows(RELATIONS, parameters)
        if not relations:
            return CatalogRows([], [], [], None)
        columns = [(oid, self._column(column)) for oid, *column in session.rows(COLUMNS, parameters)]
        following = relations[-1][1] if relations[-1][-1] >= PAGE_COLUMNS else None
        return CatalogRows([row[:-1] for row in relations], columns, session.rows(KEYS, parameters), following)

    def check_view(self, session: Session, schema: str, view: str) -> Json | None:
        """By EXPLAIN. Functions that are declared IMMUTABLE may be computed, and nothing else."""
        rows = session.rows(VIEW, [schema, view])
        if not rows or not rows[0][-1]:
            return None
        sort, sql, is_definers, version, _ = rows[0]
        query = f"SELECT * FROM {self.ddl.name(schema, view)}" if sort == "v" else sql  # noqa: S608 (a quoted name)
        problem = None
        try:
            session.rows(f"EXPLAIN {query}")
        except Exception as failure:
            state = getattr(failure, "sqlstate", None) or ""
            if state == DENIED and not is_definers:
                return None  # what the query reads takes rights of our own account
            problem = _problem(state)
            if problem is None:
                raise
        return {"engine": f"PostgreSQL {version}", "problems": [problem] if problem else []}

    def drop_schema(self, session: Session, schema: str, *, cascade: bool) -> list[str]:
        return [f"DROP SCHEMA {self.ddl.name(schema)} {'CASCADE' if cascade else 'RESTRICT'}"]

    def _column(self, row: Sequence[Any]) -> Json:
        name, spelling, required, identity, generated, default, comment, collation = row
        counts = bool(identity) or (default or "").startswith("nextval(")
        column = {"name": name, "type": self.ddl.native(spelling), "spelling": spelling, "nullable": not required}
        column |= {
            "autoIncrement": counts,
            "comment": comment,
            "restated": {"collation": collation} if collation else {},
        }
        if default is not None and generated:
            column["generated"] = default
        elif default is not None and not counts:
            column["defaultValue"] = _default(default, column["type"])
        return column


@cache
def _without_environment() -> str:
    """Every parameter that has a variable in the environment, with libpq's own default.

    libpq reads a parameter from the environment or from the service of PGSERVICE only if it is not given; an empty one
    counts as given. Source: PostgreSQL, "Environment Variables", "The Connection Service File".
    """
    from psycopg import conninfo, pq

    has_no_empty = ("service", "connect_timeout", "sslcertmode", "min_protocol_version", "max_protocol_version")
    known = {each.keyword.decode(): each.compiled or b"" for each in pq.Conninfo.get_defaults() if each.envvar}
    return conninfo.make_conninfo(**{name: known[name].decode() for name in known if name not in has_no_empty})


def _problem(state: str) -> str | None:
    """Why a view cannot be planned, by the error's class: the error itself may name what its reader may not see.

    None for an error that is not the view's.
    """
    if state == DENIED:
        return "Its owner may not read, or not use, something that it reads."
    if state in ("3F000", "42703", "42704", "42883", "42P01"):
        return "Something that it reads does not exist any more."
    if state[:2] in ("0A", "22", "42", "54", "P0", "XX"):
        return f"PostgreSQL cannot plan it (SQLSTATE {state})."
    return None


def _default(text: str, type_: Any) -> Json:
    if text in NOW:
        return {"type": "function", "funcName": "current_timestamp", "funcArgs": []}
    if text.startswith("NULL::") or text == "NULL":
        return {"type": "literal", "dataType": "null", "value": "NULL"}
    if text in ("true", "false"):
        return {"type": "literal", "dataType": "boolean", "value": text}
    if match := LITERAL.fullmatch(text):
        value = match[1] if match[1] is not None else match[2].replace("''", "'")
        return {"type": "literal", "dataType": type_, "value": value}
    return {"type": "unparsed", "unparsedExpression": text}
