"""Sessions: limited in number, time and rights, on checked addresses; and what servers get that are no database."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from formats.native.tables import CreateTableRequest
from metalake.errors import Invalid, MetalakeError, OutcomeUnknown, ProviderBusy, ProviderTimeout, ProviderUnavailable
from metalake.kinds import Kind
from providers.deadline import until
from providers.jdbc import connections, mysql, postgresql
from providers.jdbc.catalog import JdbcCatalog
from providers.jdbc.connections import Session
from providers.jdbc.errors import About
from providers.jdbc.provider import MySQLProvider, PostgreSQLProvider
from providers.jdbc.stores import JdbcSchemas, JdbcTables
from providers.network.idle_connections import IdleConnections
from providers.remote_objects import Remote
from tests import mariadb as mariadb_server
from tests.cases import each
from tests.mariadb import MariaDB, running_mariadb
from tests.names import own_name
from tests.postgres import PostgresServer
from tests.providers.jdbc import impostors
from tests.providers.jdbc.impostors import OK, Talk, cutting, listening
from tests.providers.network.conftest import dns  # noqa: F401 (fixture)

SECRET = "hunter2Hunter2"
ABOUT = About(Kind.CATALOG, "sales")
NO_DATABASES = [impostors.silent, impostors.dripping, impostors.web_server]
BOTH = pytest.mark.parametrize("system", ["postgresql", "mysql"])
Make = Callable[..., JdbcCatalog]


@pytest.fixture(autouse=True)
def own_connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(connections, "_idle", IdleConnections[Session](most_each=8, seconds=300.0))
    yield
    connections._idle.close_all()


@pytest.fixture
def provider(postgres_url: str, mariadb: MariaDB) -> Make:
    """A catalog of either system, on the suite's servers or at another port."""

    def make(system: str, port: int = 0, *, query: str = "", host: str = "127.0.0.1", **changes: str) -> JdbcCatalog:
        at, _, database = postgres_url.rpartition("@")[2].partition("/")
        is_mysql = system == "mysql"
        own = mariadb.port if is_mysql else int(at.partition(":")[2])
        login = {"jdbc-user": mariadb_server.USER, "jdbc-password": mariadb_server.PASSWORD}
        if not is_mysql:
            login = {"jdbc-user": "postgres", "jdbc-password": SECRET, "jdbc-database": database}
        given = {name.replace("_", "-"): value for name, value in changes.items()}
        url = f"jdbc:{system}://{host}:{port or own}/{'?' if query else ''}{query}"
        return (MySQLProvider if is_mysql else PostgreSQLProvider)(1, {"jdbc-url": url} | login | given)

    return make


def rows(provider: JdbcCatalog, statement: str) -> list[Any]:
    with provider.reading(ABOUT) as session:
        return session.rows(statement)


def refusal(provider: JdbcCatalog) -> ProviderUnavailable:
    with pytest.raises(ProviderUnavailable) as refused:
        provider.test_connection()
    assert SECRET not in refused.value.message
    return refused.value


def create(provider: JdbcCatalog, schema: str, name: str = "t") -> Remote:
    asked = CreateTableRequest.model_validate({"name": name, "columns": [{"name": "id", "type": "long"}]})
    definition = JdbcTables(provider).draft(Remote(schema, {}), asked).definition
    return JdbcTables(provider).create([schema], name, definition, marker=own_name("marker"))


@pytest.fixture
def schema(provider: Make) -> Callable[[str], str]:
    def make(system: str) -> str:
        name = own_name("cut")
        run(provider(system), f"CREATE SCHEMA {name}")
        return name

    return make


def is_encrypted(provider: JdbcCatalog) -> bool:
    with provider.reading(ABOUT) as session:
        if provider.dialect.word == "mysql":
            return bool(session.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[0][1])
        return bool(session.raw.pgconn.ssl_in_use)


def run(provider: JdbcCatalog, *statements: str) -> None:
    """As the account, without a transaction."""
    with provider.opened(ABOUT, writes=True) as session:
        for statement in statements:
            session.run(statement)
        session.commit()


