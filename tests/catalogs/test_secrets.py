"""What is masked, whatever its spelling, and what is not."""

from __future__ import annotations

import base64
import json
import time

from catalogs.secrets import MASK, is_secret, mask
from providers.registry import PROVIDERS, provider_class
from tests.cases import each

SECRET_KEYS = [
    "password", "PASSWORD", "jdbc-password", "jdbc.password", "jdbc_password", "jdbcPassword", "JDBC.PASSWORD",
    "gravitino.bypass.password", "gravitino.bypass.s3.secret-access-key", "passwd", "db-pwd", "userPwd",
    "key-passphrase",
    "secret", "client-secret", "clientSecret", "client_secret", "s3.secret-access-key", "fs.s3a.secret.key",
    "s3.access-key-id", "s3-access-key-id", "s3AccessKeyId", "fs.s3a.access.key", "AWS_ACCESS_KEY_ID",
    "token", "s3.session-token", "gcs.oauth2.token", "sessionToken", "adls.sas-token", "oauth2-token-exchange",
    "credential", "credentials", "gcp.bigquery.credentials-info", "credential-providers", "serviceAccountCredential",
    "private-key", "privateKey", "ssl.private_key", "snowflake.private.key",
    "adls.account-key", "azure-storage-account-key", "fs.azure.account.key.acme.dfs.core.windows.net",
    "adls.auth.shared-key.account.key", "fs.azure.sas.box.acme", "adls.connection-string", "apiKey", "x-api-key",
    "header.Authorization", "header.Cookie", "s3.sse.key", "encryption-key", "ugi", "hdfs.kerberos_ticket",
    "webhook", "alerts.webhook-url", "slackWebhook", "client.assertion", "client_assertion", "oauth2.clientAssertion",
    "bearer", "auth.header", "authHeader", "auth-key", "basic.auth.user.info", "http.basic-auth", "cookie-value",
    "ssh_key",
    "ssh.keys", "pem", "client.pem", "cert.key", "tls-key", "client.key", "sse.customer-key", "id.rsa.key", "hmac",
    "hmac.sha",
    "request.signature", "kafka.sasl.jaas.config", "kerberos.keytab-uri", "shared-access-policy", "db.connStr", "dsn",
    "pin",
    "creds", "db.cred", "pw", "tls.psk", "github.pat", "jwt", "x.sig", "privkey", "rsa.private", "door-passcode",
    "host.ssh_key", "signing.key", "session.cookie", "cookies", "auth.cookie.secret.name", "x-amz-signature", "hsm.pin",
]  # fmt: skip

PUBLIC_KEYS = [
    "comment", "owner", "location", "warehouse", "uri", "jdbc-url", "jdbc-driver", "jdbc-user", "s3.region",
    "s3.endpoint",
    "write.parquet.compression-codec", "write.metadata.path", "format-version", "bypass", "compass", "passenger-count",
    "key", "primary-key", "partition-keys", "encryption.key-id", "s3.sse-kms-key-id", "keyboard", "sasquatch", "monkey",
    "write.metadata.metrics.column.id", "authentication.type", "author", "client.region", "spwder",
    "hook", "assertion-mode", "client-asserted",
    "gravitino.bypass.hive.metastore.client.socket.timeout", "gravitino.bypass.hive.metastore.warehouse.dir",
    "s3.path-style-access", "s3.signer", "s3.signer.uri", "s3.remote-signing-enabled", "fs.s3a.signing-algorithm",
    "partition.keys", "sort-key", "row.key", "foreign-key", "distribution.keys", "default-table-format",
    "list-all-tables",
    "write.parquet.bloom-filter-enabled.column.token", "write.metadata.metrics.column.client_key", "pinned", "spinner",
    "client.pool-size", "cache-enabled", "io-impl", "catalog-backend", "design", "pattern", "headers", "certificate",
    "gcs.project-id", "impersonation-enable", "authentication.impersonation-enable", "rest.auth.type",
    "hive.exec.pre.hooks", "sort.signature", "is.private", "access.private", "cookie.domain", "cookie-max-age",
    "geo.pin", "s3.delete.tags.pin", "host.key", "service.key", "customer.key", "customer-keys",
    "transient_lastDdlTime", "spark.sql.sources.schema.part.0", "totalSize", "serialization.format", "field.delim",
    *(
        name
        for provider in PROVIDERS
        for name, secret in provider_class(provider).settings.declares_secret().items()
        if not secret
    ),
]  # fmt: skip

