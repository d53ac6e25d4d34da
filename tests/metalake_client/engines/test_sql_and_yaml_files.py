"""Flink's and DuckDB's SQL and PyIceberg's YAML as texts; other tests run them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from metalake_client.engines import duckdb, flink, pyiceberg
from metalake_client.engines.catalogs import MASK, EngineCatalog
from metalake_client.engines.rendered import Rendered
from metalake_client.failures import Failure
from tests.metalake_client.engines.catalogs import ALL, METALAKE, URL, glue, hive, lake, on_s3

PARENTS = {"lake": [["sales"], ["sales", "emea"], ["x.y"], ["x.y", "z"]]}
Render = Callable[..., Rendered]
RENDERS = [flink.render, duckdb.render, pyiceberg.render]


def flink_sql(*catalogs: EngineCatalog, **more: Any) -> str:
    return flink.render(URL, METALAKE, catalogs, **more).files["metalake.sql"]


def statements(sql: str) -> list[str]:
    lines = (line for line in sql.split("\n") if not line.startswith("--"))
    return [each.strip() for each in "\n".join(lines).split(";\n") if each.strip()]


def test_flink_has_a_catalog_for_each_schema_that_holds_others() -> None:
    made = flink.render(URL, METALAKE, [lake()], parents=PARENTS)
    top, sales, emea = statements(made.files["metalake.sql"])
    assert top == (
        "CREATE CATALOG IF NOT EXISTS `lake` WITH (\n  'type' = 'iceberg',\n  'catalog-type' = 'rest',\n"
        "  'uri' = 'http://127.0.0.1:8090/iceberg/demo',\n  'warehouse' = 'lake',\n  'token' = 'env:METALAKE_TOKEN'\n)"
    )
    assert "`lake.sales`" in sales and "'base-namespace' = 'sales'" in sales
    assert "`lake.sales.emea`" in emea and "'base-namespace' = 'sales.emea'" in emea
    assert sum("'x.y'" in note for note in made.notes) == 2


def test_flink_has_hive_through_a_folder_of_its_settings() -> None:
    made = flink.render(URL, METALAKE, [hive("a--b"), glue()], folder="/opt/flink/metalake/", version="1.20.1")
    hms, iceberg, aws = statements(made.files["metalake.sql"])
    assert "'type' = 'hive'" in hms and "'hive-conf-dir' = '/opt/flink/metalake/a--b'" in hms
    assert "`a--b_iceberg`" in iceberg and "'warehouse' = 'a--b'" in iceberg and "`my_glue`" in aws
    site = made.files["a--b/hive-site.xml"]
    assert made.mark in site.partition("\n")[0]
    assert [each.text for each in ET.fromstring(site).iter("value")] == ["thrift://one:9083,thrift://two:9083"]


def test_a_flink_without_a_connector_for_hive_has_all_other_catalogs() -> None:
    """One that cannot be made would end the file; what is left out is said in it."""
    none = hive("no_iceberg", **{"list-all-tables": "false"})
    made = flink.render(URL, METALAKE, [lake(), hive(), none], version="2.1.1")
    sql = made.files["metalake.sql"]
    assert set(made.files) == {"metalake.sql"} and set(made.refused) == {"no_iceberg"}
    assert [each.split("`")[1] for each in statements(sql)] == ["lake", "hms_iceberg"] and "'hive'" not in sql
    hint = "Flink 2.1.1 has no connector for Hive, --flink-version 1.20 is for one that has"
    for line in ("-- hms: its Hive tables are left out", "-- Left out: Catalog no_iceberg is not there"):
        assert f"\n{line}: {hint}.\n" in sql
    assert not any(";" in line for line in sql.splitlines() if line.startswith("--"))  # it would end a statement
    with pytest.raises(Failure, match="Flink two is no version"):
        flink.render(URL, METALAKE, [lake()], version="two")


def test_keys_of_a_catalog_without_places_are_for_all_of_s3() -> None:
    """DuckDB takes no empty scope, and what follows the statement would not be run."""
    keys = {"aws-access-key-id": MASK, "aws-secret-access-key": MASK}
    places = {"s3://a/b": "SCOPE 's3://a/b')", "s3://a,s3a://b": "SCOPE ['s3://a', 's3a://b'])"}
    for given, scope in places.items():
        named = EngineCatalog(name="g", provider="glue", properties=keys | {"allowed-locations": given})
        assert scope in duckdb.render(URL, METALAKE, [named]).files["metalake.sql"]
    made = duckdb.render(URL, METALAKE, [EngineCatalog(name="g", provider="glue", properties=keys)])
    assert "SECRET getenv('METALAKE_G_AWS_SECRET_ACCESS_KEY'));" in made.files["metalake.sql"]
    assert any("names no place" in note for note in made.notes)


def test_flink_refuses_what_it_cannot_have() -> None:
    made = flink.render(URL, METALAKE, [lake("default_catalog"), glue(table_type_filter="hive"), lake()])
    assert set(made.refused) == {"default_catalog", "my_glue"}


def test_a_catalog_of_s3_takes_its_keys_from_the_environment() -> None:
    sql = flink_sql(on_s3())
    assert "'s3.access-key-id' = 'env:METALAKE_BUCKET_S3_ACCESS_KEY_ID'" in sql
    assert "'s3.path-style-access' = 'true'" in sql
    attached = duckdb.render(URL, METALAKE, [on_s3()]).files["metalake.sql"]
    assert "SECRET getenv('METALAKE_BUCKET_S3_SECRET_ACCESS_KEY')" in attached and "USE_SSL false" in attached
    sh = pyiceberg.render(URL, METALAKE, [on_s3()]).files["pyiceberg.sh"]
    line = 'PYICEBERG_CATALOG__BUCKET__S3__SECRET_ACCESS_KEY="${METALAKE_BUCKET_S3_SECRET_ACCESS_KEY}"'
    assert f"export {line}\n" in sh


@pytest.mark.parametrize("render", RENDERS)
def test_one_catalog_is_written_as_among_all(render: Render) -> None:
    """A file for all has the lines of each."""
    together = render(URL, METALAKE, ALL).files
    for each in ALL:
        for name, text in render(URL, METALAKE, [each]).files.items():
            assert text.partition("\n")[2] in together[name] or all(
                line in together[name].splitlines() for line in text.splitlines()
            )


@pytest.mark.parametrize("render", RENDERS)
def test_no_file_has_a_secret_and_each_says_whose_it_is(render: Render) -> None:
    for text in render(URL, METALAKE, ALL).files.values():
        assert "******" not in text and "mlk_" not in text
        assert "Written by gcli engine config" in text.partition("\n")[0]


@pytest.mark.parametrize(
    ("render", "names"),
    [(duckdb.render, ("Lake", "lake")), (pyiceberg.render, ("my-lake", "my_lake")), (pyiceberg.render, ("A", "a"))],
)
def test_names_that_fold_to_one_are_refused_by_both_names(render: Render, names: tuple[str, str]) -> None:
    with pytest.raises(Failure, match=f"{names[0]} and {names[1]}"):
        render(URL, METALAKE, [lake(name) for name in names])


def test_names_that_an_engine_keeps() -> None:
    assert set(duckdb.render(URL, METALAKE, [lake("Memory"), lake("temp"), lake()]).refused) == {"Memory", "temp"}
    assert set(pyiceberg.render(URL, METALAKE, [lake("ж"), lake()]).refused) == {"ж"}


def test_what_shows_no_iceberg_tables_is_not_in_engines_that_read_no_others() -> None:
    none = [hive(**{"list-all-tables": "false"}), glue(table_type_filter="hive")]
    for render in (duckdb.render, pyiceberg.render):
        assert set(render(URL, METALAKE, none).refused) == {"hms", "my_glue"}


def test_pyiceberg_has_names_that_its_variables_can_say() -> None:
    made = pyiceberg.render(URL, METALAKE, [lake("My__Lake=1"), on_s3()])
    known = yaml.safe_load(made.files[".pyiceberg.yaml"])["catalog"]
    assert known["my-lake-1"] == {
        "type": "rest",
        "uri": "http://127.0.0.1:8090/iceberg/demo",
        "warehouse": "My__Lake=1",
    }
    assert known["bucket"]["s3.endpoint"] == "http://minio:9000"
    assert 'export PYICEBERG_CATALOG__MY_LAKE_1__TOKEN="${METALAKE_TOKEN}"' in made.files["pyiceberg.sh"]
    assert pyiceberg.render(URL, METALAKE, []).files == {}