class TestServersThatAreNone:
    @pytest.fixture(autouse=True)
    def haste(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(mysql, "READ_SECONDS", 0.3)
        monkeypatch.setattr(postgresql, "CONNECT_SECONDS", 1)

    @each("system, talk", [
        *((system, talk) for system in ("mysql", "postgresql") for talk in NO_DATABASES),
        *(("mysql", impostors.mysql(plugin)) for plugin in (b"x", b"mysql_native_password")),
    ])  # fmt: skip
    def test_none_of_them_is_waited_for(self, provider: Make, system: str, talk: Talk) -> None:
        started = time.monotonic()
        with listening(talk) as (port, _):
            assert "did not answer, or is another product" in refusal(provider(system, port)).message
        assert time.monotonic() - started < 4

    def test_one_is_not_the_other(self, provider: Make) -> None:
        for system, other in (("postgresql", "mysql"), ("mysql", "postgresql")):
            at = provider(other).login.endpoint.port
            assert "did not answer, or is another product" in refusal(provider(system, at)).message

    @each(
        "plugin, answers",
        [
            (b"mysql_native_password", [b"\xfemysql_clear_password\0" + b"s" * 20]),
            (b"mysql_native_password", [b"\xfedialog\0\x04Password: "]),
            (b"mysql_clear_password", [b"\x01"]),
            (b"caching_sha2_password", [b"\x01\x04", b"\x01-----BEGIN PUBLIC KEY-----\n"]),
            (b"mysql_native_password", [b"\xfecaching_sha2_password\0" + b"s" * 20, b"\x01\x04"]),
            (b"sha256_password", [b"\x01-----BEGIN PUBLIC KEY-----\n"]),
            (b"mysql_native_password", [b"\xfesha256_password\0" + b"s" * 20]),
        ],
    )
    def test_a_rogue_mysql_gets_no_password(self, provider: Make, plugin: bytes, answers: list[bytes]) -> None:
        with listening(impostors.mysql(plugin, *answers)) as (port, received):
            said = refusal(provider("mysql", port, jdbc_password=SECRET))
        assert "asks for the password in the clear" in said.message
        assert not said.retryable
        assert SECRET.encode() not in received
        assert b"\x01\x00\x00\x03\x02" not in received  # it asks for no key

    def test_a_rogue_mysql_gets_no_file(self, provider: Make, tmp_path: Path) -> None:
        (file := tmp_path / "file").write_text(SECRET)
        talk = impostors.mysql(b"mysql_native_password", OK, endless=b"\xfb" + str(file).encode())
        with listening(talk) as (port, received):
            refusal(provider("mysql", port))
        assert b"SET NAMES" in received
        assert SECRET.encode() not in received

    @each("code", [3, 7, 9])  # in the clear, GSSAPI, SSPI
    def test_a_rogue_postgresql_gets_no_password(self, provider: Make, code: int) -> None:
        with listening(impostors.postgresql(code)) as (port, received):
            assert "refused" in refusal(provider("postgresql", port)).message
        assert b"postgres" in received
        assert SECRET.encode() not in received


MODES = {
    "postgresql": ("sslmode=require", "sslmode=verify-full"),
    "mysql": ("sslMode=REQUIRED", "useSSL=true&verifyServerCertificate=true"),
}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a certificate for `localhost` that nobody signed, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command.split(), *names], check=True, capture_output=True, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def tls_mariadb(certificate: Path) -> Iterator[MariaDB]:
    own = [f"--ssl-cert={certificate / 'cert.pem'}", f"--ssl-key={certificate / 'key.pem'}"]
    own.append("--lower-case-table-names=1")  # for test_capitals_that_a_server_does_not_keep_are_refused
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mariadb_server, "OPTIONS", [*mariadb_server.OPTIONS, *own])
        with running_mariadb() as server:
            yield server


