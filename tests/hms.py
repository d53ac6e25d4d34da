"""Real Hive Metastores, 2.3.10 and 2.3.9, each a Java process on a database and a warehouse folder of its own.

They differ where it matters: 2.3.10 enforces the parameter that an alter expects, 2.3.9 ignores it without a word,
so only its lock protects a writer.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import processes
from tests.confined import confined, give
from tests.jars import jars, needs_jars, only_one, pyspark_jars
from tests.names import own_name
from tests.parts import needs
from tests.ports import free_port
from tests.shared import shared_folder

if TYPE_CHECKING:
    from hive_metastore.ThriftHiveMetastore import Client

NEW, OLD = "2.3.10", "2.3.9"
JAVA = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
# Two calls that wait for each other are told apart in 2 s instead of 20, which no client of the tests waits for.
DERBY = ["-Dderby.stream.error.file=derby.log", "-Dderby.locks.deadlockTimeout=2"]
SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:metastore_db;create=true",
    "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.connectionPoolingType": "HikariCP",  # without BoneCP's jar lock() would end the connection
    "datanucleus.connectionPool.maxPoolSize": "50",  # a call that finds none of the usual 10 free waits for 30 s
    "hive.metastore.schema.verification": "false",
    "hive.metastore.uris": "",
    "hive.metastore.execute.setugi": "false",
    "hive.metastore.server.min.threads": "2",
    "hive.async.log.enabled": "false",  # the asynchronous log needs a jar that is not there
}


@dataclass
class HiveMetastore:
    """A metastore in a process group of its own; `folder` keeps its database, warehouse and log (hms.log).

    It can change nothing beside that folder, whatever it is told to delete: tests/confined.py.
    """

    version: str
    folder: Path
    port: int
    host: str = "127.0.0.1"
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def uri(self) -> str:
        return f"thrift://{self.host}:{self.port}"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @contextmanager
    def client(self, timeout: float = 90) -> Iterator[Client]:
        """A thrift client on a connection of its own; raises thrift's TTransportException where nothing answers."""
        from hive_metastore.ThriftHiveMetastore import Client  # most of a second, so not for every start of pytest
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport

        connection = TSocket(self.host, self.port)
        connection.setTimeout(timeout * 1000)
        transport = TBufferedTransport(connection)
        transport.open()
        try:
            yield Client(TBinaryProtocol(transport))
        finally:
            transport.close()

    def create_database(self, prefix: str = "flights") -> str:
        """An empty database with a name that no other test uses, in the warehouse; returns the name."""
        from hive_metastore.ttypes import Database

        name = own_name(prefix)
        with self.client() as client:
            client.create_database(Database(name=name, locationUri=(self.warehouse / f"{name}.db").as_uri()))
        return name

    def start(self, timeout: float = 90) -> None:
        """Start it, on the data that an earlier start left, and wait until it answers a call.

        Raises AssertionError with the end of its log when it does not.
        """
        assert self.process is None, "already running"
        classpath = _classpath(self.version, self.folder)
        if not (self.folder / "metastore_db").exists():
            _prepare(self.folder, classpath)
        command = [*JAVA, *DERBY, f"-Djava.io.tmpdir={self.folder}"]
        command += ["-Dhive.root.logger=console", "-cp", classpath]
        command += ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port)]
        log = self.folder / "hms.log"
        self.process = processes.start(
            "the metastore", confined([self.folder], *command), log, self.is_ready, timeout, cwd=self.folder
        )

    def is_ready(self) -> bool:
        from thrift.Thrift import TException

        try:
            socket.create_connection((self.host, self.port), timeout=5).close()  # thrift would log every refusal
            with self.client(timeout=5) as client:
                return "default" in client.get_all_databases()
        except (TException, OSError):
            return False

    def kill(self) -> None:
        """SIGKILL to its process group, as a crash of its machine would; `start` goes on with what it kept."""
        if self.process is not None:
            processes.kill(self.process)
            self.process = None


@contextmanager
def running_hms(version: str = NEW, folder: Path | None = None) -> Iterator[HiveMetastore]:
    """Start a metastore in some 6 s; end it and, unless the folder was given, remove what it kept.

    Raises AssertionError with its log when it does not start, JarsMissing when a jar of it cannot be had.
    """
    own = folder or Path(tempfile.mkdtemp(prefix="metalake-hms-"))
    own.mkdir(parents=True, exist_ok=True)
    server = HiveMetastore(version, own, free_port())
    try:
        server.start()
        yield server
    finally:
        server.kill()
        if folder is None:
            shutil.rmtree(own, ignore_errors=True)


