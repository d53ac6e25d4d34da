"""The catalogs of a metalake as settings of Spark: what each provider becomes, and what is said instead of done."""

from __future__ import annotations

import re
from typing import Any

import pytest

from metalake_client.engines.catalogs import MASK, EngineCatalog
from metalake_client.engines.spark import PROVIDERS, SparkConfig, is_secret, spark_settings
from metalake_client.engines.spark_pairs import PAIRS, pair_for, require_runtime
from metalake_client.engines.spark_storage import PROPERTIES
from metalake_client.failures import Failure

URL, CANARY = "https://metalake.example.org/", "canary-7c1f"
LAKE = EngineCatalog(name="lake", provider="lakehouse-iceberg", properties={"warehouse": "file:///lake"})
HIVE = EngineCatalog(name="hive", provider="hive", properties={"metastore.uris": "thrift://one:9083"})
OTHER = EngineCatalog(name="other", provider="hive", properties={"metastore.uris": "thrift://two:9083"})
GLUE = EngineCatalog(
    name="glue",
    provider="glue",
    properties={
        "aws-region": "eu-central-1",
        "aws-glue-catalog-id": "123456789012",
        "aws-glue-endpoint": "https://glue.example.org",
        "aws-access-key-id": MASK,
        "aws-secret-access-key": MASK,
        "nested-namespaces": "true",
    },
)
DATABASE = EngineCatalog(name="db", provider="jdbc-mysql", properties={"jdbc-url": "jdbc:mysql://h"})


def settings(*catalogs: EngineCatalog, spark: str = "4.1.4", **options: Any) -> SparkConfig:
    return spark_settings(URL, "de mo", catalogs, spark_version=spark, **options)


def of(config: SparkConfig, name: str) -> dict[str, str]:
    """The settings of one catalog, without their common beginning."""
    at = f"spark.sql.catalog.{name}"
    return {key.removeprefix(at).lstrip("."): value for key, value in config.settings.items() if key.startswith(at)}


def test_an_iceberg_catalog_is_reached_through_the_rest_wire() -> None:
    config = settings(LAKE)
    assert of(config, "lake") == {
        "": "org.apache.iceberg.spark.SparkCatalog",
        "type": "rest",
        "uri": "https://metalake.example.org/iceberg/de%20mo",
        "warehouse": "lake",
        "token": "env:METALAKE_TOKEN",
    }
    assert config.packages == ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",) and config.notes == []
    login = of(settings(LAKE, user="rita", password="p"), "lake")
    assert {key: value for key, value in login.items() if "auth" in key} == {
        "rest.auth.type": "basic",
        "rest.auth.basic.username": "rita",
        "rest.auth.basic.password": "p",
    }
    assert "token" not in login


def test_every_provider_of_the_server_is_known_and_another_is_told() -> None:
    from providers.registry import PROVIDERS as OF_THE_SERVER

    known = {"lakehouse-iceberg", "hive", "glue", "jdbc-postgresql", "jdbc-mysql"}
    assert PROVIDERS.keys() == known <= OF_THE_SERVER.keys()
    strange = EngineCatalog(name="p", provider="lakehouse-paimon")
    files = EngineCatalog(name="f", provider="hive", type="fileset")
    disabled = EngineCatalog(name="d", provider="hive", is_enabled=False)
    config = settings(LAKE, strange, files, disabled)
    assert [name for name in ("lake", "p", "f", "d") if of(config, name)] == ["lake"]
    assert [note.partition(": ")[0] for note in config.notes] == ["p", "f", "d"]
    assert "no support for its provider (lakehouse-paimon)" in config.notes[0]
    assert "fileset" in config.notes[1] and "disabled" in config.notes[2]


@pytest.mark.parametrize("value", ["env:AWS_SECRET_ACCESS_KEY", "http://evil/${env.HOME}", "http://a\nspark.jars=b"])
def test_a_value_in_which_spark_would_replace_a_part_becomes_no_setting(value: str) -> None:
    evil = EngineCatalog(name="evil", provider="lakehouse-iceberg", properties={"s3.endpoint": value})
    config = settings(LAKE, evil)
    assert [each.name for each in config.catalogs if each.settings] == ["lake"]
    assert value not in config.settings.values()
    (note,) = config.notes
    assert note.startswith("evil: it is not there.") and "s3.endpoint" in note


