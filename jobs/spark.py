"""Spark jobs: the settings that a template may give, and the spark-submit command.

Spark's settings can name classes, Java options and files to load, each of which can run code on the machine; so only
these few, which limit resources, are allowed. A class has to be in the template's own jar: Spark itself has classes
that run any file.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

SETTINGS = frozenset(
    {
        "spark.cores.max", "spark.default.parallelism", "spark.driver.cores", "spark.driver.maxResultSize",
        "spark.driver.memory", "spark.driver.memoryOverhead", "spark.dynamicAllocation.enabled",
        "spark.dynamicAllocation.initialExecutors", "spark.dynamicAllocation.maxExecutors",
        "spark.dynamicAllocation.minExecutors", "spark.executor.cores", "spark.executor.instances",
        "spark.executor.memory", "spark.executor.memoryOverhead", "spark.memory.fraction", "spark.network.timeout",
        "spark.sql.adaptive.enabled", "spark.sql.ansi.enabled", "spark.sql.files.maxPartitionBytes",
        "spark.sql.session.timeZone", "spark.sql.shuffle.partitions", "spark.speculation", "spark.task.maxFailures",
        "spark.ui.enabled",
    }
)  # fmt: skip
RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"  # for the Spark in requirements-dev.txt
_VALUE = re.compile(r"[\w.+:/-]{0,64}", re.ASCII)
_CLASS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class SparkFiles:
    jars: Sequence[Path] = ()
    files: Sequence[Path] = ()
    archives: Sequence[Path] = ()


def check_settings(configs: Mapping[str, str], *, filled: bool = True) -> None:
    """Raise Invalid for a setting that templates may not give, and for a malformed value."""
    for name, value in configs.items():
        if name not in SETTINGS:
            raise Invalid(
                f"configs: {quote(name)} cannot be set by a template; what can is {', '.join(sorted(SETTINGS))}.",
                kind="job_template",
            )
        if filled and not _VALUE.fullmatch(value):
            raise Invalid(f"configs.{name}: {quote(value)} is no value of it.", kind="job_template")


def check_program(program: Path, class_name: str | None) -> None:
    """Raise Invalid unless the program is a Python file, or a jar that has the class."""
    if program.suffix == ".py":
        if class_name is not None:
            raise Invalid("className: a Python file has no class; leave it out.", kind="job_template")
        return
    if program.suffix != ".jar":
        raise Invalid("executable: Spark runs a .jar or a .py file.", kind="job_template")
    if class_name is None:
        raise Invalid("className is required with a jar.", kind="job_template")
    try:
        with zipfile.ZipFile(program) as jar:
            names = set(jar.namelist())
    except (OSError, zipfile.BadZipFile):
        raise Invalid(f"executable: {quote(program.name)} cannot be read as a jar.", kind="job_template") from None
    if not _CLASS.fullmatch(class_name) or f"{class_name.replace('.', '/')}.class" not in names:
        raise Invalid(f"className: {program.name} has no class {quote(class_name)}.", kind="job_template")


def submit() -> Path:
    """The path of spark-submit: METALAKE_SPARK_SUBMIT, or the installed PySpark's. Raises Unsupported."""
    if given := settings.METALAKE_SPARK_SUBMIT:
        program = Path(given)
    else:
        spark = find_spec("pyspark")
        program = Path(spark.origin).parent / "bin" / "spark-submit" if spark and spark.origin else Path()
    if not program.is_file():
        raise Unsupported(
            "There is no spark-submit here: install PySpark, or set METALAKE_SPARK_SUBMIT to its path.",
            kind="job_template",
        )
    return program


def runtime_settings() -> dict[str, str]:
    """The settings that make Spark download Iceberg's runtime, once for all runs."""
    return {
        "spark.jars.packages": RUNTIME,
        "spark.jars.ivy": str(settings.METALAKE_HOME / "ivy"),
    }


def command(
    program: Path,
    arguments: Sequence[str],
    *,
    name: str,
    class_name: str | None = None,
    with_files: SparkFiles = SparkFiles(),
    configs: Mapping[str, str] | None = None,
) -> list[str]:
    """The spark-submit command line; each option is one item, followed by its value."""
    options = ["--master", settings.METALAKE_SPARK_MASTER, "--name", name]
    if class_name:
        options += ["--class", class_name]
    for option in ("jars", "files", "archives"):
        if paths := getattr(with_files, option):
            options += [f"--{option}", ",".join(map(str, paths))]
    for key, value in sorted((configs or {}).items()):
        options += ["--conf", f"{key}={value}"]
    return [str(submit()), *options, str(program), *arguments]
