"""Trino's catalog files, by version: which connector, which keys, and what is refused."""

from __future__ import annotations

import pytest

from metalake_client.engines import trino
from metalake_client.engines.catalogs import MASK, EngineCatalog
from metalake_client.engines.rendered import Rendered
from metalake_client.failures import Exit, Failure
from tests.cases import each
from tests.metalake_client.engines.catalogs import ALL, METALAKE, URL, glue, hive, lake, on_s3

VERSIONS = (435, 457, 458, 463, 476, 477, 481, 482, 483, 484)

REST = {
    "connector.name",
    "iceberg.catalog.type",
    "iceberg.rest-catalog.uri",
    "iceberg.rest-catalog.warehouse",
    "iceberg.unique-table-location",
    "iceberg.rest-catalog.security",
    "iceberg.rest-catalog.oauth2.token",
}
HIVE = {"connector.name", "hive.metastore.uri", "hive.iceberg-catalog-name"}
GLUE = {"connector.name", "hive.metastore"} | {
    f"hive.metastore.glue.{key}"
    for key in (
        *("region", "catalogid", "endpoint-url", "aws-access-key", "aws-secret-key", "iam-role", "external-id"),
        *("sts.endpoint", "default-warehouse-dir"),
    )
}
S3 = {"aws-access-key", "aws-secret-key", "iam-role", "external-id", "endpoint", "region", "path-style-access"}


def documented(version: int, connector: str) -> set[str]:
    """The keys of a connector in Trino's documentation of a version, as far as they are of use here."""
    keys = {"iceberg": REST, "hive": HIVE | GLUE, "lakehouse": GLUE | {"lakehouse.table-type"}}[connector]
    if connector == "iceberg" and version >= 463:  # release 463: nested namespaces with the REST catalog
        keys = keys | {"iceberg.rest-catalog.nested-namespace-enabled"}
    if version < 458:  # release 458: the legacy file systems are there no more unless they are switched on
        return keys | {f"hive.s3.{key}" for key in S3}
    native = "" if version >= 482 else "native-"
    switches = {"fs.hadoop.enabled", "local.location"} | {f"fs.{native}{kind}.enabled" for kind in ("s3", "local")}
    auth = {"s3.auth-type"} if version >= 483 else set()
    return keys | switches | {f"s3.{key}" for key in S3} | auth


def settings_of(rendered: Rendered, name: str) -> dict[str, str]:
    lines = rendered.files[f"{name}.properties"].splitlines()
    assert lines[0].startswith("# Written by gcli engine config trino for metalake demo at http://127.0.0.1:8090 (")
    return dict(line.split("=", 1) for line in lines[1:])


def render(*catalogs: EngineCatalog, version: int = 476) -> Rendered:
    return trino.render(URL, METALAKE, catalogs, version=version)


def test_an_iceberg_catalog() -> None:
    made = settings_of(render(lake()), "lake")
    assert made == {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": "http://127.0.0.1:8090/iceberg/demo",
        "iceberg.rest-catalog.warehouse": "lake",
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
        "iceberg.unique-table-location": "true",
        "iceberg.rest-catalog.security": "OAUTH2",
        "iceberg.rest-catalog.oauth2.token": "${ENV:METALAKE_TOKEN}",
        "fs.hadoop.enabled": "true",
    }
    assert "iceberg.rest-catalog.nested-namespace-enabled" not in settings_of(render(lake(), version=462), "lake")


def test_glue_is_a_catalog_of_the_lakehouse_connector() -> None:
    """As the design of the Glue catalog maps it, section 6.1."""
    keys = {"aws-access-key-id": MASK, "aws-secret-access-key": MASK, "aws-glue-endpoint": "http://localhost:4566"}
    made = render(glue(aws_glue_catalog_id="123456789012", **keys), version=477)
    given = settings_of(made, "my_glue")
    assert {key: value for key, value in given.items() if not key.startswith(("fs.", "s3."))} == {
        "connector.name": "lakehouse",
        "hive.metastore": "glue",
        "hive.metastore.glue.region": "us-east-1",
        "hive.metastore.glue.catalogid": "123456789012",
        "hive.metastore.glue.endpoint-url": "http://localhost:4566",
        "hive.metastore.glue.aws-access-key": "${ENV:METALAKE_MY_GLUE_AWS_ACCESS_KEY_ID}",
        "hive.metastore.glue.aws-secret-key": "${ENV:METALAKE_MY_GLUE_AWS_SECRET_ACCESS_KEY}",
    }
    assert given.items() >= {"fs.native-s3.enabled": "true", "s3.region": "us-east-1"}.items()
    assert settings_of(made, "my_glue_iceberg")["connector.name"] == "iceberg"
    assert any("METALAKE_MY_GLUE_AWS_ACCESS_KEY_ID" in note for note in made.notes)


def test_glue_without_keys_takes_those_of_the_machine() -> None:
    given = settings_of(render(glue(default_table_format="hive"), version=484), "my_glue")
    assert given == {
        "connector.name": "lakehouse",
        "hive.metastore": "glue",
        "hive.metastore.glue.region": "us-east-1",
        "lakehouse.table-type": "HIVE",
        "fs.s3.enabled": "true",
        "s3.region": "us-east-1",
    }


@pytest.mark.parametrize("version", [435, 476])
def test_glue_in_an_older_trino_needs_a_filter(version: int) -> None:
    refused = render(glue(), lake(), version=version)
    assert set(refused.files) == {"lake.properties"}
    assert "table-type-filter=hive" in refused.refused["my_glue"] and "477" in refused.refused["my_glue"]
    for word in ("table_type_filter", "table_format_filter"):
        made = render(glue(**{word: " Hive "}), version=version)
        assert set(made.files) == {"my_glue.properties"} and not made.refused
        assert settings_of(made, "my_glue")["connector.name"] == "hive"
    assert render(glue(table_type_filter="hive,iceberg"), version=version).refused


