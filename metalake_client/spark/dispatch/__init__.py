"""The jar of the catalog that shows Iceberg's and Hive's tables by one name, compiled once for each Spark.

Spark carries the compiler of Scala, so neither a JDK nor a download is needed: docs/engines/spark-mixed.md.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from metalake_client.failures import Exit, Failure
from metalake_client.spark.java import java_program

CATALOG = "io.metalake.spark.MixedCatalog"
SOURCES = tuple(sorted(Path(__file__).parent.glob("*.scala")))
JAVA_OPTIONS = ("-Xss4m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # a compiler's deep calls, and a short life


def dispatch_jar(spark_jars: Path, runtime_jar: Path) -> Path:
    """The jar for a Spark, given the folder of its jars and Iceberg's runtime for it; some 10 s the first time.

    It is kept in $XDG_CACHE_HOME/metalake, or else ~/.cache/metalake. Raises Failure where it cannot be made.
    """
    jar = _cache() / f"{_key(spark_jars, runtime_jar)}.jar"
    if not jar.exists():
        try:
            jar.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=jar.parent) as place:
                made = Path(place) / jar.name
                _compile(spark_jars, runtime_jar, made)
                made.replace(jar)  # atomically, even if others create it meanwhile
        except OSError as problem:
            raise Failure(f"The jar for Spark cannot be kept in {jar.parent}: {problem.strerror}.") from None
    return jar


def _key(spark_jars: Path, runtime_jar: Path) -> str:
    """Names what the jar depends on: the source, Spark and Iceberg."""
    spark = sorted(path.name for path in spark_jars.glob("spark-catalyst_*.jar"))
    if not spark or not any(spark_jars.glob("scala-compiler-*.jar")):
        raise Failure(f"{spark_jars} is not the folder of Spark's jars.", Exit.USAGE)
    if not runtime_jar.is_file():
        raise Failure(f"Iceberg's runtime for Spark is not there: {runtime_jar}.", Exit.USAGE)
    parts = [*(source.read_text() for source in SOURCES), *spark, runtime_jar.name]
    return "mixed-catalog-" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _compile(spark_jars: Path, runtime_jar: Path, jar: Path) -> None:
    java = java_program("Spark needs Java 17 or newer")
    command = [java, *JAVA_OPTIONS, "-cp", f"{spark_jars}/*", "scala.tools.nsc.Main", "-usejavacp", "-nowarn"]
    command += ["-classpath", str(runtime_jar), "-d", str(jar), *map(str, SOURCES)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode or not jar.is_file():
        lines = [line for line in (ended.stdout + ended.stderr).splitlines() if "error" in line.lower()]
        raise Failure(f"Spark's compiler did not make the catalog's jar: {(lines or ['it said nothing'])[0].strip()}")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "metalake"
