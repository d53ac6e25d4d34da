"""The server's own cloud identity: what hosts and buckets that catalogs name hear of it, and where it is used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from authz.callers.identity import actor_of
from authz.models import User
from formats.iceberg import storage
from metalake.errors import Invalid, MetalakeError, ProviderUnavailable
from outside import harvest
from providers.glue.provider import GlueProvider
from providers.iceberg.provider import IcebergProvider
from providers.network.identity import own_places, parse_identity
from providers.network.storage import parse_storage
from tests.cases import each
from tests.catalogs.callers import Caller

ROLE = "arn:aws:iam::123456789012:role/lake/reader"
FILE: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, allow: Callable[..., None]) -> None:
    """The server runs as somebody at AWS and at Google."""
    allow("127.0.0.1")
    pem = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    account = {"type": "service_account", "client_email": "metalake@ops.example", "private_key": pem.decode()}
    google = tmp_path / "google.json"
    google.write_text(json.dumps(account | {"private_key_id": "k", "token_uri": "http://127.0.0.1:9/token"}))
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIASERVER",
        "AWS_SECRET_ACCESS_KEY": "own",
        "AWS_SESSION_TOKEN": "session-of-the-server",
        "AWS_EC2_METADATA_DISABLED": "true",
        "GOOGLE_APPLICATION_CREDENTIALS": str(google),
    }.items():
        monkeypatch.setenv(name, value)


def read(properties: dict[str, str], location: str, catalog_id: int = 1) -> bytes:
    return storage.read_bytes(IcebergProvider(catalog_id, properties).io, location, 1000)


def heard(server: Any) -> str:
    return json.dumps([headers for _, _, headers in server.asked])


@pytest.mark.parametrize(
    ("key", "location", "more"),
    [
        ("s3.endpoint", "s3://lake/a.json", {}),
        ("s3.endpoint", "oss://lake/a.json", {}),
        ("s3.endpoint", "s3a://lake/a.json", {"s3.role-arn": ROLE}),
        ("s3.endpoint", "s3://lake/a.json", {"client.role-arn": ROLE, "client.region": "eu-west-1"}),
        ("s3.endpoint", "s3://lake/a.json", {"s3.access-key-id": "AKIA"}),
        ("s3.endpoint", "s3://lake/a.json", {"client.session-token": "t"}),
        ("gcs.service.host", "gs://lake/a.json", {}),
        ("gcs.service.host", "gcs://lake/a.json", {"gcs.oauth2.token-expires-at": "1"}),
    ],
)
def test_a_host_that_a_catalog_names_hears_nothing_of_it(site, settings, key, location, more) -> None:
    settings.METALAKE_OWN_IDENTITY = ("s3://*", "gs://*", ROLE, "http://127.0.0.1:9", "https://127.0.0.1")
    settings.METALAKE_WAREHOUSE = "s3://lake"
    server = site({"/lake/a.json": FILE})
    try:
        read({key: f"http://127.0.0.1:{server.port}", **more}, location)
    except MetalakeError:
        assert server.asked or "a part of S3's keys alone" in read_error({key: "http://127.0.0.1:1", **more}, location)
    for secret in ("AKIASERVER", "session-of-the-server", "Bearer", "Authorization", "authorization"):
        assert secret not in heard(server)


def read_error(properties: dict[str, str], location: str) -> str:
    with pytest.raises(MetalakeError) as refused:
        read(properties, location)
    return refused.value.message


@pytest.mark.parametrize("below", ["", "/lake", "/lake/open/"])
def test_an_endpoint_that_the_operator_names_hears_it(site, settings, below) -> None:
    server = site({"/lake/open/a.json": FILE, "/lake/opened/a.json": FILE})
    url = f"http://127.0.0.1:{server.port}"
    settings.METALAKE_OWN_IDENTITY = (url + below,)
    assert read({"s3.endpoint": f"{url}/"}, "s3a://lake/open/a.json") == b"{}"
    assert "Credential=AKIASERVER/" in server.asked[0][2]["Authorization"]
    assert read({"s3.endpoint": url}, "s3://lake/opened/a.json") == b"{}"
    assert ("Authorization" in server.asked[1][2]) is (below != "/lake/open/")
    own = {"s3.access-key-id": "AKIAOWN", "s3.secret-access-key": "s"}
    assert read({"s3.endpoint": url, **own}, "s3://lake/open/a.json") == b"{}"
    assert "Credential=AKIAOWN/" in server.asked[2][2]["Authorization"]


def places(settings: Any, entries: list[str], warehouse: str = "", **given: str) -> list[str]:
    settings.METALAKE_OWN_IDENTITY, settings.METALAKE_WAREHOUSE = tuple(entries), warehouse
    properties = {key.replace("__", "-").replace("_", "."): value for key, value in given.items()}
    return own_places(properties, parse_storage(properties), 7)


def test_which_places_are_the_servers(settings) -> None:
    on_azure, off_azure = {"adls_account__name": "acme"}, {"adls_account__name": "other"}
    box = "abfss://box@acme.dfs.core.windows.net/lake"
    elsewhere = {"adls_dfs__storage__authority": "8.8.8.8"}
    assert places(settings, [], "s3a://ops/wh") == ["s3://ops/wh/7"], "a catalog's own folder alone"
    assert places(settings, [], "s3://ops/wh", s3_endpoint="http://8.8.8.8") == []
    assert places(settings, ["s3n://lake/open/", "gs://*"]) == ["s3://lake/open", "gs://*"]
    assert places(settings, ["s3://lake"], s3_role__arn=ROLE) == []
    assert places(settings, ["s3://lake", ROLE], client_role__arn=ROLE) == ["s3://lake"]
    assert places(settings, [box], **on_azure) == ["abfss://box/lake"]
    assert places(settings, [box], **off_azure) == [box], "which its client, of the other account, is not asked for"
    assert places(settings, [box, "abfss://*"], **on_azure, **elsewhere) == []
    assert places(settings, ["https://8.8.8.8"], **on_azure, **elsewhere) == ["abfss://*"]
    assert places(settings, ["hdfs:///lake", "hdfs://nn/lake"]) == ["hdfs:///lake", "hdfs://nn/lake"]
    assert places(settings, ["hdfs:///lake", "hdfs://nn/lake"], hdfs_host="8.8.8.8") == ["hdfs://nn/lake"]


@pytest.mark.parametrize("location", ["abfss://box@acme.dfs.core.windows.net/a.json", "hdfs://127.0.0.1:9/a.json"])
def test_what_knows_no_anonymous_caller_is_refused(location) -> None:
    with pytest.raises(ProviderUnavailable, match="give it some, or ask the operator whether METALAKE_OWN_IDENTITY"):
        read({"adls.account-name": "acme"}, location)


def test_a_refusal_without_keys_says_what_to_do(site) -> None:
    server = site({"/lake/a.json": (403, {}, b"<Error><Code>AccessDenied</Code></Error>")})
    said = read_error({"s3.endpoint": f"http://127.0.0.1:{server.port}"}, "s3://lake/a.json")
    assert "The storage refused access to s3://lake/a.json. The catalog has no keys for it: give it some" in said


@pytest.mark.parametrize(
    "more",
    [{}, {"aws-glue-endpoint": "own"}, {"aws-role-arn": ROLE}, {"aws-role-arn": ROLE, "aws-sts-endpoint": "own"}],
)
def test_glue_without_keys_is_not_registered(admin: Caller, site, settings, more) -> None:
    """Not even where the account is named, since a host or a role of the caller's is something else."""
    settings.METALAKE_OWN_IDENTITY = () if not more else ("glue://server/eu-west-1", "glue://123456789012/eu-west-1")
    server = site()
    own = f"http://127.0.0.1:{server.port}"
    properties = {"aws-region": "eu-west-1"} | {key: own if value == "own" else value for key, value in more.items()}
    body = {"name": "g", "type": "RELATIONAL", "provider": "glue", "properties": properties}
    for path in ("", "/testConnection"):
        answer = admin.post(f"metalakes/demo/catalogs{path}", body)
        assert answer.error[:2] == (400, 1001)
        assert "METALAKE_OWN_IDENTITY" in answer.message and "It needs glue://" in answer.message
    assert GlueProvider(1, properties).system() == GlueProvider(1, properties).system_names()
    with pytest.raises(ProviderUnavailable, match="Nothing opens this Glue catalog"):
        GlueProvider(1, properties).require_identity()  # a catalog that was made before
    assert server.asked == []


