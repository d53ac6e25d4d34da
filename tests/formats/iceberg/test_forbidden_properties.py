"""Keys by which a table's properties would choose a class, an endpoint or a key for the server."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pyarrow
import pyiceberg
import pytest

from formats.iceberg.forbidden_properties import MAX_KEYS, check_key, check_properties, loads_class
from formats.iceberg.storage import file_io
from formats.iceberg.table_locations import PATH_PROPERTIES
from metalake.errors import Invalid, TooLarge
from providers.network.storage import open_remote
from tests.cases import each
from tests.formats.iceberg.folder_catalog import FolderCatalog

# Every property pyiceberg reads by name falls under one of these; test_every_constant_is_classified keeps it so.
TABLE_SETTINGS = ("write.", "commit.", "history.", "schema.name-mapping.", "read.", "gc.")
HARMLESS = {
    # what a table or schema may say about itself
    "comment", "owner", "location", "format-version", "metadata_location", "previous_metadata_location", "table_type",
    "EXTERNAL", "EXTERNAL_TABLE", "Description",
    # a catalog's own, with no meaning in a table and no credential, endpoint or class in them
    "type", "prefix", "scope", "audience", "resource", "namespace-separator", "rest-page-size", "scan-planning-mode",
    "snapshot-loading-mode", "view-endpoints-supported", "table-name", "buffer-size", "max-workers",
    "lock-check-min-wait-time", "lock-check-max-wait-time", "lock-check-retries", "DO_NOT_UPDATE_STATS",
    "hive.kerberos-authentication", "hive.kerberos-service-name", "hive.hive2-compatible", "legacy-current-snapshot-id",
    "downcast-ns-timestamp-to-us-on-write", "manifest-cache-size", "echo", "pool_pre_ping", "init_catalog_tables",
    "schema_version",
}  # fmt: skip


NOT_PROPERTIES = {
    "in-memory", "vended-credentials", "namespace-identifier", "copy-on-write", "merge-on-read", "20.0.0",
    "iceberg.field.id", "iceberg.field.optional", "iceberg.field.current",
}  # fmt: skip


def modules_that_read_configuration() -> list[Path]:
    package = Path(pyiceberg.__file__).parent
    named = [package / "table" / name for name in ("__init__.py", "locations.py")]
    return named + [path for folder in ("catalog", "io", "utils") for path in sorted((package / folder).rglob("*.py"))]


def property_constants() -> dict[str, str]:
    """Names in capitals bound to a text that looks like a property key."""
    found = {}
    for path in modules_that_read_configuration():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                name, value = getattr(node.targets[0], "id", ""), node.value.value
                if name.isupper() and isinstance(value, str) and re.fullmatch(r"[a-z0-9]+([.-][a-z0-9._-]+)+", value):
                    found[f"{path}:{name}"] = value
    return {name: value for name, value in found.items() if not name.endswith("_DEFAULT")}


def read_by_name() -> set[str]:
    """Texts given to `properties.get(...)` and its like, so that keys without a constant are seen as well."""
    found = set()
    for path in modules_that_read_configuration():
        found |= set(re.findall(r"properties(?:\.get\(|\[)\s*f?\"([^\"{}]+)\"", path.read_text()))
    return found


CONSTANTS = property_constants()


def test_the_enumeration_sees_the_library():
    assert len(CONSTANTS) >= 100
    well_known = {"py-io-impl", "py-catalog-impl", "write.py-location-provider.impl", "s3.endpoint"}
    assert well_known <= set(CONSTANTS.values())


@pytest.mark.parametrize("key", sorted({key for key in CONSTANTS.values() if "impl" in key.split(".")[-1].split("-")}))
def test_class_loading_constants_are_refused(key):
    with pytest.raises(Invalid, match=re.escape(key)):
        check_properties({key: "os.path"})


ACCESS = re.compile(
    r"^(s3|gcs|adls|hdfs|hf|oss|client|glue|dynamodb|gcp|rest|header|auth|oauth2)\b[.-]|token|secret|credential|\buri\b|\bendpoint\b"
)


@each("key", sorted({key for key in CONSTANTS.values() if ACCESS.search(key)} - NOT_PROPERTIES - {"rest-page-size"}))
def test_storage_and_credential_constants_are_refused(key):
    with pytest.raises(Invalid, match=re.escape(key)):
        check_properties({key: "anything"})


@each("key", sorted(set(CONSTANTS.values()) | read_by_name()))
def test_every_constant_is_classified(key):
    """A new version of pyiceberg with a new key must be looked at before it is allowed."""
    if key.startswith(TABLE_SETTINGS) and not loads_class(key):
        check_key(key)
    elif key in HARMLESS or key in NOT_PROPERTIES:
        return
    else:
        with pytest.raises(Invalid):
            check_key(key)


@pytest.mark.parametrize("key", ["py-io-impl", "write.py-location-provider.impl"])
def test_why_classes_are_refused(key, tmp_path, monkeypatch):
    """Without the guard a user's table has any class on the server's path called, in the server."""
    program = "called = []\nclass Planted:\n    def __init__(self, *given): called.append(given)\n"
    (tmp_path / "planted_by_a_user.py").write_text(program)
    monkeypatch.syspath_prepend(str(tmp_path))
    properties = {key: "planted_by_a_user.Planted"}
    with pytest.raises(AttributeError):  # pyiceberg took it, and only then found it cannot do the work
        FolderCatalog("folder", warehouse=f"file://{tmp_path}").create_table(
            "a.b", pyarrow.schema([("id", pyarrow.int64())]), properties=properties
        )
    assert sys.modules.pop("planted_by_a_user").called
    with pytest.raises(Invalid):
        check_properties(properties)
    open_remote(file_io(properties).properties, "gs", False)
    assert "planted_by_a_user" not in sys.modules


@each(
    "key",
    [
        "io-impl", "catalog-impl", "lock-impl", "metrics-reporter-impl", "auth.impl", "write.location-provider.impl",
        "encryption.kms-impl", "rest.auth.impl", "s3.client-factory-impl", "gcs.token-provider-impl", "lock.impl.x",
        "PY-IO-IMPL", "Py-Io-Impl", "py_io_impl", "py.io.impl", "pyIoImpl", "write.py_location_provider.impl",
        "gravitino.bypass.io-impl", "anything.impl", "py-io-\uff49mpl",
    ],
)  # fmt: skip
def test_class_loading_keys_in_any_spelling(key):
    assert loads_class(key)
    with pytest.raises(Invalid):
        check_properties({key: "os.path"})


@each(
    "key",
    [
        "uri", "URI", "token", "Token", "credential", "warehouse", "auth", "auth.manager", "auth.type",
        "botocore_session",
        "ugi", "DEFAULT_SCHEME", "DEFAULT_NETLOC", "default-scheme", "oauth2-server-uri", "OAUTH2_SERVER_URI",
        "s3.endpoint", "S3.Endpoint", "s3__endpoint", "s3.access_key_id", "s3.signer.uri", "client.factory",
        "client.credentials-provider", "client.refresh-credentials-endpoint", "http-client.proxy-endpoint",
        "header.Authorization", "HEADER.x", "rest.sigv4-enabled", "jdbc.password", "gcs.service.host",
        "adls.sas-token.x",
        "hdfs.user", "oss.endpoint", "hf.token", "glue.id", "dynamodb.region", "gcp.bigquery.project-id",
        "ssl.cabundle",
        "fs.s3a.endpoint", "hadoop.security.x", "kms.endpoint", "signer.uri", "hive.metastore.uris", "storage_handler",
        "gravitino.bypass.anything", "token-refresh-enabled",
    ],
)  # fmt: skip
def test_access_keys_in_any_spelling(key):
    with pytest.raises(Invalid, match="catalog"):
        check_properties({key: "x"})


@each(
    "key",
    [
        *PATH_PROPERTIES, "comment", "owner", "location", "write.format.default", "write.metadata.compression-codec",
        "commit.retry.num-retries", "history.expire.max-snapshot-age-ms", "gc.enabled", "engine.hive.enabled",
        "hive.metastore.table.owner", "encryption.key-id", "tags", "s3", "s3-archive", "client-name", "header-rows",
        "implementation", "simple", "uri-of-docs", "a key with spaces", "ключ", "read.split.target-size",
        "my.s3.endpoint",
        "write.parquet.bloom-filter-enabled.column.s3.endpoint", "trino.stats.ndv.1.ppm", "k" * 1_024,
    ],
)  # fmt: skip
def test_any_other_key_is_kept(key):
    check_properties({key: "value"})


@each("key", ["", " ", "a\n", "a\0b", " a", "a ", "\u200ba", "a\u202eb", "a\x1fb", "a\xa0b", "\ud800"])
def test_malformed_keys(key):
    with pytest.raises(Invalid):
        check_properties({key: "x"})


@each("value", [None, 1, True, 1.5, [], {}, b"x", "\ud800"])
def test_values_are_text(value):
    with pytest.raises(Invalid, match="'a'"):
        check_properties({"a": value})


@pytest.mark.parametrize("more,fits", [(-1, True), (0, True), (1, False)])
def test_limits(more, fits):
    for properties in (
        {str(number): "" for number in range(MAX_KEYS + more)},
        {"a": "x" * (64 * 1024 + more)},
        {"a": "é" * (32 * 1024) + "x" * max(0, more)},
        {"k" * (1_024 + more): "x"},
    ):
        if fits:
            check_properties(properties)
        else:
            with pytest.raises(TooLarge):
                check_properties(properties)


def test_the_value_is_not_repeated():
    with pytest.raises(Invalid) as caught:
        check_properties({"s3.secret-access-key": "hunter2"})
    assert "hunter2" not in caught.value.message