def test_hive_and_its_iceberg_tables() -> None:
    made = render(hive())
    assert settings_of(made, "hms") == {
        "connector.name": "hive",
        "hive.metastore.uri": "thrift://one:9083,thrift://two:9083",
        "hive.iceberg-catalog-name": "hms_iceberg",
        "fs.hadoop.enabled": "true",
    }
    assert settings_of(made, "hms_iceberg")["iceberg.rest-catalog.warehouse"] == "hms"
    nested = render(hive(**{"nested-namespaces": "true"}))
    assert "hive.iceberg-catalog-name" not in settings_of(nested, "hms")
    assert any("sales_x001f_emea" in note for note in nested.notes)
    assert set(render(hive(**{"list-all-tables": "false"})).files) == {"hms.properties"}


def test_hive_tables_in_local_folders_are_left_out_where_trino_finds_no_row_of_them() -> None:
    assert set(render(hive(), version=476).files) == {"hms.properties", "hms_iceberg.properties"}
    made = render(hive(), version=477)
    assert set(made.files) == {"hms_iceberg.properties"}
    assert any("its Hive tables are left out" in note and "hms_iceberg" in note for note in made.notes)
    assert "Take Trino 476" in render(hive(**{"list-all-tables": "false"}), version=477).refused["hms"]
    on_hdfs = render(hive(warehouse="hdfs://one/hive"), version=477)
    assert set(on_hdfs.files) == {"hms.properties", "hms_iceberg.properties"}


def test_storage_by_version() -> None:
    found = {
        version: {key for key in settings_of(render(on_s3(), version=version), "bucket") if "s3" in key}
        for version in (457, 481, 483)
    }
    names = {"endpoint", "region", "path-style-access", "aws-access-key", "aws-secret-key"}
    assert found[457] == {f"hive.s3.{name}" for name in names}
    assert found[481] == {f"s3.{name}" for name in names} | {"fs.native-s3.enabled"}
    assert found[483] == {f"s3.{name}" for name in names} | {"fs.s3.enabled"}
    local = settings_of(render(lake(), version=483), "lake")
    assert local.items() >= {"fs.local.enabled": "true", "local.location": "/"}.items()


@each("version", VERSIONS)
def test_every_key_is_documented(version: int) -> None:
    role = {"aws_role_arn": "arn:aws:iam::1:role/r", "aws_external_id": MASK, "warehouse": "s3://b/w"}
    some = [*ALL, glue("filtered", table_type_filter="hive"), glue("role", default_table_format="hive", **role)]
    for name, text in render(*some, version=version).files.items():
        given = dict(line.split("=", 1) for line in text.splitlines()[1:])
        assert set(given) <= documented(version, given["connector.name"]), name


def test_one_catalog_is_written_as_among_all() -> None:
    together = render(*ALL, version=477).files
    alone = [render(each, version=477).files for each in ALL]
    assert together == {name: text for files in alone for name, text in files.items()}


def test_names_that_fold_to_one_are_refused_by_both_names() -> None:
    with pytest.raises(Failure, match="Lake and lake") as refused:
        render(lake("Lake"), lake())
    assert refused.value.exit_code is Exit.CONFLICT
    with pytest.raises(Failure, match="hms and hms_iceberg"):
        render(hive(), lake("hms_iceberg"))
    with pytest.raises(Failure, match=r"a-b and a_b.*METALAKE_A_B_S3_ACCESS_KEY_ID"):
        render(on_s3("a-b"), on_s3("a_b"))


def test_names_that_trino_cannot_have() -> None:
    made = render(lake("a/b"), lake("System"), lake("Größe"))
    assert set(made.refused) == {"a/b", "System"} and set(made.files) == {"größe.properties"}
    assert settings_of(made, "größe")["iceberg.rest-catalog.warehouse"] == "Gr\\u00f6\\u00dfe"


@pytest.mark.parametrize(
    "value", ["http://evil/${ENV:AWS_SECRET_ACCESS_KEY}", "env:HOME", "http://a\nconnector.name=jmx"]
)
def test_a_property_may_not_take_what_the_engine_keeps(value: str) -> None:
    """A catalog's owner is not who runs the engine."""
    made = render(on_s3(**{"s3.endpoint": value}), lake())
    assert "s3.endpoint" in made.refused["bucket"] and set(made.files) == {"lake.properties"}


def test_others_are_refused() -> None:
    fileset = EngineCatalog(name="files", provider="hadoop", type="fileset")
    off = EngineCatalog(name="off", provider="hive", is_enabled=False)
    refused = render(fileset, off, lake(warehouse="ftp://h/x")).refused
    assert "Trino" in refused["files"] and "disabled" in refused["off"] and "ftp" in refused["lake"]
    with pytest.raises(Failure, match="435"):
        render(lake(), version=434)
    with pytest.raises(Failure, match="password") as wrong:
        trino.render("http://rita:secret@h", METALAKE, [lake()])
    assert "secret" not in str(wrong.value)


def test_temporary_keys_are_left_to_the_environment() -> None:
    keys = {f"aws_{name}": MASK for name in ("access_key_id", "secret_access_key", "session_token")}
    made = render(glue(**keys), version=477)
    assert "ENV:METALAKE_MY" not in "".join(made.files.values())
    assert any("temporary keys" in note for note in made.notes)