def test_glue_that_the_operator_names_lends_its_identity_to_no_other_storage(site, settings) -> None:
    glue, other = site({"/": (200, {}, b'{"DatabaseList": []}')}), site({"/lake/a.json": FILE})
    endpoint = f"http://127.0.0.1:{glue.port}"
    settings.METALAKE_OWN_IDENTITY = (endpoint, "glue://server/eu-west-1", "glue://123456789012/eu-west-1", ROLE)
    named = {"aws-region": "eu-west-1", "aws-glue-endpoint": endpoint, "s3.endpoint": f"http://127.0.0.1:{other.port}"}
    GlueProvider(1, named).test_connection()
    assert "AKIASERVER" in heard(glue)
    assert storage.read_bytes(GlueProvider(1, named).io, "s3://lake/a.json", 10) == b"{}"
    role = GlueProvider(1, named | {"aws-role-arn": ROLE, "aws-external-id": "x-1"})
    assert storage.read_bytes(role.io, "s3://lake/a.json", 10) == b"{}"
    assert role.io.properties["client.assume-role.external-id"] == "x-1"
    assert "Authorization" not in heard(other)


def test_no_harvest_begins_with_an_identity_that_is_not_lent(admin: Caller, settings: Any) -> None:
    """The job's machine has an identity, and its crawler would ask the catalog's host with it."""
    settings.METALAKE_OWN_IDENTITY = ("glue://123456789012/eu-west-1",)
    properties = {"aws-region": "eu-west-1", "aws-glue-catalog-id": "123456789012"}
    body = {"name": "g", "type": "RELATIONAL", "provider": "glue", "properties": properties}
    assert admin.post("metalakes/demo/catalogs", body).status == 200
    settings.METALAKE_OWN_IDENTITY = ()
    with pytest.raises(ProviderUnavailable, match="It needs glue://123456789012/eu-west-1"):
        harvest.begin(actor_of(User.objects.get(username="admin")), "demo", "g")


@each(
    "entry",
    ["", "lake", "file:///srv", "s3://", "s3://lake/*", "s3://lake/../x", "https://", "https://minio.lan:x", "https://a@b",
     "https://minio.lan/a/../b", "glue://eu-west-1", "arn:aws:iam::1:role/x", "ftp://x", "*"],
)  # fmt: skip
def test_an_entry_that_is_none_is_named(entry) -> None:
    with pytest.raises(Invalid) as refused:
        parse_identity((entry,))
    assert refused.value.message.startswith(f"{entry!r} is no place")