def _classpath(version: str, configuration: Path) -> str:
    if version == NEW:
        return f"{configuration}:{pyspark_jars()}/*"
    first = jars(f"hive-{version}")
    replaced = {jar.name.partition("-2.3.")[0] for jar in first} | {"libthrift-0.16.0.jar"}
    rest = [jar for jar in sorted(pyspark_jars().glob("*.jar")) if jar.name.partition("-2.3.")[0] not in replaced]
    return ":".join(map(str, [configuration, *first, *rest]))


def _prepare(folder: Path, classpath: str) -> None:
    """Write the settings, and make the tables of the lock manager, which the metastore expects to be there."""
    settings = SETTINGS | {"hive.metastore.warehouse.dir": (folder / "warehouse").as_uri()}
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in settings.items()
    )
    (folder / "hive-site.xml").write_text(f"<configuration>\n{properties}</configuration>\n")
    (folder / "warehouse").mkdir(exist_ok=True)
    give(folder, folder / "warehouse")
    script = folder / "locks.sql"
    script.write_text(
        "connect 'jdbc:derby:metastore_db;create=true';\n" + Path(__file__).with_name("hms.sql").read_text()
    )
    command = [*JAVA, *DERBY, "-cp", f"{pyspark_jars()}/*", "org.apache.derby.tools.ij", str(script)]
    made = subprocess.run(
        confined([folder], *command),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0 and "ERROR" not in made.stdout, (
        f"Derby did not take hms.sql:\n{made.stdout}{made.stderr}"
    )


# -- Fixtures


@pytest.fixture(scope="session")
def hms(metastores: Path) -> Iterator[HiveMetastore]:
    """Hive Metastore 2.3.10, shared by all tests of a run: keep to databases of your own, and do not stop it."""
    with _shared_hms(NEW, metastores) as server:
        yield server


@pytest.fixture(scope="session")
def old_hms(metastores: Path) -> Iterator[HiveMetastore]:
    """Hive Metastore 2.3.9, shared like `hms`."""
    with _shared_hms(OLD, metastores) as server:
        yield server


@pytest.fixture(scope="session", params=[NEW, OLD])
def any_hms(request: pytest.FixtureRequest) -> HiveMetastore:
    """The test runs twice: on `hms` and on `old_hms`."""
    server: HiveMetastore = request.getfixturevalue("hms" if request.param == NEW else "old_hms")
    return server


newer_daily = pytest.mark.parametrize("any_hms", [NEW, pytest.param(OLD, marks=pytest.mark.long)], indirect=True)
"""For a test of what both answer alike, in a file that has others which ask the older one every day."""


@pytest.fixture
def start_hms() -> Iterator[Callable[..., HiveMetastore]]:
    """Start a metastore of the test's own, start_hms("2.3.9"), to kill and start again; all end with the test."""
    with ExitStack() as servers:

        def start(version: str = NEW) -> HiveMetastore:
            needs_hms(version)
            return servers.enter_context(running_hms(version))

        yield start


@pytest.fixture(scope="session")
def metastores() -> Iterator[Path]:
    """Where the metastores of this run of the suite, or of this process where nothing is shared, have their folders.

    They hold what hundreds of tests make while several ask, so a look at all of it is given more time than usual.
    """
    with ExitStack() as kept, pytest.MonkeyPatch.context() as patch:
        patch.setattr("providers.hive.folders.LOOK_SECONDS", 25.0)  # of the 30 that a call has
        base = shared_folder()
        if base is None:
            base = Path(tempfile.mkdtemp(prefix="metalake-hms-"))
            kept.callback(shutil.rmtree, base, ignore_errors=True)
        base.chmod(0o711)  # access(2), which Java asks, knows nothing of the right to read all that they keep
        for version in (NEW, OLD):
            (base / f"hms-{version}" / "warehouse").mkdir(parents=True, exist_ok=True)
        yield base


@contextmanager
def _shared_hms(version: str, base: Path) -> Iterator[HiveMetastore]:
    """The metastore of this run of the suite, or one of this process where nothing is shared."""
    needs_hms(version)
    folder, port = base / f"hms-{version}", base / f"hms-{version}.port"
    if shared_folder() is None:
        with running_hms(version, folder) as server:
            yield server
        return
    with only_one(base / f"hms-{version}.lock"):
        if not port.exists():
            server = HiveMetastore(version, folder, free_port())
            server.start()
            assert server.process is not None
            port.with_suffix(".pid").write_text(str(server.process.pid))  # by which tests.run ends it
            port.write_text(str(server.port))
    yield HiveMetastore(version, folder, int(port.read_text()))


def needs_hms(version: str) -> None:
    """Skip the running test, saying what to install, where a part of this version is missing."""
    needs("java")
    needs("spark")
    needs("confinement")
    if version == OLD:
        needs_jars(f"hive-{OLD}")
