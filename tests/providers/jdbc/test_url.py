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
    "", "/", "/sales", ":5432/sales", "?user=x", "//db.example/sales", "db.example:/sales", "db.example:0/sales",
    "db.example:65536/sales", "db.example:5432x/sales", "db.example:-1/sales", "db.example:{S}/sales",
    "db.example:5432:{S}/sales", "db.example,db2.example/sales", "db.example:5432,db2.example:5432/sales",
    "db.example,/sales", "(host=db.example,port=5432)/sales", "address=(host=db.example)(port=5432)/sales",
    "address=(protocol=tcp)(host=db.example)(password={S})/sales", "(address=(host=db.example))/sales",
    "[(host=db.example,user=x,password={S})]/sales", "[db.example,db2.example]/sales", "user:{S}@db.example/sales",
    "x@db.example/sales", "@db.example/sales", "user:{S}@[db.example]/sales", "(host=127.0.0.1)/sales",
    "%2Ftmp%2Fmysql.sock/sales", "/tmp/mysql.sock", "./sales", "localhost%2f/sales", "db%2eexample/sales",
    "db%252eexample/sales", "db.example/sales%00", "db.example/%2e%2e", "db.example/a b", "db.example/a/b",
    "db.example/sales/../x", "db.example/sales;user=x;password={S}", "db.example;password={S}/sales",
    "db.example/sales#{S}", "db.example/#", "db.example#{S}", "db.example/sales'", 'db.example/sa"les',
    "db.example/sa`les", "db.example/sa\\les", "db.example\\@evil/sales", "db.example/<x>", "db.example/{{x}}",
    "db.example/sales\r\nX: {S}", "db.example/sales\n", "\ndb.example/sales", "db.example\t/sales", "db.example/\x00",
    "db.example\x00.evil/sales", "db.example/sales\x7f", "db.example/sal\u00e9s", "db.example/sales\u202e",
    "db\u3002example/sales", "db.example/sales\u200b", "\uff44b.example/sales", "db.example/" + "a" * 65,
    "db.example/" + "a" * 3000, "db.example/dbname=x host=evil", "db.example/postgres://evil", "db.example/sales?",
    "db.example/sales??ssl=true", "db.example/sales&ssl=true",
]  # fmt: skip
REFUSED_FORMS = [form for form in FORMS if form != "db.example/sales?"]

PARAMETERS = [
    "user=x", "password={S}", "PASSWORD={S}", "PassWord={S}", "jdbc-password={S}", "username=x", "pass={S}", "{S}",
    "={S}", "&", "ssl=true&&ssl=true", "ssl=true&SSL=true", "ssl", "ssl=", "ssl=1", "ssl=yes", "sslmode={S}",
    "sslmode=verify-ca", "sslmode=disable&ssl=true", "sslMode=DISABLED&useSSL=true", "allowLoadLocalInfile=true",
    "ALLOWLOADLOCALINFILE=true", "allow%4CoadLocalInfile=true", "allow%254CoadLocalInfile=true", "useSSL=true&{S}",
    "allowLoadLocalInfileInPath=/", "allowUrlInLocalInfile=true", "allowMultiQueries=true", "autoDeserialize=true",
    "autodeserialize=yes", "queryInterceptors=com.mysql.cj.jdbc.interceptors.ServerStatusDiffInterceptor",
    "statementInterceptors=x", "connectionLifecycleInterceptors=x", "exceptionInterceptors=x",
    "detectCustomCollations=true",
    "socketFactory=org.springframework.context.support.ClassPathXmlApplicationContext", "SocketFactory=x",
    "socketFactoryArg=http://evil.example/x.xml", "sslfactory=x", "sslfactoryarg={S}", "sslhostnameverifier=x",
    "sslpasswordcallback=x", "sslpassword={S}", "sslkey=/etc/x", "sslcert=/etc/x", "sslrootcert=/etc/x",
    "authenticationPluginClassName=x", "authenticationPlugins=x", "defaultAuthenticationPlugin=x",
    "disabledAuthenticationPlugins=x", "loggerLevel=TRACE", "loggerFile=/srv/www/x.jsp", "logger=x",
    "propertiesTransform=x",
    "options=-c", "options=-c%20log_statement=all", "options=-csearch_path=evil", "host=evil.example",
    "hostaddr=127.0.0.1",
    "port=1", "dbname=evil", "service=x", "passfile=/etc/x", "PGHOST=evil.example", "targetServerType=any",
    "loadBalanceHosts=true", "localSocket=/tmp/mysql.sock", "pipe=x", "socksProxyHost=evil.example", "init_command=x",
    "initSQL=x", "sessionVariables=sql_mode=x", "connectionInitSql=x", "sessionvariables=x", "replicationMasterName=x",
    "trustCertificateKeyStoreUrl=file:/etc/passwd", "trustCertificateKeyStorePassword={S}",
    "clientCertificateKeyStoreUrl=http://evil.example", "serverRSAPublicKeyFile=/etc/passwd", "serverSslCert=x",
    "useConfigs=maxPerformance", "profilerEventHandler=x", "parseInfoCacheFactory=x", "gsslib=x", "jaasLogin=true",
    "kerberosServerName=x", "ApplicationName=a\tb", "ApplicationName=" + "a" * 129, "ApplicationName=%0a",
    "ApplicationName=x;password={S}", "ApplicationName=(x)", "useSSL =true", " useSSL=true", "use.SSL=true",
    "user%3Dx", "ssl=true;user=x", "ssl=true#user=x", "ssl=true?user=x", "ssl=true,user=x", "\u017fsl=true",
]  # fmt: skip

