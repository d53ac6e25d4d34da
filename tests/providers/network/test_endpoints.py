"""Which URLs, hosts and addresses the server reaches, and that it reaches none but those it checked."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from ipaddress import ip_address

import pytest

from metalake.errors import Invalid, ProviderUnavailable
from providers.network.addresses import kind_of, parse_allowed
from providers.network.endpoints import Endpoint, UnknownHost, check_endpoint, connect, parse_endpoint, resolve
from tests.cases import each
from tests.providers.network.hostile import INSIDE, METADATA, ODD, URLS

HTTP = ("https", "http")
EVERYTHING = ("0.0.0.0/0", "::/0")
CLOUD_NAMES = [host for host in METADATA if not re.fullmatch(r"[0-9.]+|\[.*\]", host)]


def test_there_are_enough_of_them():
    assert len({*METADATA, *INSIDE, *ODD}) >= 200


@pytest.fixture(autouse=True)
def nothing_allowed(allow):
    allow()


class TestHostileHosts:
    @each("host", METADATA + INSIDE + ODD)
    @each("port", ["", ":9000"])
    def test_it_is_refused_without_a_lookup(self, dns, host, port):
        with pytest.raises(Invalid):
            check_endpoint(f"http://{host}{port}/path", HTTP)
        assert dns.asked == []

    @each("host", METADATA + ODD)
    def test_an_allow_list_that_names_everything_changes_nothing(self, dns, allow, host):
        allow(*EVERYTHING, *CLOUD_NAMES, "*.internal", "*.com", "*.net", "169.254.169.254", "[fd00:ec2::254]:80")
        with pytest.raises(Invalid):
            check_endpoint(f"http://{host}", HTTP)
        assert dns.asked == []

    @each("host", INSIDE)
    def test_an_inside_address_is_the_operators_to_allow(self, allow, host):
        allow(*EVERYTHING)
        assert check_endpoint(f"http://{host}:9000", HTTP).port == 9000

    @each("host", [host for host in METADATA + INSIDE if host not in CLOUD_NAMES])
    def test_a_name_that_leads_there_is_refused(self, dns, host):
        dns.leads("minio.example", [host.strip("[].").lower()])
        with pytest.raises(Invalid, match=r"minio\.example leads to"):
            check_endpoint("http://minio.example", HTTP)

    @each("url", URLS)
    def test_a_malformed_url_is_refused_and_not_repeated(self, dns, allow, url):
        allow(*EVERYTHING)
        with pytest.raises(Invalid) as refusal:
            check_endpoint(url, HTTP)
        assert "hunter2" not in refusal.value.message
        assert "user" not in refusal.value.message.replace("user information", "")
        assert dns.asked == []

    @pytest.mark.parametrize("url", [None, 5, b"http://8.8.8.8", ["http://8.8.8.8"], "http://\udc80"])
    def test_what_is_no_text_is_refused(self, url):
        with pytest.raises(Invalid):
            check_endpoint(url, HTTP)


class TestGoodHosts:
    @each(
        "url, endpoint",
        [
            ("https://8.8.8.8", Endpoint("https", "8.8.8.8", 443)),
            ("http://8.8.8.8/", Endpoint("http", "8.8.8.8", 80)),
            ("HTTP://8.8.8.8.:65535/path/to", Endpoint("http", "8.8.8.8", 65535)),
            ("http://9.255.255.255", Endpoint("http", "9.255.255.255", 80)),
            ("http://100.63.255.255", Endpoint("http", "100.63.255.255", 80)),
            ("http://100.128.0.0", Endpoint("http", "100.128.0.0", 80)),
            ("http://172.32.0.1", Endpoint("http", "172.32.0.1", 80)),
            ("http://223.255.255.255", Endpoint("http", "223.255.255.255", 80)),
            ("http://[2606:4700:4700::1111]", Endpoint("http", "2606:4700:4700::1111", 80)),
            ("http://[2001:4860:4860::8888]:53", Endpoint("http", "2001:4860:4860::8888", 53)),
            ("http://[::ffff:8.8.8.8]", Endpoint("http", "8.8.8.8", 80)),
            ("http://[64:ff9b::808:808]", Endpoint("http", "64:ff9b::808:808", 80)),
            ("http://[2002:808:808::1]", Endpoint("http", "2002:808:808::1", 80)),
        ],
    )
    def test_a_public_address(self, dns, url, endpoint):
        assert check_endpoint(url, HTTP) == endpoint
        assert dns.asked == []

    @pytest.mark.parametrize(
        ("url", "host"),
        [
            ("https://Glue.EU-west-1.Amazonaws.COM", "glue.eu-west-1.amazonaws.com"),
            ("https://glue.eu-west-1.amazonaws.com.", "glue.eu-west-1.amazonaws.com"),
            ("https://xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("https://hive_metastore.example", "hive_metastore.example"),
            ("https://1and1.example", "1and1.example"),
            ("https://0x7f.example", "0x7f.example"),
            ("https://a", "a"),
        ],
    )
    def test_a_name(self, dns, url, host):
        dns.leads(host, ["93.184.216.34", "2606:2800:220:1::1"])
        assert check_endpoint(url, HTTP) == Endpoint("https", host, 443)
        assert dns.asked == [host]

    @pytest.mark.parametrize("address", ["::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"])
    def test_a_name_may_lead_to_a_public_address_inside_another(self, dns, address):
        dns.leads("lake.example", [address])
        assert check_endpoint("https://lake.example", HTTP)

    def test_each_scheme_has_its_port(self):
        assert parse_endpoint("thrift://hive.lan", ["thrift"]).port == 9083
        assert parse_endpoint("hdfs://namenode", ["hdfs"]).port == 8020


class TestEveryAddress:
    @pytest.mark.parametrize("place", range(3))
    def test_one_bad_address_among_good_ones_is_enough(self, dns, place):
        answer = ["8.8.8.8", "1.1.1.1"]
        answer.insert(place, "10.0.0.5")
        dns.leads("lake.example", answer)
        with pytest.raises(Invalid, match="leads to a private address"):
            check_endpoint("https://lake.example", HTTP)

    def test_the_address_itself_stays_hidden(self, dns):
        dns.leads("db.corp.example", ["10.7.8.9"])
        with pytest.raises(Invalid) as refusal:
            check_endpoint("https://db.corp.example", HTTP)
        assert "10.7" not in refusal.value.message

    def test_the_refusal_says_what_to_do(self, dns):
        dns.leads("minio.lan", ["192.168.1.5"])
        with pytest.raises(Invalid) as refusal:
            check_endpoint("http://minio.lan:9000", HTTP)
        assert refusal.value.message == (
            "minio.lan leads to a private address; this server connects there only if its operator names "
            "the host or the address in METALAKE_REMOTE_ALLOW."
        )

    def test_metadata_has_no_remedy(self, dns):
        dns.leads("169.254.169.254.nip.example", ["169.254.169.254"])
        with pytest.raises(Invalid, match="leads to a cloud metadata address; this server never connects there"):
            check_endpoint("http://169.254.169.254.nip.example", HTTP)


class TestUnknownHosts:
    def test_at_registration_it_is_a_mistake_of_the_caller(self, dns):
        with pytest.raises(Invalid, match=r"Unknown host minio\.lna: it has no address\. Check its spelling\."):
            check_endpoint("http://minio.lna", HTTP)

    def test_at_use_it_is_the_outside_world(self, dns):
        with pytest.raises(UnknownHost) as unknown:
            connect("minio.lna", 9000)
        assert isinstance(unknown.value, ProviderUnavailable)
        assert unknown.value.retryable

    def test_no_answer_is_not_an_unknown_host(self, monkeypatch):
        def again(*_, **__):
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

        monkeypatch.setattr(socket, "getaddrinfo", again)
        with pytest.raises(ProviderUnavailable, match="could not be looked up now"):
            check_endpoint("http://minio.lan", HTTP)

    def test_an_empty_answer(self, dns):
        dns.leads("minio.lan", [])
        with pytest.raises(Invalid, match="Unknown host"):
            check_endpoint("http://minio.lan", HTTP)

    def test_a_slow_name_server_holds_nobody_up(self, monkeypatch):
        release = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(20) and [])
        started = time.monotonic()
        with pytest.raises(ProviderUnavailable, match=r"minio\.lan could not be looked up within 0\.2 s"):
            connect("minio.lan", 80, seconds=0.2)
        assert time.monotonic() - started < 15
        release.set()


class TestAllowList:
    @each(
        "entry, url, allowed",
        [
            ("minio.lan", "http://minio.lan:9000", True),
            ("MinIO.lan.", "http://minio.LAN:9000", True),
            ("minio.lan:9000", "http://minio.lan:9000", True),
            ("minio.lan:9000", "http://minio.lan:9001", False),
            ("minio.lan", "http://xminio.lan", False),
            ("minio.lan", "http://a.minio.lan", False),
            ("*.lan", "http://minio.lan", True),
            ("*.lan", "http://a.minio.lan", True),
            ("*.lan", "http://lan", False),
            ("*.lan", "http://xlan", False),
            ("*.minio.lan", "http://minio.lan", False),
            ("*.lan:9000", "http://minio.lan:9000", True),
            ("*.lan:9000", "http://minio.lan:80", False),
            ("10.0.0.0/8", "http://minio.lan", True),
            ("10.0.0.0/8:9000", "http://minio.lan:9000", True),
            ("10.0.0.0/8:9000", "http://minio.lan:9001", False),
            ("10.0.0.5", "http://minio.lan", True),
            ("10.0.0.5:80", "http://10.0.0.5", True),
            ("10.0.0.6", "http://minio.lan", False),
            ("10.0.0.5", "http://[::ffff:10.0.0.5]", True),
            ("10.0.0.5", "http://[64:ff9b::10.0.0.5]", True),
            ("10.0.0.5", "http://[2002:a00:5::1]", True),
            ("10.0.0.6", "http://[2002:a00:5::1]", False),
            ("2002::/16", "http://[2002:a00:5::1]", True),
            ("fd12::/32", "http://[fd12::7]", True),
            ("[fd12::/32]:80", "http://[fd12::7]", True),
            ("[fd12::/32]:81", "http://[fd12::7]", False),
            ("fd12::7", "http://[fd12:0::7]", True),
            ("[fd12::7]", "http://[fd12::7]", True),
            ("[fd12::7]:80", "http://[fd12::7]", True),
            ("::1", "http://127.0.0.1", False),
            ("127.0.0.0/8", "http://[::1]", False),
            ("localhost", "http://127.0.0.1", False),
        ],
    )
    def test_an_entry(self, dns, allow, entry, url, allowed):
        for name in ("minio.lan", "xminio.lan", "a.minio.lan", "lan", "xlan"):
            dns.leads(name, ["10.0.0.5"])
        allow("other.lan", entry)
        if allowed:
            assert check_endpoint(url, HTTP)
        else:
            with pytest.raises(Invalid, match="METALAKE_REMOTE_ALLOW"):
                check_endpoint(url, HTTP)

    def test_a_named_host_may_have_public_and_private_addresses(self, dns, allow):
        dns.leads("minio.lan", ["10.0.0.5", "8.8.8.8"])
        allow("minio.lan")
        assert len(resolve("minio.lan", 80)) == 2

    def test_a_named_host_that_leads_to_metadata_is_refused(self, dns, allow):
        dns.leads("minio.lan", ["10.0.0.5", "169.254.169.254"])
        allow("minio.lan", "*.lan", *EVERYTHING)
        with pytest.raises(Invalid, match="cloud metadata"):
            resolve("minio.lan", 80)

    @each(
        "entry",
        ["", "*", "*.", "*lan", "a.*.lan", "10.0.0.1/8", "10.0.0.0/33", "127.1", "0x7f000001", "http://minio.lan",
         "minio.lan/path", "minio.lan:", "minio.lan:0x50", "minio.lan:70000", "[fd12::7", "fd12::zz", "a b", "user@lan",
         "b\u00fccher.lan", "[minio.lan]", "minio.lan:0"],
    )  # fmt: skip
    def test_what_is_no_entry_is_named(self, entry):
        with pytest.raises(Invalid) as refusal:
            parse_allowed((entry,))
        assert repr(entry) in refusal.value.message

    def test_public_addresses_need_no_entry_and_every_kind_has_a_word(self):
        kinds = {kind_of(ip_address(host.strip("[].").lower())) for host in INSIDE}
        assert kinds == {
            "loopback", "private", "shared (carrier-grade NAT)", "link-local", "multicast", "unspecified", "reserved",
        }  # fmt: skip
        assert kind_of(ip_address("8.8.8.8")) == "public"


class TestSetting:
    """Read in a process of its own, as the server does."""

    def read(self, tmp_path, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("METALAKE_")}
        return subprocess.run(
            [sys.executable, "-c", "from metalake import settings; print(settings.METALAKE_REMOTE_ALLOW)"],
            env=clean | {"METALAKE_HOME": str(tmp_path)} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def test_loopback_is_allowed_by_default_on_loopback_alone(self, tmp_path):
        assert self.read(tmp_path).stdout == "('127.0.0.0/8', '::1')\n"
        assert self.read(tmp_path, METALAKE_HOST="0.0.0.0").stdout == "()\n"
        assert self.read(tmp_path, METALAKE_REMOTE_ALLOW="").stdout == "()\n"
        assert self.read(tmp_path, METALAKE_REMOTE_ALLOW="minio.lan,10.0.0.0/8").stdout == (
            "('minio.lan', '10.0.0.0/8')\n"
        )

    def test_a_bad_entry_stops_the_server(self, tmp_path):
        ended = self.read(tmp_path, METALAKE_REMOTE_ALLOW="minio.lan,10.0.0.1/8")
        assert ended.returncode != 0
        assert "METALAKE_REMOTE_ALLOW: '10.0.0.1/8' is not a host" in ended.stderr

    def test_the_tests_own_server_reaches_loopback(self, allow):
        from metalake import settings as real

        allow(*real.METALAKE_REMOTE_ALLOW)
        assert check_endpoint("http://127.0.0.1:9000", HTTP)
        assert check_endpoint("http://[::1]:9000", HTTP)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


class TestConnecting:
    def test_it_connects_to_the_checked_address(self, dns, allow, listener):
        port = listener.getsockname()[1]
        allow("metastore.example")
        dns.leads("metastore.example", ["127.0.0.1"])
        with connect("metastore.example", port, seconds=2) as connection:
            assert connection.getpeername() == ("127.0.0.1", port)
            assert connection.gettimeout() == 2
        assert dns.asked == ["metastore.example"]

    def test_a_name_is_looked_up_once_so_a_second_answer_is_never_heard(self, dns, allow, listener):
        # Both addresses may be connected to; only the one that was checked is.
        port = listener.getsockname()[1]
        allow("127.0.0.1", "127.0.0.2")
        dns.leads("rebinding.example", ["127.0.0.1"], ["127.0.0.2"])
        with connect("rebinding.example", port) as connection:
            assert connection.getpeername()[0] == "127.0.0.1"
        assert dns.asked == ["rebinding.example"]

    def test_a_name_that_leads_inside_after_it_was_registered(self, dns, listener):
        port = listener.getsockname()[1]
        dns.leads("rebinding.example", ["93.184.216.34"], ["127.0.0.1"])
        endpoint = check_endpoint(f"http://rebinding.example:{port}", HTTP)
        with pytest.raises(Invalid, match="leads to a loopback address"):
            connect(endpoint.host, endpoint.port)
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()

    def test_the_next_address_is_tried(self, dns, allow, listener):
        port = listener.getsockname()[1]
        allow("127.0.0.0/8")
        dns.leads("two.example", ["127.0.0.2", "127.0.0.1"])
        with connect("two.example", port) as connection:
            assert connection.getpeername()[0] == "127.0.0.1"

    def test_nothing_listens(self, allow):
        allow("127.0.0.1")
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        with pytest.raises(ProviderUnavailable, match=f"Nothing listens at 127.0.0.1:{port}"):
            connect("127.0.0.1", port)

    def test_nobody_answers(self, allow, monkeypatch):
        allow("127.0.0.1")

        class Deaf(socket.socket):
            def connect(self, _):
                time.sleep(self.gettimeout() or 9)
                raise TimeoutError

        monkeypatch.setattr(socket, "socket", Deaf)
        started = time.monotonic()
        with pytest.raises(ProviderUnavailable, match=r"127\.0\.0\.1:9083 did not accept a connection within 0\.2 s"):
            connect("127.0.0.1", 9083, seconds=0.2)
        assert time.monotonic() - started < 15

    def test_many_addresses_share_the_time(self, dns, allow, monkeypatch):
        allow("127.0.0.0/8")
        dns.leads("deaf.example", [f"127.0.0.{number}" for number in range(2, 12)])
        given = []

        class Deaf(socket.socket):
            def connect(self, _):
                given.append(self.gettimeout())
                time.sleep(self.gettimeout() or 9)
                raise TimeoutError

        monkeypatch.setattr(socket, "socket", Deaf)
        started = time.monotonic()
        with pytest.raises(ProviderUnavailable):
            connect("deaf.example", 9083, seconds=0.5)
        assert len(given) == 10
        assert time.monotonic() - started < 15

    def test_a_trusted_name_may_be_private_but_never_metadata(self, dns, listener):
        dns.leads("glue.eu-west-1.amazonaws.com", ["127.0.0.1"], ["169.254.169.254"])
        connect("glue.eu-west-1.amazonaws.com", listener.getsockname()[1], trusted=True).close()
        with pytest.raises(Invalid, match="cloud metadata"):
            connect("glue.eu-west-1.amazonaws.com", listener.getsockname()[1], trusted=True)