@pytest.mark.parametrize("name", ["spark_catalog", "Spark_Catalog", "GLOBAL_TEMP"])
def test_a_name_that_spark_keeps_for_itself_is_told(name: str) -> None:
    config = settings(LAKE, EngineCatalog(name=name, provider="lakehouse-iceberg"))
    assert of(config, name) == {} and of(config, "lake")
    (note,) = config.notes
    assert note.startswith(f"{name}: it is not there, since Spark keeps the name {name.lower()}")


def test_one_metastore_is_the_session_s_and_the_others_say_how_to_get_them() -> None:
    config = settings(HIVE, OTHER, hive_catalog="hive")
    assert config.settings["spark.sql.catalogImplementation"] == "hive"
    assert config.settings["spark.hadoop.hive.metastore.uris"] == "thrift://one:9083"
    assert of(config, "spark_catalog") == of(config, "hive") | {"": "org.apache.iceberg.spark.SparkSessionCatalog"}
    assert of(config, "other")["type"] == "rest"
    said = [note for note in config.notes if note.startswith("other: its tables that are not Iceberg's are not there")]
    assert len(said) == 1 and "hive_catalog='other'" in said[0] and "Spark 3.5" in said[0]
    assert "store's own rights" in config.catalogs[0].rights and "store's own" not in config.catalogs[1].rights


def test_hive_s_tables_are_there_by_the_same_name_where_spark_has_the_class_for_it() -> None:
    chosen = settings(HIVE, OTHER, hive_catalog="hive", mixed=True)
    assert of(chosen, "hive")[""] == of(chosen, "other")[""] == "io.metalake.spark.MixedCatalog"
    assert of(chosen, "hive")["mixed.hive"] == "session" and of(chosen, "other")["mixed.hive"] == "none"
    assert of(chosen, "hive")["mixed.tables"] == f"{URL}api/metalakes/de%20mo/catalogs/hive"
    assert "hive_catalog='other'" in of(chosen, "other")["mixed.message"]
    assert of(chosen, "spark_catalog") == of(chosen, "hive")

    both = settings(HIVE, OTHER, spark="3.5.4", mixed=True)
    assert [of(both, name)["mixed.kyuubi.hive.metastore.uris"] for name in ("hive", "other")] == [
        "thrift://one:9083",
        "thrift://two:9083",
    ]
    assert "org.apache.kyuubi:kyuubi-spark-connector-hive_2.12:1.9.0" in both.packages and both.notes == []
    assert both.settings["spark.hadoop.hive.metastore.uris"] == "thrift://one:9083"
    second = settings(HIVE, OTHER, spark="3.5.4", mixed=True, hive_catalog="other")
    assert second.settings["spark.hadoop.hive.metastore.uris"] == "thrift://two:9083"
    assert of(second, "hive")["mixed.hive"] == "kyuubi" and of(second, "other")["mixed.hive"] == "session"
    for without in ({"spark": "3.5.5"}, {"spark": "3.5.4", "kyuubi": False}):
        alone = settings(HIVE, mixed=True, **without)
        assert of(alone, "hive")["mixed.hive"] == "none" and len(alone.packages) == 1
        assert "Kyuubi's connector" in of(alone, "hive")["mixed.message"]


def test_glue_is_reached_through_metalake_or_itself() -> None:
    through = settings(GLUE)
    assert of(through, "glue")["type"] == "rest" and "Metalake's rights" in through.catalogs[0].rights
    keys = {"aws-access-key-id": "AKIA", "aws-secret-access-key": CANARY}
    itself = settings(GLUE, direct=["glue"], secrets={"glue": keys})
    assert of(itself, "glue") == {
        "": "org.apache.iceberg.spark.SparkCatalog",
        "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": "eu-central-1",
        "glue.id": "123456789012",
        "glue.endpoint": "https://glue.example.org",
        "s3.access-key-id": "AKIA",
        "s3.secret-access-key": CANARY,
    }
    assert "org.apache.iceberg:iceberg-aws-bundle:1.11.0" in itself.packages
    assert "Only the store's own rights" in itself.catalogs[0].rights
    assert any("sales_x001f_emea" in note for note in itself.notes)