SUBPROTOCOLS = [
    "", "jdbc", "jdbc:", "postgresql://db.example/sales", "mysql://user:{S}@db.example/sales", "http://db.example/",
    "JDBC:postgresql://db.example/sales", "jdbc:PostgreSQL://db.example/sales", "Jdbc:MySQL://db.example/sales",
    "jdbc:postgres://db.example/sales", "jdbc:postgresql:sales", "jdbc:postgresql:/",
    "jdbc:postgresql:/db.example/sales",
    "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://evil.example/x.sql'", "jdbc:h2:tcp://db.example/~/x",
    "jdbc:sqlite:/etc/x",
    "jdbc:derby://db.example/x;create=true", "jdbc:hsqldb:hsql://db.example/x",
    "jdbc:oracle:thin:x/{S}@db.example:1521/x",
    "jdbc:sqlserver://db.example;password={S}", "jdbc:db2://db.example/x:clientRerouteServerListJNDIName=ldap://evil;",
    "jdbc:mysql:loadbalance://db.example/sales", "jdbc:mysql:replication://db.example/sales", "jdbc:mysql:fabric://x/y",
    "jdbc:mysql+srv://db.example/sales", "jdbc:mariadb:sequential:db.example/sales", "jdbc:mariadb:failover://x/y",
    "jdbc:mysqlx://db.example/sales", "mysqlx://db.example", "jdbc:mysql://", "jdbc:mysql:",
    "jdbc::mysql://db.example/",
    "jdbc:aws-wrapper:postgresql://db.example/x", "jdbc:log4jdbc:mysql://db.example/x",
    "jdbc:p6spy:mysql://db.example/x",
    "jdbc:otel:mysql://db.example/x", "jdbc:pgsql://db.example/x", "jdbc:redshift://db.example/x", "jdbc:iris://x/y",
    "jdbc:snowflake://db.example/?password={S}", "jndi:ldap://evil.example/x", "jdbc:jndi:ldap://evil.example/x",
    "jdbc:jdbc:mysql://db.example/x", " jdbc:mysql://db.example/x", "jdbc:mysql ://db.example/x",
    "jdbc:mysql:\\\\db\\x",
    "url=jdbc:mysql://db.example/x", "file:///etc/passwd", "jdbc:mysql:///sales", "jdbc:mysql://\x00",
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

    @each("form", REFUSED_FORMS)
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


class TestProperties:
    @each(
        "changes, named",
        [
            ({"jdbc-driver": "org.h2.Driver"}, "jdbc-driver"),
            ({"jdbc-driver": "com.mysql.cj.jdbc.Driver"}, "jdbc-driver"),
            ({"jdbc-driver": "org.postgresql.driver"}, "jdbc-driver"),
            ({"jdbc-driver": ""}, "jdbc-driver"),
            ({"jdbc-database": "other"}, "jdbc-database"),
            ({"jdbc-url": "jdbc:postgresql://db.example"}, "jdbc-database"),
            ({"jdbc-database": "x" * 65}, "jdbc-database"),
            ({"jdbc-user": ""}, "jdbc-user"),
            ({"jdbc-user": "x\0y"}, "login"),
            ({"jdbc-password": ""}, "jdbc-password"),
            ({"jdbc-password": f"{SECRET}\0"}, "login"),
            *(({"jdbc.pool.max-size": size}, "jdbc.pool.max-size") for size in
              ("0", "-1", "1001", "ten", "", "1e2", "0x10", "5.0", " 5", "9" * 99)),
            *(({"jdbc.pool.min-size": size}, "jdbc.pool.min-size") for size in ("-1", "ten", "NaN", "1 or 1")),
        ],
    )  # fmt: skip
    def test_one_that_is_wrong_is_named_and_not_repeated(self, changes: dict[str, str], named: str) -> None:
        with pytest.raises(Invalid, match=named) as refusal:
            PG.check(GIVEN | changes)
        assert SECRET not in refusal.value.message

    @each("missing", ["jdbc-url", "jdbc-user", "jdbc-password"])
    def test_one_that_is_missing_is_named(self, missing: str) -> None:
        with pytest.raises(Invalid, match=missing):
            PG.check({name: value for name, value in GIVEN.items() if name != missing})

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
