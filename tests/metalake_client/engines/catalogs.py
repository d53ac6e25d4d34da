"""Catalogs as a server shows them, one of each kind that engines must tell apart."""

from __future__ import annotations

from metalake_client.engines.catalogs import MASK, EngineCatalog

URL, METALAKE = "http://127.0.0.1:8090", "demo"


def lake(name: str = "lake", **more: str) -> EngineCatalog:
    """Metalake's own Iceberg tables, on local files unless `warehouse` says otherwise."""
    properties = {"warehouse": "file:///srv/lake", "nested-namespaces": "true", "in-use": "true"}
    named = {key.replace("_", "-"): value for key, value in more.items()}
    return EngineCatalog(name=name, provider="lakehouse-iceberg", properties=properties | named)


def on_s3(name: str = "bucket", **more: str) -> EngineCatalog:
    """On an S3 of one's own, with keys that the server masks."""
    s3 = {"s3.endpoint": "http://minio:9000", "s3.region": "eu-north-1"}
    s3 |= {"s3.access-key-id": MASK, "s3.secret-access-key": MASK}
    return EngineCatalog(
        name=name,
        provider="lakehouse-iceberg",
        properties={"warehouse": "s3://lake/tables", "nested-namespaces": "true"} | s3 | more,
    )


def hive(name: str = "hms", **more: str) -> EngineCatalog:
    properties = {"metastore.uris": "thrift://one:9083, thrift://two:9083", "warehouse": "file:///srv/hive"}
    return EngineCatalog(name=name, provider="hive", properties=properties | more)


def glue(name: str = "my_glue", **more: str) -> EngineCatalog:
    named = {key.replace("_", "-"): value for key, value in more.items()}
    return EngineCatalog(name=name, provider="glue", properties={"aws-region": "us-east-1"} | named)


ALL = [lake(), on_s3(), hive(), glue()]
