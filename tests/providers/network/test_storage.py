"""Storage endpoints of a catalog: what its FileIO would connect to is refused before it is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from moto.server import ThreadedMotoServer
from pyiceberg.io import FileIO

from catalogs.models import Catalog
from formats.iceberg import storage
from formats.iceberg.files import read_metadata
from formats.iceberg.storage import file_io
from metalake.errors import AlreadyExists, Invalid, NotFound, ProviderUnavailable, TooLarge
from providers.iceberg.provider import IcebergProvider
from providers.network.aws import Keys, aws_client
from providers.network.endpoints import UnknownHost
from providers.network.s3 import S3Files
from providers.network.storage import AZURE_AUTHORITIES, check_storage, open_storage, parse_storage, reach_storage
from tests.cases import each
from tests.catalogs.callers import Caller
from tests.glue import Glue

S3_KEYS = {"s3.access-key-id": "AKIA", "s3.secret-access-key": "sesame"}


def endpoint(value: str) -> dict[str, str]:
    return {"warehouse": "s3://flights/lake", "s3.endpoint": value, "s3.region": "airport-1"}


@pytest.mark.parametrize("scheme", ["s3", "oss"])
@pytest.mark.parametrize("asked", [{}, {"s3.force-virtual-addressing": "true"}])
def test_a_bucket_is_no_part_of_the_host_that_is_asked(scheme: str, asked: dict[str, str]) -> None:
    """The name with the bucket in front would lead elsewhere than the one that was checked."""
    hosts: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            hosts.append(self.headers["Host"])
            self.send_response(404)
            self.end_headers()

        do_GET = do_HEAD

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        keys = {"s3.access-key-id": "a", "s3.secret-access-key": "b"}
        io = open_storage(1, {"s3.endpoint": f"http://localhost:{server.server_port}", **keys, **asked})
        with pytest.raises(NotFound):
            read_metadata(io, f"{scheme}://inner/x/a.metadata.json")
        server.shutdown()
        assert set(hosts) == {f"localhost:{server.server_port}"}


def test_the_names_of_buckets_are_a_clouds_own_where_it_names_them() -> None:
    settings = file_io({"s3.force-virtual-addressing": "true", "s3.region": "us-east-1"}).properties
    for endpoint, style in (
        ("https://oss-cn-hangzhou.aliyuncs.com", "virtual"),
        ("https://aliyuncs.com.evil.example", "path"),
        ("https://evil-aliyuncs.com", "path"),
    ):
        client = S3Files(settings | {"s3.endpoint": endpoint}, "s3", False)._client
        assert client.meta.config.s3["addressing_style"] == style


REFUSED = [
    (endpoint("http://169.254.169.254"), "Property 's3.endpoint': 169.254.169.254 is a cloud metadata address"),
    (endpoint("http://10.0.0.5:9000"), "Property 's3.endpoint': 10.0.0.5 is a private address"),
    (endpoint("http://0x0a.5"), "Property 's3.endpoint': The URL is not usable"),
    (
        endpoint("minio.lan:9000"),
        "Property 's3.endpoint': The URL is not usable: it must begin with https:// or http://",
    ),
    (endpoint("file:///etc"), "Property 's3.endpoint': The URL is not usable"),
    (endpoint("http://key:hunter2@minio.lan"), "Property 's3.endpoint': The URL is not usable"),
    (endpoint("http://8.8.8.8") | {"s3.proxy-uri": "http://8.8.8.8"}, "Property 's3.proxy-uri': this server connects"),
    ({"gcs.service.host": "http://[::1]:4443"}, "Property 'gcs.service.host': ::1 is a loopback address"),
    ({"adls.blob-storage-authority": "127.0.0.1:10000"}, "Property 'adls.blob-storage-authority': 127.0.0.1 is a loop"),
    ({"adls.dfs-storage-authority": "x@8.8.8.8"}, "Property 'adls.dfs-storage-authority': The URL is not usable"),
    (
        {"adls.dfs-storage-authority": "8.8.8.8", "adls.dfs-storage-scheme": "file"},
        "Property 'adls.dfs-storage-authority': The URL is not usable",
    ),
    ({"adls.account-name": "evil.example/"}, "Property 'adls.account-name' is 3 to 24"),
    ({"hdfs.host": "10.0.0.5"}, "Property 'hdfs.host': 10.0.0.5 is a private address"),
    ({"hdfs.host": "8.8.8.8", "hdfs.port": "x"}, "Property 'hdfs.host': The URL is not usable: its port"),
    ({"warehouse": "hdfs://10.0.0.5:8020/lake"}, "Property 'warehouse': 10.0.0.5 is a private address"),
    ({"allowed-locations": "s3://a, viewfs://10.0.0.5/b"}, "Property 'allowed-locations': 10.0.0.5 is a private"),
    ({"s3.region": "eu-west-1.evil.example/#"}, "Property 's3.region': 'eu-west-1.evil.example/#' is no AWS region"),
    (
        {"client.region": "eu-west1"},
        "Property 'client.region': 'eu-west1' is no AWS region of s3; did you mean eu-west",
    ),
    (endpoint("http://8.8.8.8") | {"s3.region": "a/b"}, "Property 's3.region': 'a/b' is not a region's name"),
]

LEADS = [
    endpoint("http://minio.lan:9000"),
    {"gcs.service.host": "http://minio.lan:4443"},
    {"adls.blob-storage-authority": "minio.lan:10000"},
    {"adls.dfs-storage-authority": ".lan", "adls.account-name": "minio"},
    {"hdfs.host": "minio.lan"},
    {"warehouse": "hdfs://minio.lan/lake"},
    {"allowed-locations": "s3://flights,hdfs://minio.lan:8020/lake"},
]


@each("properties, said", REFUSED)
def test_it_is_refused_without_a_lookup(dns, allow, properties, said):
    allow()
    with pytest.raises(Invalid) as refusal:
        IcebergProvider.check(properties)
    assert refusal.value.message.startswith(said)
    assert "hunter2" not in refusal.value.message
    assert dns.asked == []


@pytest.mark.parametrize("properties", LEADS)
def test_a_name_is_looked_up_for_who_may_register(dns, allow, properties):
    allow()
    dns.leads("minio.lan", ["10.0.0.5"])
    parse_storage(properties)
    assert dns.asked == []
    for look in (check_storage, reach_storage):
        with pytest.raises(Invalid, match=r"minio\.lan leads to a private address"):
            look(properties)
    allow("minio.lan")
    check_storage(properties)


@pytest.mark.parametrize("properties", LEADS[:4])
def test_an_unknown_host_is_a_mistake_first_and_trouble_later(dns, properties):
    with pytest.raises(Invalid, match=r"Unknown host minio\.lan.*Check its spelling"):
        check_storage(properties)
    with pytest.raises(UnknownHost, match=r"Property '.*': Unknown host minio\.lan"):
        reach_storage(properties)


@pytest.mark.parametrize("properties", [*LEADS[4:], {"hdfs.host": "default"}, {"warehouse": "hdfs:///lake"}])
def test_a_name_service_of_the_operators_own_cluster(dns, properties):
    check_storage(properties)


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {
            "warehouse": "s3://flights/lake",
            "s3.region": "eu-west-1",
            "s3.access-key-id": "AKIA",
            "s3.secret-access-key": "s",
        },
        {"warehouse": "file:///var/lake"},
        {"uri": "jdbc:postgresql://db.lan/x", "catalog-backend": "jdbc", "my.proxy": "x"},
        {"s3.signer.endpoint": "v1/aws/s3/sign", "s3.endpoint": ""},
        endpoint("https://8.8.8.8"),
    ],
)
def test_nothing_to_refuse(dns, properties):
    check_storage(properties)
    assert dns.asked == []


def test_the_file_io_is_opened_only_after_a_check(dns, allow):
    allow("10.0.0.5")
    dns.leads("minio.lan", ["10.0.0.5"], ["10.0.0.5"], ["169.254.169.254"])
    properties = endpoint("http://minio.lan:9000")
    IcebergProvider(1, properties).check_locations()
    assert IcebergProvider(1, properties).io.properties["s3.endpoint"] == "http://minio.lan:9000"
    with pytest.raises(Invalid, match="cloud metadata"):
        IcebergProvider(1, properties).io  # noqa: B018


def test_a_storage_that_is_allowed_works(allow):
    allow("127.0.0.1")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        s3 = aws_client("s3", "us-east-1", url, keys=Keys("AKIA", "sesame"))
        s3.create_bucket(Bucket="flights")
        IcebergProvider(1, endpoint(url) | S3_KEYS).test_connection()
    finally:
        server.stop()


AZURITE = {"adls.account-name": "acme", "adls.account-key": "a2V5"} | {
    f"adls.{name}-storage-scheme": "http" for name in ("blob", "dfs")
}
REDIRECTED = {
    "s3": ({"s3.endpoint": "http://{}"} | S3_KEYS, "s3://flights/t/a.json"),
    "oss": ({"s3.endpoint": "http://{}"}, "oss://flights/t/a.json"),
    "gcs": ({"gcs.service.host": "http://{}"}, "gs://flights/t/a.json"),
    "azure": (AZURITE | dict.fromkeys(AZURE_AUTHORITIES, "{}"), "abfss://flights@acme.dfs.core.windows.net/t/a.json"),
}


class Anywhere(dict):
    """An answer to every path."""

    def __init__(self, answer: Callable[[str], tuple[int, dict[str, str], bytes]]) -> None:
        super().__init__(any="path")
        self.answer = answer

    def get(self, path: str, *_: object) -> tuple[int, dict[str, str], bytes]:
        return self.answer(path)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", REDIRECTED)
def test_a_storage_that_redirects_is_not_followed(site, allow, kind, status) -> None:
    """Neither to what the guard allows, as here, nor to what it would refuse: nobody asks it."""
    allow("127.0.0.1")
    target = site(Anywhere(lambda path: (200, {"Content-Type": "application/json"}, b'{"format-version": 2}')))
    first = site(Anywhere(lambda path: (status, {"Location": f"http://127.0.0.1:{target.port}{path}"}, b"")))
    given, location = REDIRECTED[kind]
    io = open_storage(1, {key: value.format(f"127.0.0.1:{first.port}") for key, value in given.items()})
    acts = [
        lambda: storage.read_bytes(io, location, 1000),
        lambda: storage.create(io, location, b"{}"),
        lambda: storage.delete_file(io, location),
        lambda: storage.is_empty(io, location),
        lambda: storage.require_reachable(io, location),
    ]
    for act in acts:
        first.asked.clear()
        with pytest.raises(ProviderUnavailable) as refused:
            act()
        assert 0 < len(first.asked) < 4 and target.asked == []
        assert kind not in ("s3", "oss") or "redirects to another address" in refused.value.message


def test_a_name_that_leads_inside_by_the_time_it_is_used(site, allow, dns) -> None:
    """The storage's host is looked up once for each connection, and that address is connected to."""
    server = site({"/flights/a.json": (200, {}, b"{}")})
    allow("127.0.0.2")
    dns.leads("minio.lan", ["127.0.0.2"], ["127.0.0.1"])
    io = open_storage(1, {"s3.endpoint": f"http://minio.lan:{server.port}"} | S3_KEYS)
    with pytest.raises(Invalid, match="leads to a loopback address"):
        storage.read_bytes(io, "s3://flights/a.json", 1000)
    assert (dns.asked, server.asked) == (["minio.lan"] * 2, [])


