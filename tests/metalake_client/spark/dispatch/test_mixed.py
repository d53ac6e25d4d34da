from __future__ import annotations
import pytest
from pathlib import Path
from tests.catalogs.racing import Client
from tests.names import own_name
from tests.spark import iceberg_catalog, SparkError
from tests.jars import jars, pyspark_jars
from metalake_client.spark.dispatch import dispatch_jar, CATALOG

def mixed(server, name, hive, **more):
    c = f"spark.sql.catalog.{name}"
    return {c: CATALOG, f"{c}.type": "rest", f"{c}.uri": f"{server.url}/iceberg/demo", f"{c}.warehouse": name,
      f"{c}.rest.auth.type": "basic", f"{c}.rest.auth.basic.username": "admin", f"{c}.rest.auth.basic.password": server.admin_password,
      f"{c}.mixed.hive": hive, f"{c}.mixed.tables": f"{server.url}/api/metalakes/demo/catalogs/{name}"} | {f"{c}.{k}": v for k, v in more.items()}

def test_it(start_metalake, hms, iceberg_spark):
    server = start_metalake(METALAKE_FILE_LOCATIONS=str(hms.warehouse))
    name = own_name("c")
    body = {"name": name, "type": "relational", "provider": "hive", "properties": {"metastore.uris": hms.uri}}
    assert Client(server.url).send("POST", "/api/metalakes/demo/catalogs", body).status == 200
    db = hms.create_database()
    jar = dispatch_jar(pyspark_jars(), jars("iceberg-spark")[0])
    s = mixed(server, name, "session")
    n = mixed(server, name, "none", **{"mixed.message": "WHY NOT"})
    own = iceberg_catalog("own", type="hive", uri=hms.uri, warehouse=hms.warehouse.as_uri())
    def run(*st, settings=s):
        for one in st:
            try:
                print("OK", one[:110], iceberg_spark.sql(f"add jar '{jar}'", one, settings=settings)[1:], flush=True)
            except SparkError as e:
                print("ERR", one[:110], e.condition, str(e)[:600].replace("\n", " | "), flush=True)
    L = f"{name}.{db}"
    iceberg_spark.sql(f"create table {db}.txt (a int, b string) stored as textfile", f"insert into {db}.txt values (1,'x')",
      f"create table {db}.pq (a int, p string) using parquet partitioned by (p)", f"insert into {db}.pq values (1,'x')",
      f"create table {db}.orc (a int) partitioned by (p string) stored as orc", f"insert into {db}.orc partition (p='q') values (1)",
      f"create view {db}.v as select a + 1 as b from {db}.txt")
    run(f"create table own.{db}.ice (a int) using iceberg", f"insert into own.{db}.ice values (7)", settings=own)
    run(f"select * from {L}.txt", f"select * from {L}.pq", f"select * from {L}.orc", f"select * from {L}.ice", f"select * from {L}.v",
        f"insert into {L}.txt values (2,'y')", f"insert into {L}.pq values (2,'y')", f"insert into {L}.orc partition (p='q') values (2)", f"insert into {L}.ice values (8)",
        f"select * from {L}.txt t join {L}.ice i on true", f"select * from {L}.pq", f"select * from {L}.orc",  f"select * from {db}.pq",
        f"show tables in {L}", f"show namespaces in {name}", f"describe {L}.pq", f"show partitions {L}.pq", f"describe {L}.ice",
        f"create table {L}.made (a int) using iceberg", f"create table {L}.made2 (a int) using parquet", f"create table {L}.made3 (a int)", f"create table {L}.made4 using iceberg as select 1 a", f"create table {L}.made5 using orc as select 1 a",
        f"select * from {L}.made4", f"select * from {L}.made5", f"show create table {L}.made3", f"select * from {L}.ice.snapshots",
        f"select * from {L}.ice version as of 1",f"select * from {L}.txt version as of 1", f"delete from {L}.ice where a = 7", f"alter table {L}.txt add columns (z int)", f"alter table {L}.ice add columns (z int)",
        f"drop table {L}.made", f"drop table {L}.made2", f"drop table if exists {L}.nope", f"drop table {L}.nope", f"select * from {L}.nope",
        f"create namespace {L}_two", f"create view {L}.vv as select a from {L}.txt", f"select * from {L}.vv", f"show views in {L}", f"use {L}", f"call {name}.system.rollback_to_timestamp('{db}.ice', timestamp '2000-01-01')",
        f"select * from {db}.ice", f"select * from spark_catalog.{db}.ice")
    print("---- none")
    run(f"select * from {L}.ice", f"select * from {L}.txt", f"select * from {L}.nope", f"drop table {L}.txt", f"drop table if exists {L}.txt", f"insert into {L}.txt values (2,'y')", f"show tables in {L}", f"create table {L}.txt (a int) using iceberg",f"create table if not exists {L}.txt (a int) using iceberg", f"create table {L}.t2 (a int) using parquet", settings=n)
