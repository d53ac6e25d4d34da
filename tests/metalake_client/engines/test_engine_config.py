"""`gcli engine config` against a real server: what it writes, says and refuses; and --watch, while servers die."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from tests import processes
from tests.metalake_client.gcli import Gcli
from tests.ports import free_port
from tests.servers import REPOSITORY, MetalakeServer
from tests.waiting import eventually

pytestmark = pytest.mark.slow

ENGINES = ("trino", "flink", "duckdb", "pyiceberg", "spark")
GLUE = "aws-region=us-east-1,aws-access-key-id=AKIASECRET,aws-secret-access-key=hush,aws-glue-catalog-id="
# Who runs the tests in the background of a shell hands down that interrupts are ignored.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from metalake_client.cli.app import main
sys.exit(main())
"""


@pytest.fixture
def lake(gcli: Gcli) -> Gcli:
    """With two catalogs, and schemas inside schemas in one."""
    gcli.ok("catalog", "create", "--name", "lake", "--provider", "lakehouse-iceberg")
    for name in ("sales:emea:2026", "travel"):
        gcli.ok("schema", "create", "--catalog", "lake", "--schema", name)
    gcli.ok(
        "catalog",
        "create",
        "--name",
        "my_glue",
        "--provider",
        "glue",
        "--properties",
        f"{GLUE}{uuid4().int % 10**12:012}",
    )
    return gcli


def config(gcli: Gcli, engine: str, folder: Path, *more: str) -> list[str]:
    return sorted(each["file"] for each in gcli.json("engine", "config", engine, "--folder", str(folder), *more))


def test_files_of_every_engine(lake: Gcli, tmp_path: Path) -> None:
    for engine in ENGINES:
        files = config(lake, engine, tmp_path / engine)
        assert sorted(os.listdir(tmp_path / engine)) == files
        written = "".join((tmp_path / engine / name).read_text() for name in files)
        assert "hush" not in written and "AKIASECRET" not in written and "lake" in written
    assert sorted(os.listdir(tmp_path / "trino")) == ["lake.properties"]
    sql = (tmp_path / "flink" / "metalake.sql").read_text()
    for name in ("`lake`", "`lake.sales`", "`lake.sales.emea`"):
        assert f"CREATE CATALOG IF NOT EXISTS {name} " in sql
    assert "travel" not in sql and "2026" not in sql


def test_files_go_to_a_folder_of_the_engine_if_nobody_names_one(
    lake: Gcli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for engine in ENGINES:
        told = lake.ok("engine", "config", engine)
        shown = re.search(r"\[default: (\S+)\]", lake.ok("engine", "config", engine, "--help").out)
        assert shown and f"Written to {shown[1]}; the engine needs METALAKE_TOKEN" in told.err
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    spark_and_trino = {"conf/spark-defaults.conf", "etc/catalog/lake.properties"}
    assert written == {"metalake.sql", "flink/metalake.sql", ".pyiceberg.yaml", "pyiceberg.sh"} | spark_and_trino


def test_what_is_left_out_is_told(lake: Gcli, tmp_path: Path) -> None:
    folder = str(tmp_path / "catalog")
    told = lake.ok("engine", "config", "trino", "--folder", folder)
    assert "Left out: Catalog my_glue cannot be in Trino 476" in told.err and "table-type-filter=hive" in told.err
    refused = lake("engine", "config", "trino", "--folder", folder, "--catalog", "my_glue")
    assert refused.code == 2 and refused.err.count("\n") == 1 and "table-type-filter=hive" in refused.err
    newer = config(lake, "trino", tmp_path / "catalog", "--trino-version", "477", "-c", "my_glue")
    assert newer == ["my_glue.properties", "my_glue_iceberg.properties"]
    assert sorted(os.listdir(folder)) == ["lake.properties", *newer]
    assert config(lake, "trino", tmp_path / "catalog") == sorted(
        ["lake.properties", "my_glue.properties", "my_glue_iceberg.properties"]
    )
    assert os.listdir(folder) == ["lake.properties"]


def test_one_line_for_what_is_wrong(lake: Gcli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "lake.properties").write_text("connector.name=tpch\n")
    lake.ok("catalog", "create", "--name", "LAKE", "--provider", "lakehouse-iceberg")
    folder = ("--folder", str(tmp_path / "new"))
    cases = [
        (("trino", "--folder", str(tmp_path / "file"), "-c", "lake"), 2, "cannot be written"),
        (("trino", "--folder", str(tmp_path / "others"), "-c", "lake"), 5, "was not written by gcli"),
        (("trino", *folder), 5, "LAKE and lake"),
        (("trino", *folder, "--catalog", "none"), 4, "none"),
        (("trino", *folder, "--trino-version", "400"), 2, "435"),
        (("trino", *folder, "--metalake", "nowhere"), 4, "nowhere"),
        (("trino", *folder, "--url", "http://127.0.0.1:9"), 6, "http://127.0.0.1:9"),
        (("spark", *folder, "--spark-version", "2.4"), 2, "2.4"),
        (("flink", *folder, "-c", "lake", "--flink-version", "two"), 2, "Flink two is no version"),
        (("presto", *folder), 2, "presto"),
    ]
    for arguments, code, words in cases:
        ended = lake("engine", "config", *arguments)
        assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1), (arguments, ended)
        assert words in ended.err and "Traceback" not in ended.err
    monkeypatch.setenv("METALAKE_PASSWORD", "wrong")
    assert lake("engine", "config", "trino", *folder).code == 3
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "others" / "lake.properties").read_text() == "connector.name=tpch\n"