class TestS3:
    """What a FileIO does in a bucket."""

    @pytest.fixture
    def io(self, allow, glue: Glue) -> FileIO:
        allow("127.0.0.1")
        glue.create_bucket("lake")
        return open_storage(1, {"s3.endpoint": glue.endpoint} | S3_KEYS)

    def test_a_file(self, io: FileIO) -> None:
        place = "s3://lake/t/ü %20+~/a.json"
        assert storage.is_empty(io, "s3://lake/t") and storage.delete_file(io, place) == 0
        storage.create(io, place, b"{}")
        with pytest.raises(AlreadyExists):
            storage.create(io, place, b"others")
        assert storage.read_bytes(io, place, 2) == b"{}" and not storage.is_empty(io, "s3://lake/t")
        with pytest.raises(TooLarge):
            storage.read_bytes(io, place, 1)
        assert [storage.delete_file(io, place) for _ in range(2)] == [1, 0]
        with pytest.raises(NotFound):
            storage.read_bytes(io, place, 2)

    def test_objects_that_stand_for_folders_are_no_files(self, io: FileIO, glue: Glue) -> None:
        for name in ("t/", "t/data/", "tt/a"):
            glue.client("s3").put_object(Bucket="lake", Key=name)
        assert storage.is_empty(io, "s3://lake/t") and not storage.is_empty(io, "s3://lake")
        assert storage.is_empty(io, "s3://lake/t/") and not storage.is_empty(io, "s3://lake/tt/")
        for location in ("s3://la$ke/t", "s3://lake/\ud800/t"):
            with pytest.raises(Invalid, match="does not take"):
                storage.is_empty(io, location)
        storage.require_reachable(io, "s3://lake/nowhere")
        with pytest.raises(ProviderUnavailable, match="There is no s3://pond"):
            storage.require_reachable(io, "s3://pond/t")
        with pytest.raises(ProviderUnavailable, match="NoSuchBucket"):
            storage.create(io, "s3://pond/t/a", b"")


class TestRegistering:
    """Over the wire: refused in its shape, nothing made, and no lookup for who may not register."""

    CATALOGS = "metalakes/demo/catalogs"

    def body(self, **properties: str) -> dict:
        return {"name": "remote", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": properties}

    @pytest.mark.parametrize("path", [CATALOGS, f"{CATALOGS}/testConnection"])
    def test_a_refused_endpoint(self, admin: Caller, dns, allow, path):
        allow()
        dns.leads("minio.lan", ["10.0.0.5"])
        answer = admin.post(path, self.body(**endpoint("http://minio.lan:9000")))
        assert answer.error[:2] == (400, 1001)
        assert "minio.lan leads to a private address" in answer.message
        assert not Catalog.objects.filter(name="remote").exists()

    def test_an_unknown_host(self, admin: Caller, dns):
        answer = admin.post(self.CATALOGS, self.body(**endpoint("http://minio.lna:9000")))
        assert answer.error[:2] == (400, 1001)
        assert "Unknown host minio.lna" in answer.message

    def test_no_lookup_for_who_may_not_register(self, mia: Caller, dns):
        answer = mia.post(self.CATALOGS, self.body(**endpoint("http://minio.lan:9000")))
        assert answer.status == 403
        assert dns.asked == []
