"""AWS clients: they work against a real server over HTTP and TLS, and reach nothing that was not checked."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ReadTimeoutError, SSLError
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from moto.server import ThreadedMotoServer

from metalake.errors import Invalid, ProviderTimeout, ProviderUnavailable
from providers.network import aws, timed_sockets
from providers.network.aws import Keys, Role, aws_client, check_region, check_role, regions
from tests.providers.hive.test_errors import serving
from tests.providers.network.test_response_budget import DRIPS, drips

REGION = "eu-west-1"
KEYS = Keys("AKIAFLIGHTS", "sesame")
ROLE = Role("arn:aws:iam::123456789012:role/lake/reader", external_id="airport-7", session_name="metalake-flights")
EMPTY = (200, {"Content-Type": "application/x-amz-json-1.1"}, b'{"DatabaseList": []}')


@pytest.fixture(autouse=True)
def loopback_alone(allow, monkeypatch):
    allow("127.0.0.0/8")
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


class TestEndToEnd:
    def test_glue(self, moto):
        glue = aws_client("glue", REGION, moto, keys=KEYS)
        glue.create_database(DatabaseInput={"Name": "flights"})
        glue.create_table(DatabaseName="flights", TableInput={"Name": "arrivals", "Parameters": {"owner": "ops"}})
        assert glue.get_table(DatabaseName="flights", Name="arrivals")["Table"]["Parameters"] == {"owner": "ops"}
        with pytest.raises(glue.exceptions.EntityNotFoundException):
            glue.get_table(DatabaseName="flights", Name="departures")

    def test_a_name_that_only_our_resolver_knows(self, moto, dns, allow):
        """The request arrives although nothing but the checked lookup can have found the server."""
        port = moto.rpartition(":")[2]
        allow("glue.airport.example")
        dns.leads("glue.airport.example", ["127.0.0.1"])
        glue = aws_client("glue", REGION, f"http://glue.airport.example:{port}", keys=KEYS)
        assert "DatabaseList" in glue.get_databases()
        assert dns.asked == ["glue.airport.example"]

    def test_a_bucket_is_not_put_into_the_hosts_name(self, site, dns, allow):
        """The operator named minio.lan, not flights.minio.lan."""
        server = site({"/flights/a.parquet": (200, {}, b"PAR1")})
        allow("minio.lan")
        dns.leads("minio.lan", ["127.0.0.1"])
        s3 = aws_client("s3", REGION, f"http://minio.lan:{server.port}", keys=KEYS)
        assert s3.get_object(Bucket="flights", Key="a.parquet")["Body"].read() == b"PAR1"
        assert dns.asked == ["minio.lan"]

    def test_an_assumed_role(self, moto):
        glue = aws_client("glue", REGION, moto, keys=KEYS, role=Role(ROLE.arn, sts_endpoint=moto))
        assert "DatabaseList" in glue.get_databases()


class TestCredentials:
    def asked_with(self, site, **options):
        server = site({"/": EMPTY})
        aws_client("glue", REGION, f"http://127.0.0.1:{server.port}", **options).get_databases()
        return server.asked[0][2]

    def test_static_keys(self, site):
        headers = self.asked_with(site, keys=KEYS)
        assert "Credential=AKIAFLIGHTS/" in headers["Authorization"]
        assert "X-Amz-Security-Token" not in headers

    def test_a_session_token(self, site):
        headers = self.asked_with(site, keys=Keys("ASIAFLIGHTS", "sesame", "token-of-an-hour"))
        assert headers["X-Amz-Security-Token"] == "token-of-an-hour"

    def test_the_servers_own_identity(self, site, monkeypatch):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIASERVER")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "own")
        assert "Credential=AKIASERVER/" in self.asked_with(site, own_identity=True)["Authorization"]
        assert "Authorization" not in self.asked_with(site), "it goes only where it is meant"
        assert "Credential=AKIAFLIGHTS/" in self.asked_with(site, keys=KEYS)["Authorization"]

    def test_none_at_all(self, site):
        with pytest.raises(NoCredentialsError):
            self.asked_with(site, own_identity=True)

    @staticmethod
    def sts_answer(hours: float) -> tuple[int, dict[str, str], bytes]:
        until = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = (
            '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>'
            "<AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>of-role</SessionToken>"
            f"<Expiration>{until}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
        )
        return 200, {"Content-Type": "text/xml"}, body.encode()

    def test_a_role_is_assumed_once_with_the_keys_and_its_keys_are_used(self, site):
        sts, glue = site({"/": self.sts_answer(1)}), site({"/": EMPTY})
        role = Role(ROLE.arn, ROLE.external_id, ROLE.session_name, f"http://127.0.0.1:{sts.port}")
        client = aws_client("glue", REGION, f"http://127.0.0.1:{glue.port}", keys=KEYS, role=role)
        assert sts.asked == []
        client.get_databases()
        client.get_databases()
        assert len(sts.asked) == 1
        assert "Credential=AKIAFLIGHTS/" in sts.asked[0][2]["Authorization"]
        assert "Credential=ASIAROLE/" in glue.asked[1][2]["Authorization"]
        assert glue.asked[1][2]["X-Amz-Security-Token"] == "of-role"

    def test_a_role_is_assumed_again_before_its_keys_expire(self, site):
        sts, glue = site({"/": self.sts_answer(0.05)}), site({"/": EMPTY})
        role = Role(ROLE.arn, sts_endpoint=f"http://127.0.0.1:{sts.port}")
        client = aws_client("glue", REGION, f"http://127.0.0.1:{glue.port}", keys=KEYS, role=role)
        client.get_databases()
        client.get_databases()
        assert len(sts.asked) == 2

    def test_the_sts_endpoint_is_guarded_as_well(self, dns):
        dns.leads("sts.evil.example", ["10.0.0.5"])
        with pytest.raises(Invalid, match="leads to a private address"):
            check_role(Role(ROLE.arn, sts_endpoint="https://sts.evil.example"))
        client = aws_client(
            "glue",
            REGION,
            "http://127.0.0.1:1",
            keys=KEYS,
            role=Role(ROLE.arn, sts_endpoint="https://sts.evil.example"),
        )
        with pytest.raises(Invalid, match="leads to a private address"):
            client.get_databases()

    @pytest.mark.parametrize(
        "role",
        [
            Role("reader"),
            Role("arn:aws:iam::12:role/x"),
            Role("arn:aws:iam::123456789012:user/x"),
            Role("arn:aws:iam::123456789012:role/a b"),
            Role(ROLE.arn, session_name="a b"),
            Role(ROLE.arn, session_name=""),
            Role(ROLE.arn, external_id="x"),
            Role(ROLE.arn, external_id="a\nb"),
            Role(ROLE.arn, sts_endpoint="http://169.254.169.254"),
        ],
    )
    def test_a_role_that_is_none(self, role):
        with pytest.raises(Invalid):
            check_role(role)

    def test_roles_that_are_some(self):
        check_role(ROLE)
        check_role(Role("arn:aws-us-gov:iam::123456789012:role/reader"))

    def test_secrets_do_not_show(self):
        shown = repr([Keys("AKIA", "sesame", "open"), ROLE])
        assert "sesame" not in shown and "open" not in shown and "airport-7" not in shown


class TestRegions:
    def test_a_misspelt_region_is_told_the_right_one(self):
        with pytest.raises(Invalid, match="'eu-west1' is no AWS region of glue; did you mean eu-west-1"):
            aws_client("glue", "eu-west1", keys=KEYS)

    @pytest.mark.parametrize("region", ["", "mars", "EU-WEST-1", "eu-west-1.evil.example/#", "../", "aws-global", "*"])
    def test_what_is_no_region(self, region):
        with pytest.raises(Invalid, match="is no AWS region of glue"):
            check_region("glue", region)

    @pytest.mark.parametrize("region", [REGION, "cn-north-1", "us-gov-west-1"])
    def test_every_partition_counts(self, region):
        check_region("glue", region)
        assert region in regions("glue")

    def test_a_custom_endpoint_has_regions_of_its_own(self):
        check_region("glue", "airport-1", "http://127.0.0.1:4566")
        with pytest.raises(Invalid, match="is not a region's name"):
            check_region("glue", "evil.example/", "http://127.0.0.1:4566")

    def test_without_an_endpoint_it_is_aws_own(self, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://10.0.0.5")
        assert aws_client("glue", REGION, keys=KEYS).meta.endpoint_url == "https://glue.eu-west-1.amazonaws.com"
        assert aws_client("sts", "cn-north-1", keys=KEYS).meta.endpoint_url == "https://sts.cn-north-1.amazonaws.com.cn"


class TestGuard:
    @pytest.mark.parametrize("url", ["http://169.254.169.254", "http://10.0.0.5", "http://0x7f.1", "ftp://127.0.0.1"])
    def test_an_endpoint_that_is_refused_makes_no_client(self, url):
        with pytest.raises(Invalid):
            aws_client("glue", REGION, url, keys=KEYS)

    def test_a_name_that_leads_inside_later(self, dns, site, allow):
        server = site({"/": EMPTY})
        allow()
        dns.leads("glue.example", ["127.0.0.1"])
        client = aws_client("glue", REGION, f"http://glue.example:{server.port}", keys=KEYS)
        with pytest.raises(Invalid, match="leads to a loopback address"):
            client.get_databases()
        assert server.asked == []

    def test_a_rebinding_name(self, dns, site, allow):
        """The second answer would reach the server; nobody ever asks for it."""
        server = site({"/": EMPTY})
        allow("127.0.0.2")
        dns.leads("glue.example", ["127.0.0.2"], ["127.0.0.1"])
        client = aws_client("glue", REGION, f"http://glue.example:{server.port}", keys=KEYS)
        with pytest.raises(ProviderUnavailable, match="Nothing listens at"):
            client.get_databases()
        assert dns.asked == ["glue.example"]
        assert server.asked == []

    def test_each_new_connection_is_checked(self, dns, site, allow):
        server = site({"/": (200, {"Connection": "close"}, EMPTY[2])})
        allow("127.0.0.1")
        dns.leads("glue.example", ["127.0.0.1"], ["127.0.0.1"], ["169.254.169.254"])
        client = aws_client("glue", REGION, f"http://glue.example:{server.port}", keys=KEYS)
        client.get_databases()
        client.get_databases()
        with pytest.raises(Invalid, match="cloud metadata"):
            client.get_databases()
        assert len(server.asked) == 2

    def test_a_name_of_awss_own_may_be_private_but_never_metadata(self, dns, allow):
        allow()
        dns.leads("glue.eu-west-1.amazonaws.com", ["127.0.0.1"], ["169.254.169.254"])
        client = aws_client("glue", REGION, keys=KEYS)
        with pytest.raises(ProviderUnavailable):  # allowed, but nothing listens on 443 there
            client.get_databases()
        with pytest.raises(Invalid, match="cloud metadata"):
            client.get_databases()

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_redirects_are_not_followed(self, site, status):
        last = site({"/": EMPTY, "/secret": EMPTY})
        second = site({"/": (status, {"Location": f"http://127.0.0.1:{last.port}/secret"}, b"{}")})
        first = site({"/": (status, {"Location": f"http://127.0.0.1:{second.port}/"}, b"{}")})
        client = aws_client("glue", REGION, f"http://127.0.0.1:{first.port}", keys=KEYS)
        with pytest.raises(ClientError):
            client.get_databases()
        assert (len(first.asked), second.asked, last.asked) == (1, [], [])

    def test_a_redirected_bucket_is_not_followed_inside(self, site, dns):
        moved = b"<Error><Code>PermanentRedirect</Code><Endpoint>10.0.0.5</Endpoint><Bucket>flights</Bucket></Error>"
        first = site(
            {"/flights/a": (301, {"x-amz-bucket-region": "eu-central-1", "Location": "http://10.0.0.5/"}, moved)}
        )
        client = aws_client("s3", REGION, f"http://127.0.0.1:{first.port}", keys=KEYS)
        with pytest.raises(ClientError):
            client.get_object(Bucket="flights", Key="a")
        assert {path for _, path, _ in first.asked} <= {"/flights/a", "/flights"}
        assert dns.asked == []

    def test_proxies_of_the_environment_are_not_used(self, site, monkeypatch):
        proxy, server = site({}), site({"/": EMPTY})
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        aws_client("glue", REGION, f"http://127.0.0.1:{server.port}", keys=KEYS).get_databases()
        assert (len(server.asked), proxy.asked) == (1, [])

    @pytest.mark.parametrize("status", [500, 503, 429])
    def test_it_asks_once(self, site, status):
        server = site({"/": (status, {}, json.dumps({"__type": "ThrottlingException"}).encode())})
        client = aws_client("glue", REGION, f"http://127.0.0.1:{server.port}", keys=KEYS)
        with pytest.raises(ClientError):
            client.get_databases()
        assert len(server.asked) == 1

    def test_a_dead_server_is_not_asked_again(self, site):
        server = site({})
        server.stop()
        client = aws_client("glue", REGION, f"http://127.0.0.1:{server.port}", keys=KEYS)
        with pytest.raises(ProviderUnavailable, match="Nothing listens at"):
            client.get_databases()

    def test_a_silent_server_is_waited_for_so_long(self, allow):
        import socket

        with socket.create_server(("127.0.0.1", 0)) as silent:
            endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
            client = aws_client("glue", REGION, endpoint, keys=KEYS, read_timeout=0.3)
            started = time.monotonic()
            with pytest.raises(ReadTimeoutError):
                client.get_databases()
            assert time.monotonic() - started < 15

    def test_the_library_gave_the_sender_up_to_us(self):
        """What the guard stands on inside botocore; an upgrade that moves it must fail here, not in production."""
        client = aws_client("glue", REGION, "http://127.0.0.1:1", keys=KEYS)
        sender = aws.CheckedSession(trusted=False, timeout=(1, 1), proxies={})
        assert sender._manager.connection_from_url("http://127.0.0.1:1").ConnectionCls is aws._CheckedHTTP
        assert sender._manager.connection_from_url("https://127.0.0.1:1").ConnectionCls is aws._CheckedHTTPS
        assert client.meta.config.proxies == {}
        assert client.meta.config.retries == {"total_max_attempts": 1, "mode": "standard"}


class TestTLS:
    @pytest.fixture
    def certified(self, site, tmp_path: Path) -> int:
        """A server on 127.0.0.1 whose certificate is for glue.airport.example; ca.pem vouches for it."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "glue.airport.example")])
        today = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(today - timedelta(days=1))
            .not_valid_after(today + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("glue.airport.example")]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, SHA256())
        )
        pem = certificate.public_bytes(Encoding.PEM)
        (tmp_path / "ca.pem").write_bytes(pem)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (tmp_path / "server.pem").write_bytes(secret + pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.pem")
        server = site({"/": EMPTY})
        server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
        return server.port

    def ask(self, host: str, port: int) -> dict:
        return aws_client("glue", REGION, f"https://{host}:{port}", keys=KEYS).get_databases()

    def test_the_name_is_verified_not_the_address(self, certified, dns, allow, tmp_path, monkeypatch):
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        allow("*.example")
        dns.leads("glue.airport.example", ["127.0.0.1"])
        dns.leads("other.airport.example", ["127.0.0.1"])
        assert self.ask("glue.airport.example", certified)["DatabaseList"] == []
        with pytest.raises(SSLError, match=r"Hostname mismatch|doesn't match"):
            self.ask("other.airport.example", certified)
        allow("127.0.0.1")
        with pytest.raises(SSLError):
            self.ask("127.0.0.1", certified)

    def test_an_unknown_authority_is_refused(self, certified, dns, allow):
        allow("glue.airport.example")
        dns.leads("glue.airport.example", ["127.0.0.1"])
        with pytest.raises(SSLError, match="certificate verify failed"):
            self.ask("glue.airport.example", certified)

    def test_an_answer_that_drips_comes_to_an_end(self, certified, dns, allow, tmp_path, monkeypatch):
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        monkeypatch.setattr(timed_sockets, "ANSWER_SECONDS", 0.3)
        allow("glue.airport.example")
        dns.leads("glue.airport.example", ["127.0.0.1"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.pem")
        drip = drips(*DRIPS["body"], [])
        with (
            serving(lambda connection: drip(context.wrap_socket(connection, server_side=True))) as port,
            pytest.raises(ProviderTimeout, match="was not whole"),
        ):
            self.ask("glue.airport.example", port)