def test_masked_secrets_are_the_caller_s_to_bring() -> None:
    without = settings(GLUE)
    assert without.catalogs[0].missing == ("aws-access-key-id", "aws-secret-access-key")
    assert any("secrets={'glue': {'aws-access-key-id': ...," in note for note in without.notes)
    assert MASK not in without.settings.values()
    brought = settings(GLUE, token=CANARY, secrets={"glue": dict.fromkeys(without.catalogs[0].missing, CANARY)})
    assert brought.catalogs[0].missing == ()
    assert CANARY not in brought.open.values() and set(brought.secret.values()) == {CANARY}
    assert CANARY not in repr(brought.notes)


def test_what_is_secret_is_what_spark_is_told_to_hide() -> None:
    config = settings(LAKE, token=CANARY)
    for key, value in config.settings.items():
        assert is_secret(key) == (value == CANARY) == bool(re.search(config.settings["spark.redaction.regex"], key))
    of_storages = {key for key in PROPERTIES.values() if re.search("key|secret|token", key) and "name" not in key}
    assert len(of_storages) == 5 and all(map(is_secret, of_storages))


def test_a_storage_of_its_own_is_told_to_iceberg() -> None:
    bucket = {"warehouse": "s3://lake/w", "s3.endpoint": "http://127.0.0.1:9000", "s3.region": "us-east-1"}
    config = settings(EngineCatalog(name="s3", provider="lakehouse-iceberg", properties=bucket))
    own = of(config, "s3")
    assert (own["s3.endpoint"], own["client.region"], own["s3.path-style-access"]) == (
        "http://127.0.0.1:9000",
        "us-east-1",
        "true",
    )
    assert config.packages[1:] == ("org.apache.iceberg:iceberg-aws-bundle:1.11.0",)
    azure = EngineCatalog(name="az", provider="lakehouse-iceberg", properties={"warehouse": "abfss://a@b/w"})
    assert settings(azure).packages[1:] == ("org.apache.iceberg:iceberg-azure-bundle:1.11.0",)


@pytest.mark.parametrize("spark", ["4.0.1", "4.2.0", "4.10.0", "3.4.4", "3.50.1", "4"])
def test_another_spark_is_refused_with_the_pairs_that_work(spark: str) -> None:
    with pytest.raises(Failure) as refused:
        settings(LAKE, spark=spark)
    for pair in PAIRS:
        assert f"pyspark {pair.spark} with {pair.iceberg}" in str(refused.value)


def test_jars_of_another_spark_are_refused_with_one_that_works() -> None:
    pair = pair_for("4.1.4")
    require_runtime(pair, ["x.jar", "iceberg-spark-runtime-4.1_2.13-1.11.0.jar"])
    for names in (["x.jar"], [], ["iceberg-spark-runtime-3.5_2.12-1.11.0.jar"]):
        with pytest.raises(Failure, match=r"iceberg-spark-runtime-4\.1_2\.13:1\.11\.0"):
            require_runtime(pair, names)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hive_catalog": "lake"}, "hive_catalog names a Hive catalog, and lake is none: those are hive."),
        ({"direct": ["nowhere"]}, "There is no catalog nowhere that you may use. There are db, glue, hive, lake."),
        ({"direct": ["lake"]}, "direct: lake is no Glue catalog"),
        ({"secrets": {"nowhere": {}}}, "There is no catalog nowhere"),
        ({"secrets": {"db": {"colour": CANARY}}}, "secrets of db: Spark has no use for colour."),
        ({"secrets": {"lake": {"colour": CANARY}}}, "secrets of lake: Spark has no use for colour."),
    ],
)
def test_an_option_that_names_nothing_is_one_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(Failure) as refused:
        settings(LAKE, HIVE, GLUE, DATABASE, **options)
    assert said in str(refused.value) and CANARY not in str(refused.value)