JWT = ".".join(
    base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
    for part in ({"alg": "HS256"}, {"sub": "x"}, "signature")
)
SECRET_VALUES = [
    "https://user:hunter2@host/path", "jdbc:mysql://root:pw@db:3306/x", "mongodb://:pw@db", "see ftp://a:b@c for it",
    "-----BEGIN PRIVATE KEY-----\nMIIE", "-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN CERTIFICATE-----",
    '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE"}', JWT, f"jwt {JWT}", f"Bearer {JWT}", "Bearer abc",
    "basic dTpw",
    "AKIAIOSFODNN7EXAMPLE", "key=ASIAIOSFODNN7EXAMPLE", "jdbc:postgresql://db/x?user=a&password=b", "a;Password=b",
    "DefaultEndpointsProtocol=https;AccountKey=abc", "https://a.blob.core.windows.net/c?sv=1&sig=abc",
    "https://b.s3.amazonaws.com/k?X-Amz-Signature=abc", "token=abc",
    "jdbc:sqlserver://db;passwd=b", "jdbc:oracle:thin:scott/tiger@db:1521:x", "X-Key: Bearer 0123456789abcdefghij",
    '{"user": "a", "password" : "b"}', "{'x': 1, \"api_key\":\"b\"}", "host=db pass=b", "api-key=1", "private_key=1",
    "PuTTY-User-Key-File-3: ssh-ed25519", "https://hooks.slack.com/services/T0/B0/x", "ghp_0123456789abcdef",
    "use glpat-0123456789abcdef", "xoxb-0123456789-abc", "AIza0123456789abcdef", "dapi0123456789abcdef0123456789abcdef",
]  # fmt: skip
PUBLIC_VALUES = [
    "", "a comment", "https://host:443/path", "jdbc:mysql://db:3306/x", "abfss://box@acme.dfs.core.windows.net/t",
    "mail me: a@b.example", "http://host/a:b@c", "hdfs://nn:8020/user@x", "1.2.3", "eyJ", "basic", "bearer of news",
    "akiaiosfodnn7example", "the password is set elsewhere", "design=modern", "zstd", "2024-01-01T00:00:00",
    "123e4567-e89b-12d3-a456-426614174000", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    '{"name":"token","type":"string"}', "bypass=1", "arn:aws:kms:eu-west-1:123456789012:key/abc",
    "a basic characteristic",
]  # fmt: skip


@each("key", SECRET_KEYS)
def test_secret_by_name(key):
    assert is_secret(key, "plain")


@each("key", PUBLIC_KEYS)
def test_public_by_name(key):
    assert not is_secret(key, "plain")


@each("value", SECRET_VALUES)
def test_secret_by_form(value):
    assert is_secret("comment", value)


@each("value", PUBLIC_VALUES[:11] + PUBLIC_VALUES[12:])
def test_public_by_form(value):
    assert not is_secret("comment", value)


def test_in_doubt_it_is_a_secret():
    assert is_secret("comment", "bearer of news")
    assert is_secret("tokenizer", "standard")


def test_what_a_provider_declares_is_secret():
    assert is_secret("hostname", "db", declared={"hostname": True})
    assert not is_secret("hostname", "db")
    assert not is_secret("token-url", "https://issuer.example", declared={"token-url": False})
    assert is_secret("token-url", "https://u:p@issuer.example", declared={"token-url": False})


def test_the_mask_shows_that_a_secret_is_set_and_changes_nothing_else():
    properties = {"uri": "http://x", "password": "hunter2", "empty-secret": "", "comment": "https://u:p@h", "port": "1"}
    shown = mask(properties, declared={"port": True})
    assert shown == {"uri": "http://x", "password": MASK, "empty-secret": MASK, "comment": MASK, "port": MASK}
    assert MASK == "******"
    assert properties["password"] == "hunter2"


@each(
    "value",
    ["://" * 20_000, "://a:" * 13_000, "eyJ" * 20_000, "eyJa." * 13_000, "-----BEGIN " * 6_000, "A" * 65_000,
     "AKIA" * 16_000, " " * 65_000, "password" * 8_000, "jdbc:oracle:a:" * 4_600, "Bearer " + "a-" * 32_000,
     'token"' * 10_000, "xoxb-" * 13_000, "token=" * 10_000 + " ", "://" + ":" * 65_000],
)  # fmt: skip
def test_a_hostile_value_is_read_in_linear_time(value):
    start = time.thread_time()
    is_secret("comment", value)
    assert time.thread_time() - start < 0.5
