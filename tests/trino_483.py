"""Trino 483 beside the tests: a coordinator of its own test classes, 460 jars, 490 MB once.

Maven Central has no server of it, and of its connectors the Iceberg and the Hive one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import processes
from tests.confined import confined
from tests.jars import JarsMissing, jars
from tests.parts import jdk_25, needs
from tests.ports import free_port
from tests.trino import Trino, write_catalogs

PROGRAM = Path(__file__).with_name("TrinoOfJars.java")
JVM = [
    *("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--add-modules", "jdk.incubator.vector"),
    *("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"),
]


@contextmanager
def running_trino_483(
    folder: Path, catalogs: Mapping[str, str], environment: Mapping[str, str], places: Sequence[Path]
) -> Iterator[Trino]:
    """Ready in some 20 s, with the catalogs of these files; the test skips where it cannot be had.

    It can change nothing but `folder` and the `places`, of warehouses.
    """
    for part in ("jdk 25", "confinement"):
        needs(part)
    try:
        classpath = os.pathsep.join(map(str, jars("trino-483")))
    except JarsMissing as missing:
        pytest.skip(f"needs Trino 483: {missing}")
    files = write_catalogs(folder / "catalog", catalogs)
    port, log = free_port(), folder / "trino.log"
    started = Trino(f"http://127.0.0.1:{port}")
    options = [*JVM, f"-Djava.io.tmpdir={folder}", f"-Djna.tmpdir={folder}", "-cp", classpath]
    command = [str(part) for part in (f"{jdk_25()}/bin/java", *options, PROGRAM, port, *files)]
    process = processes.start(
        "Trino 483",
        confined([folder, *places], *command, as_user=False),  # it writes beside the server
        log,
        lambda: "READY" in log.read_text(errors="replace") and started.is_ready(),
        300,
        cwd=folder,
        env=os.environ | dict(environment),
    )
    try:
        yield started
    finally:
        processes.kill(process)
