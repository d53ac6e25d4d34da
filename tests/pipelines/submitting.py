"""A job started by spark-submit: processes that can change files in the folders of their test alone, and are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tests.confined import confined
from tests.jars import jars, pyspark_jars
from tests.servers import REPOSITORY, MetalakeServer
from tests.spark import foreign_python

EXECUTOR, WORKER = "CoarseGrainedExecutorBackend", "pyspark.worker"
# A mount that only the process and its children see.
WITH_A_DISK = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"', "sh")
JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.executorEnv.PYTHONPATH": str(REPOSITORY),
    "spark.sql.shuffle.partitions": "2",
}


def _home_in(folder: Path) -> Path:
    """Spark in the folder, since a cluster on one machine works in a folder of its home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    for part in pyspark_jars().parent.iterdir():
        if part.name != "work" and not (home / part.name).is_symlink():
            (home / part.name).symlink_to(part)
    return home


class Submitted:
    """spark-submit of a module of `pipelines`, which prints into `folder`/log."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        master: str = "local[1]",
        warehouses: Sequence[Path] = (),
        settings: Mapping[str, str] | None = None,
        disk: int | None = None,
    ) -> None:
        """`disk` are the bytes that it may fill of its folder, where it then has a disk of its own."""
        self.folder, self.log = folder, folder / "log"
        options = ["--master", master, "--jars", ",".join(map(str, jars("iceberg-spark")))]
        for key, value in {**SETTINGS, **(settings or {})}.items():
            options += ["--conf", f"{key}={value}"]
        program = REPOSITORY.joinpath(*module.split(".")).with_suffix(".py")
        submit = str(pyspark_jars().parent / "bin" / "spark-submit")
        own = {
            "PYTHONPATH": str(REPOSITORY),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PATH": f"{foreign_python(folder)}:{os.environ['PATH']}",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder),
            "SPARK_HOME": str(_home_in(folder)),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder}",
        }
        command = confined([folder, *warehouses], submit, *options, str(program), *arguments, as_user=False)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command if disk is None else [*WITH_A_DISK, str(disk), str(folder), *command],
                env={**os.environ, **own, **environment},
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def ends(self, seconds: float = 300) -> int:
        """The exit code. Raises TimeoutExpired."""
        return self.process.wait(seconds)

    def has_ended(self, seconds: float) -> bool:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """All of it at once, as the end of its machine."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def parts(self, what: str) -> list[psutil.Process]:
        """The executors, or the Python processes that execute tasks and their daemon."""
        found = []
        for each in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if any(what in word for word in each.cmdline()):
                    found.append(each)
            except psutil.Error:
                continue
        return found

    def kill_some(self, chance: random.Random, server: MetalakeServer) -> str:
        """SIGKILL to the driver with all below it, to an executor, to what executes Python, or to the server.

        What was killed; executors and Python come back by themselves, and the server is started again.
        """
        what = chance.choice(("driver", "executor", "worker", "server"))
        if what == "server":
            server.kill()
            server.start()
            return what
        parts = self.parts({"executor": EXECUTOR, "worker": WORKER}.get(what, "")) if what != "driver" else []
        if not parts:
            self.kill()
            return "driver"
        chance.choice(parts).kill()
        return what