class TestTls:
    @pytest.fixture(params=["postgresql", "mysql"])
    def speaking(self, request: Any, provider: Make, certificate: Path) -> Iterator[Callable[..., JdbcCatalog]]:
        if request.param == "mysql":
            port = request.getfixturevalue("tls_mariadb").port
            yield lambda query="", **more: provider("mysql", port, query=query, **more)
            return
        own = provider("postgresql").login.endpoint.port
        with listening(impostors.with_tls(own, certificate)) as (port, _):
            yield lambda query="", **more: provider("postgresql", port, query=query, **more)

    def test_it_is_preferred_required_and_verified(self, speaking: Any, certificate: Path, monkeypatch: Any) -> None:
        system = speaking().dialect.word
        required, verified = MODES[system]
        assert is_encrypted(speaking())
        assert is_encrypted(speaking(required))
        assert not is_encrypted(speaking("sslmode=disable" if system == "postgresql" else "useSSL=false"))
        assert "its certificate is not valid" in refusal(speaking(verified, host="localhost")).message
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
        assert is_encrypted(speaking(verified, host="localhost"))
        assert "its certificate is not valid" in refusal(speaking(verified)).message  # which is of another name

    @BOTH
    def test_what_does_not_speak_it_is_refused_before_the_login(self, provider: Make, system: str) -> None:
        for query in MODES[system]:
            assert "does not speak the TLS" in refusal(provider(system, query=query)).message
        if system == "mysql":
            with listening(impostors.mysql(b"mysql_native_password")) as (port, received):
                refusal(provider(system, port, query=MODES[system][0]))
            assert not received


class TestAddresses:
    @BOTH
    def test_nothing_is_reached_that_the_operator_does_not_allow(self, provider: Make, system: str, settings: Any):
        settings.METALAKE_REMOTE_ALLOW = ()
        for act in (provider(system).check_locations, provider(system).test_connection):
            with pytest.raises(Invalid, match="METALAKE_REMOTE_ALLOW"):
                act()

    @BOTH
    def test_a_name_is_looked_up_once_for_each_connection(self, provider: Make, system: str, dns: Any) -> None:  # noqa: F811
        dns.leads("db.example", ["127.0.0.1"], ["127.0.0.1"], ["169.254.169.254"])
        named = provider(system, host="db.example")
        named.check_locations()
        named.test_connection()  # which no resolver but ours could find
        assert dns.asked == ["db.example"] * 2
        with pytest.raises(Invalid, match="leads to"):
            named.test_connection()

    def test_settings_of_the_environment_are_not_used(self, provider: Make, tmp_path: Path) -> None:
        (tmp_path / ".my.cnf").write_text("[client]\nport=1\npassword=x\nssl-ca=/nowhere\n")
        (tmp_path / ".pgpass").write_text("*:*:*:*:x\n")
        own = {"HOME": str(tmp_path), "PGHOST": "evil.example", "PGHOSTADDR": "169.254.169.254", "PGPORT": "1"}
        own |= {"PGOPTIONS": "-c statement_timeout=1 -c nothing=1", "PGSSLMODE": "verify-full", "PGUSER": "x"}
        own |= {"PGPASSWORD": "x", "PGDATABASE": "x", "PGSSLCERT": "/nowhere", "PGSSLKEY": "/nowhere"}
        own |= {"PGREQUIREAUTH": "gss", "PGCONNECT_TIMEOUT": "0", "PGCLIENTENCODING": "SQL_ASCII"}
        own |= {"PGSSLNEGOTIATION": "direct", "PGTARGETSESSIONATTRS": "standby", "PGSSLMINPROTOCOLVERSION": "TLSv9"}
        own |= {"PGSERVICE": "odd", "PGSERVICEFILE": str(tmp_path / "services")}
        (tmp_path / "services").write_text("[odd]\nload_balance_hosts=odd\nchannel_binding=require\noptions=-codd\n")
        with pytest.MonkeyPatch.context() as environment:
            for name, value in own.items():
                environment.setenv(name, value)
            for system in ("postgresql", "mysql"):
                provider(system).test_connection()

    def test_the_name_of_a_database_says_nothing_else(self, provider: Make) -> None:
        for database in ("postgres://evil.example/x", "x' host=evil.example", "host=evil.example", "x\\' port=1"):
            assert "no such database" in refusal(provider("postgresql", jdbc_database=database)).message
            assert "has no database" in refusal(provider("mysql", jdbc_database=database)).message