# -- --watch


class Watch:
    """A `gcli engine config trino --watch` of its own process."""

    def __init__(self, folder: Path, log: Path) -> None:
        self.folder, self.log = folder, log
        command = [sys.executable, "-c", PROGRAM, "engine", "config", "trino"]
        command += ["--folder", str(folder), "--watch", "--every", "0.1"]
        with log.open("w") as out:
            self.process = subprocess.Popen(command, cwd=REPOSITORY, stdout=out, stderr=out, start_new_session=True)

    def comes_to(self, *files: str) -> bool:
        wanted = sorted(f"{name}.properties" for name in files)
        return eventually(lambda: self.folder.exists() and sorted(os.listdir(self.folder)) == wanted)

    def says(self, words: str) -> bool:
        return eventually(lambda: words in self.log.read_text())

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Callable[[], Watch]]:
    started: list[Watch] = []

    def start() -> Watch:
        started.append(Watch(tmp_path / "catalog", tmp_path / f"watch-{len(started)}.log"))
        return started[-1]

    yield start
    for each in started:
        processes.kill(each.process)


class Gate:
    """A way to the server that can be shut, as if it had died, and opened again."""

    def __init__(self, server: MetalakeServer) -> None:
        self.server, self.port = server, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.open()

    def open(self) -> None:
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def shut(self) -> None:
        for each in (self._listening, *self._ends):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near = listening.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.server.port))
                self._ends += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, goal: socket.socket) -> None:
        with suppress(OSError):
            while some := source.recv(65_536):
                goal.sendall(some)
            goal.shutdown(socket.SHUT_WR)


@pytest.fixture
def gate(metalake_server: MetalakeServer) -> Iterator[Gate]:
    opened = Gate(metalake_server)
    yield opened
    opened.shut()


def test_watch_follows_the_catalogs_and_outlives_the_server(
    gcli: Gcli, gate: Gate, watch: Callable[[], Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(name: str) -> None:
        gcli.ok("catalog", "create", "--catalog", name, "--provider", "lakehouse-iceberg")

    monkeypatch.setenv("METALAKE_URL", gate.url)
    create("one")
    watching = watch()
    assert watching.comes_to("one") and watching.says("Watching")
    create("two")
    assert watching.comes_to("one", "two")
    gcli.ok("catalog", "drop", "--catalog", "one", "--force", "--yes")
    create("ONE")
    assert watching.comes_to("one", "two")
    gcli.ok("catalog", "drop", "--catalog", "two", "--force", "--yes")
    assert watching.comes_to("one") and "warehouse=ONE\n" in (watching.folder / "one.properties").read_text()
    gate.shut()
    assert watching.says("Nobody answers")
    assert watching.comes_to("one") and watching.process.poll() is None
    gate.open()
    assert watching.says("It works again.")
    create("three")
    assert watching.comes_to("one", "three")
    assert watching.interrupt() == 130
    log = watching.log.read_text()
    assert log.endswith("gcli: Interrupted.\n") and "Traceback" not in log and log.count("Nobody answers") == 1
    assert watching.comes_to("one", "three")


def test_watch_ends_where_waiting_does_not_help(
    gcli: Gcli, watch: Callable[[], Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METALAKE_METALAKE", "nowhere")
    watching = watch()
    assert watching.process.wait(60) == 4
    assert watching.log.read_text().count("\n") == 1 and not watching.folder.exists()
