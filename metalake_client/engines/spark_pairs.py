"""The Sparks that work with Iceberg's runtime, as they were run (docs/engines/spark.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from metalake_client.failures import Exit, Failure

ICEBERG_VERSION = "1.11.0"
KYUUBI = "org.apache.kyuubi:kyuubi-spark-connector-hive_2.12:1.9.0"
KYUUBIS_NEWEST = "3.5.4"  # later ones lack a method of Spark's that the connector calls
# By its own name, or by the one that Spark gives to what it fetched.
RUNTIME = re.compile(
    r"(?:org\.apache\.iceberg_)?iceberg-spark-runtime-(?P<spark>[\d.]+)_(?P<scala>[\d.]+)-(?P<version>.+)\.jar"
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A version of Spark, and the versions compatible with it."""

    spark: str
    scala: str
    java: int  # the oldest that Iceberg's runtime supports
    hive: str | None = None  # the connector for any number of metastores, if there is one

    @property
    def iceberg(self) -> str:
        return f"org.apache.iceberg:iceberg-spark-runtime-{self.spark}_{self.scala}:{ICEBERG_VERSION}"

    @property
    def says(self) -> str:
        return f"pyspark {self.spark} with {self.iceberg}"

    def bundle(self, storage: str) -> str:
        return f"org.apache.iceberg:iceberg-{storage}-bundle:{ICEBERG_VERSION}"


PAIRS = (
    Pair(spark="4.1", scala="2.13", java=17),
    Pair(spark="3.5", scala="2.12", java=17, hive=KYUUBI),
)
_WORK = " or ".join(pair.says for pair in PAIRS)


def pair_for(spark_version: str) -> Pair:
    """The versions compatible with Spark such as 4.1.4. Raises Failure that lists the supported ones."""
    for pair in PAIRS:
        if re.match(re.escape(pair.spark) + r"(\.|$)", spark_version):
            return replace(pair, hive=None) if pair.hive and _later(spark_version, KYUUBIS_NEWEST) else pair
    raise Failure(f"Spark {spark_version} cannot be used with Iceberg's runtime here; take {_WORK}.", Exit.USAGE)


def _later(version: str, than: str) -> bool:
    one, other = (list(map(int, re.findall(r"\d+", each))) for each in (version, than))
    return one > other


def require_runtime(pair: Pair, jars: Iterable[str]) -> None:
    """Raise Failure unless one of the names of jars is Iceberg's runtime for this Spark."""
    runtimes = [match for name in jars if (match := RUNTIME.fullmatch(name))]
    if not runtimes:
        raise Failure(f"None of the jars is Iceberg's runtime: add that of {pair.iceberg}.", Exit.USAGE)
    for runtime in runtimes:
        if (runtime["spark"], runtime["scala"]) != (pair.spark, pair.scala):
            raise Failure(f"{runtime[0]} is for another Spark than {pair.spark}; take {pair.says}.", Exit.USAGE)