class TestCutConnections:
    @each("system, word, how, error, is_done", [
        *(("postgresql", word, {"after": after}, ProviderUnavailable, False)
          for word, after in (("CREATE TABLE", False), ("CREATE TABLE", True), ("COMMIT", False), ("advisory", True))),
        ("postgresql", "COMMIT", {"after": True}, None, True),  # it is asked what became of it
        ("postgresql", "COMMIT", {"after": True, "again": False}, OutcomeUnknown, True),  # nobody can be asked
        ("mysql", "GET_LOCK", {"after": True}, ProviderUnavailable, False),
        ("mysql", "CREATE TABLE", {"after": False}, OutcomeUnknown, False),
        ("mysql", "CREATE TABLE", {"after": True}, OutcomeUnknown, True),
    ])  # fmt: skip
    def test_what_is_said_of_a_write_and_what_was_done(
        self, provider: Make, schema: Any, system: str, word: str, how: Any, error: Any, is_done: bool
    ) -> None:
        whole, name = provider(system), schema(system)
        expected = pytest.raises(error) if error else nullcontext()
        with cutting(whole.login.endpoint.port, word, **how) as port, expected:
            create(provider(system, port), name)
        there = rows(whole, f"SELECT 1 FROM information_schema.tables WHERE table_schema = '{name}'")
        assert bool(there) is is_done

    def test_a_statement_that_was_not_sent_did_nothing(self, provider: Make, schema: Any) -> None:
        for system in ("postgresql", "mysql"):
            with pytest.raises(ProviderTimeout), until(time.monotonic() - 1):
                create(provider(system), schema(system))


class TestRights:
    def test_a_wrong_password_is_refused(self, provider: Make, postgres: PostgresServer) -> None:
        accounts = Path(postgres.execute("SHOW hba_file")[0][0])
        before, crew, plain = accounts.read_text(), own_name("crew"), own_name("plain")
        for account in (crew, plain):
            postgres.execute(f"CREATE ROLE {account} LOGIN PASSWORD '{SECRET}'")
        accounts.write_text(f"host all {crew} all scram-sha-256\nhost all {plain} all password\n{before}")
        postgres.execute("SELECT pg_reload_conf()")
        try:
            provider("postgresql", jdbc_user=crew).test_connection()
            wrong = [provider("postgresql", jdbc_user=crew, jdbc_password="another")]
            wrong += [provider("postgresql", jdbc_user=plain)]  # it would be sent in the clear
            for each_ in [*wrong, provider("mysql", jdbc_password=SECRET)]:
                said = refusal(each_)
                assert "refused jdbc-user and jdbc-password" in said.message
                assert not said.retryable
        finally:
            accounts.write_text(before)
            postgres.execute("SELECT pg_reload_conf()")

    @BOTH
    def test_an_account_with_half_of_them_creates_nothing(self, provider: Make, schema: Any, system: str) -> None:
        owner, name, account = provider(system), schema(system), own_name("crew")
        if system == "mysql":
            run(owner, f"CREATE USER {account} IDENTIFIED BY '{SECRET}'", f"GRANT INSERT ON {name}.* TO {account}")
        else:
            run(owner, f"CREATE ROLE {account} LOGIN")
        run(owner, f"CREATE TABLE {name}.kept (id int)", f"CREATE VIEW {name}.v AS SELECT id FROM {name}.kept")
        half = provider(system, jdbc_user=account, jdbc_password=SECRET)
        half.test_connection()
        loaded = JdbcTables(half).load([name], "v").definition  # which it may not read
        assert [column["name"] for column in loaded["columns"]] == ["id"]
        for act in (lambda: create(half, name), lambda: JdbcTables(half).drop([name], "kept", _identity(owner, name))):
            with pytest.raises(ProviderUnavailable, match="The catalog's account may not do that") as refused:
                act()
            assert account not in refused.value.message
            assert not refused.value.retryable
        assert [each.name for each in JdbcTables(owner).list([name]).items] == ["kept", "v"]


def test_capitals_that_a_server_does_not_keep_are_refused(provider: Make, tls_mariadb: MariaDB) -> None:
    folding, name = provider("mysql", tls_mariadb.port), tls_mariadb.create_database()
    made = create(folding, name)
    for act in (
        lambda: JdbcSchemas(folding).create([name.upper()], {"comment": None}),
        lambda: create(folding, name, "T2"),
        lambda: JdbcTables(folding).rename([name], "t", [name], "T2", made.identity),
    ):
        with pytest.raises(Invalid, match=rf"lower_case_table_names=1\): write '{name}(\.t2)?'"):
            act()
    assert [each_.name for each_ in JdbcTables(folding).list([name]).items] == ["t"]


