"""Thrift sockets and the list of a catalog's metastores."""

from __future__ import annotations

import socket
import time
from threading import Thread

import pytest
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from metalake.errors import Invalid, ProviderUnavailable
from providers.network.endpoints import Endpoint, UnknownHost
from providers.network.metastores import check_metastores, parse_metastores, thrift_socket
from tests.cases import each


@pytest.fixture
def echo():
    """A server that answers every connection with what it heard first."""

    def answer(server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.sendall(connection.recv(64))

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=answer, args=(server,), daemon=True).start()
        yield server.getsockname()[1]


class TestSockets:
    def test_it_speaks_through_the_checked_address(self, dns, allow, echo):
        allow("hive.lan")
        dns.leads("hive.lan", ["127.0.0.1"])
        transport = TBufferedTransport(thrift_socket("hive.lan", echo, 2, 4))
        transport.open()
        transport.write(b"flights")
        transport.flush()
        assert transport.read(7) == b"flights"
        transport.close()
        assert dns.asked == ["hive.lan"]

    def test_a_name_that_leads_inside_is_refused(self, dns, allow, echo):
        allow()
        dns.leads("hive.lan", ["127.0.0.1"])
        with pytest.raises(Invalid, match="leads to a loopback address"):
            thrift_socket("hive.lan", echo).open()

    def test_it_is_looked_up_again_for_each_connection_and_once(self, dns, allow, echo):
        allow("127.0.0.1")
        dns.leads("hive.lan", ["127.0.0.1"], ["100.100.100.200"])
        opened = thrift_socket("hive.lan", echo)
        opened.open()
        assert opened.isOpen()
        opened.close()
        assert dns.asked == ["hive.lan"]
        with pytest.raises(Invalid, match="cloud metadata"):
            opened.open()

    def test_nothing_listens(self, allow):
        allow("127.0.0.1")
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        with pytest.raises(ProviderUnavailable, match="Nothing listens at"):
            thrift_socket("127.0.0.1", port).open()

    def test_an_unknown_host(self, dns):
        with pytest.raises(UnknownHost):
            thrift_socket("hive.lna", 9083).open()

    def test_reading_has_a_time_limit_of_its_own(self, allow):
        allow("127.0.0.1")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            opened = thrift_socket("127.0.0.1", silent.getsockname()[1], 5, 0.2)
            opened.open()
            started = time.monotonic()
            with pytest.raises(TTransportException) as late:
                opened.read(1)
            opened.close()
        assert late.value.type == TTransportException.TIMED_OUT
        assert time.monotonic() - started < 15

    def test_open_is_open_once(self, allow, echo):
        allow("127.0.0.1")
        opened = thrift_socket("127.0.0.1", echo)
        opened.open()
        with pytest.raises(TTransportException, match="already open"):
            opened.open()
        opened.close()


class TestMetastores:
    def test_one_and_several(self):
        assert parse_metastores("thrift://hive.lan:9083") == [Endpoint("thrift", "hive.lan", 9083)]
        assert parse_metastores("thrift://hive1.lan, THRIFT://Hive2.lan.:9084,thrift://[2606:4700::1]:9083") == [
            Endpoint("thrift", "hive1.lan", 9083),
            Endpoint("thrift", "hive2.lan", 9084),
            Endpoint("thrift", "2606:4700::1", 9083),
        ]

    @each(
        "uris, said",
        [
            ("", "The metastores are 1 to 16 of thrift://host:port, divided by commas."),
            (" ", "The metastores are"),
            ("thrift://hive.lan,", "The metastores are"),
            (",".join(["thrift://hive.lan"] * 17), "The metastores are"),
            ("hive.lan:9083", "Metastore 1: The URL is not usable: it must begin with thrift://"),
            ("http://hive.lan:9083", "Metastore 1: The URL is not usable: it must begin with thrift://"),
            ("thrift://hive.lan,thrift://hive2.lan:0", "Metastore 2: The URL is not usable: its port is not a number"),
            ("thrift://hive.lan;thrift://hive2.lan", "Metastore 1: The URL is not usable"),
            ("thrift://u:hunter2@hive.lan", "Metastore 1: The URL is not usable: it may hold no user information"),
            ("thrift://hive.lan,thrift://169.254.169.254", "Metastore 2: 169.254.169.254 is a cloud metadata address"),
            ("thrift://0x7f.1:9083", "Metastore 1: The URL is not usable: 0x7f.1 is an odd spelling"),
        ],
    )
    def test_a_list_that_is_none(self, uris, said):
        with pytest.raises(Invalid) as refusal:
            parse_metastores(uris)
        assert refusal.value.message.startswith(said)
        assert "hunter2" not in refusal.value.message

    def test_every_one_is_looked_up_when_it_is_registered(self, dns, allow):
        allow("10.0.0.0/8")
        dns.leads("hive1.lan", ["10.0.0.1"])
        dns.leads("hive2.lan", ["192.168.0.1"])
        assert check_metastores("thrift://hive1.lan:9083") == [Endpoint("thrift", "hive1.lan", 9083)]
        with pytest.raises(Invalid, match=r"Metastore 2: hive2\.lan leads to a private address"):
            check_metastores("thrift://hive1.lan,thrift://hive2.lan")
        with pytest.raises(Invalid, match=r"Metastore 2: Unknown host hive3\.lan"):
            check_metastores("thrift://hive1.lan,thrift://hive3.lan")