def _identity(provider: JdbcCatalog, schema: str) -> str:
    return JdbcTables(provider).load([schema], "kept").identity


class TestSessions:
    @BOTH
    def test_reads_change_nothing_and_end(self, provider: Make, schema: Any, system: str) -> None:
        reader, name = provider(system), schema(system)
        run(reader, f"CREATE TABLE {name}.t (id int)")
        for statement in (
            f"INSERT INTO {name}.t VALUES (1)",
            f"CREATE TABLE {name}.u (id int)",
            f"DROP TABLE {name}.t",
        ):
            with pytest.raises(MetalakeError), reader.reading(ABOUT) as session:
                session.run(statement)
        assert rows(reader, f"SELECT count(*) FROM {name}.t") == [(0,)]
        limit = "SELECT @@max_statement_time" if system == "mysql" else "SHOW statement_timeout"
        assert str(rows(reader, limit)[0][0]) in ("20.0", "20s")

    @BOTH
    def test_a_statement_that_is_silent_is_ended(self, provider: Make, monkeypatch: Any, system: str) -> None:
        monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.3)
        started = time.monotonic()
        with pytest.raises(ProviderUnavailable):
            rows(provider(system), "SELECT SLEEP(9)" if system == "mysql" else "SELECT pg_sleep(9)")
        assert time.monotonic() - started < 2

    @BOTH
    def test_an_answer_without_end_is_ended(self, provider: Make, settings: Any, system: str) -> None:
        settings.METALAKE_MAX_ANSWER = 100_000
        endless = ", generate_series(1, 10000000)" if system == "postgresql" else " FROM mysql.seq_1_to_10000000"
        started = time.monotonic()
        with pytest.raises(ProviderUnavailable, match="METALAKE_MAX_ANSWER"):
            rows(provider(system), f"SELECT repeat('x', 1000){endless}")
        assert time.monotonic() - started < 2

    def test_a_view_leaves_no_settings_behind(self, provider: Make, schema: Any) -> None:
        reader, name = provider("postgresql"), schema("postgresql")
        run(
            reader,
            f"CREATE FUNCTION {name}.f() RETURNS text LANGUAGE sql IMMUTABLE AS "
            "$$SELECT set_config('default_transaction_read_only', 'off', false)$$",
            f"CREATE VIEW {name}.v AS SELECT 1 AS id WHERE {name}.f() = 'off'",
        )
        assert JdbcTables(reader).load([name], "v").definition["columns"]
        assert rows(reader, "SHOW default_transaction_read_only") == [("on",)]

    def test_a_catalog_has_no_more_than_its_pool(self, provider: Make, monkeypatch: Any) -> None:
        monkeypatch.setattr(connections, "PATIENCE", 0.05)
        two = provider("postgresql", **{"jdbc.pool.max-size": "2"})
        with two.reading(ABOUT), two.reading(ABOUT):
            for more in (two.reading(ABOUT), two.opened(ABOUT)):
                with pytest.raises(ProviderBusy, match=r"All 2 connections .*jdbc\.pool\.max-size"), more:
                    pass
        with two.opened(ABOUT), two.opened(ABOUT):
            assert len(list(connections._idle)) == 0

    def test_few_are_idle_and_none_for_long(self, provider: Make, monkeypatch: Any) -> None:
        monkeypatch.setattr(connections, "_idle", IdleConnections[Session](most_each=8, seconds=0.4, most=3))
        reader = provider("postgresql")
        ours = "application_name = 'metalake' AND datname = current_database()"
        with ExitStack() as stack:
            for _ in range(5):
                stack.enter_context(reader.reading(ABOUT))
        assert len(list(connections._idle)) == 3
        time.sleep(0.9)
        assert len(list(connections._idle)) == 0
        assert rows(reader, f"SELECT count(*) FROM pg_stat_activity WHERE {ours}") == [(1,)]
