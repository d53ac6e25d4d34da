"""Builds the command of a template and its values: checked when a template is written, and again when a run starts.

No shell is involved: the command is a list of arguments, and the environment is built from scratch.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from jobs import spark
from jobs.built_in import BuiltIn
from jobs.definition import Content, placeholders
from jobs.places import resolve
from jobs.spark import SparkFiles
from metalake.errors import Invalid, Unsupported
from metalake.wire import quote

SEARCHED = "/usr/local/bin:/usr/bin:/bin"  # PATH of a job
SHARED = ("METALAKE_SPOOL", "METALAKE_KEY_FILE")  # of built-in jobs with their executors
OURS = ("PATH", "HOME", "TMPDIR", "LANG", "JAVA_HOME", "PYTHONPATH", "PYSPARK_PYTHON", "SPARK_LOCAL_DIRS")


@dataclass(frozen=True)
class Command:
    """A command to start. `links` are symlinks to create in its working folder: names with their target files."""

    arguments: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)


def check(job_type: str, content: Content) -> None:
    """Raise Invalid naming the part of a template's content that is not allowed."""
    placeholders(content)
    _check_environment(content.get("environments", {}))
    _files(job_type, content)
    if job_type == "spark":
        spark.check_settings(content.get("configs", {}), filled=False)


def of_template(job_type: str, content: Content, run_id: int, folder: str) -> Command:
    """The command of a template with its placeholders filled. Raises Invalid, Unsupported."""
    _check_environment(content.get("environments", {}))
    program, beside, with_files = _files(job_type, content)
    environment = content.get("environments", {}) | _environment(folder)
    if job_type == "shell":
        links = {path.name: str(path) for path in beside}
        return Command([str(program), *content.get("arguments", [])], environment, links)
    spark.check_settings(content.get("configs", {}))
    _require_java()
    arguments = spark.command(
        program,
        content.get("arguments", []),
        name=f"metalake-{run_id}",
        class_name=content.get("className"),
        with_files=with_files,
        configs=content.get("configs"),
    )
    return Command(arguments, environment | _of_spark(folder))


def of_built_in(built_in: BuiltIn, content: Content, run_id: int, folder: str) -> Command:
    """The command of a built-in template with its placeholders filled. Raises Unsupported without Java or Spark."""
    environment = _environment(folder) | {"PYTHONPATH": str(settings.BASE_DIR)}
    arguments = [*content["arguments"]]
    if not built_in.on_spark:
        return Command([sys.executable, "-s", "-m", built_in.module, *arguments], environment)
    _require_java()
    program = Path(settings.BASE_DIR, *built_in.module.split(".")).with_suffix(".py")
    name, with_files = f"metalake-{run_id}", SparkFiles([Path(jar) for jar in settings.METALAKE_SPARK_JARS])
    configs = {} if with_files.jars else spark.runtime_settings()
    configs |= {"spark.executorEnv.PYTHONPATH": str(settings.BASE_DIR)}  # executors elsewhere load the module, too
    shared = {name: value for name in SHARED if (value := getattr(settings, name))}
    command = spark.command(program, arguments, name=name, with_files=with_files, configs=configs)
    return Command(command, environment | _of_spark(folder) | shared)


def _files(job_type: str, content: Content) -> tuple[Path, list[Path], SparkFiles]:
    """The program, the scripts of a shell job, and the files of a Spark job. Raises Invalid for a file not allowed."""
    program = resolve(content["executable"], "executable", runs=job_type == "shell")
    lists = {
        name: [resolve(given, f"{name}[{place}]") for place, given in enumerate(content.get(name, []))]
        for name in ("scripts", "jars", "files", "archives")
    }
    for name, paths in lists.items():
        if len({path.name for path in paths}) < len(paths):
            raise Invalid(f"{name}: two of the files have one name.", kind="job_template")
        if odd := next((path for path in paths if set(",#") & set(str(path))), None):
            raise Invalid(f"{name}: {quote(str(odd))} has a comma or #, which Spark divides by.", kind="job_template")
    if job_type == "spark":
        spark.check_program(program, content.get("className"))
    return program, lists["scripts"], SparkFiles(lists["jars"], lists["files"], lists["archives"])


def _check_environment(given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in settings.METALAKE_JOB_ENVIRONMENT or name in OURS or name.startswith("METALAKE_"):
            some = ", ".join(settings.METALAKE_JOB_ENVIRONMENT) or "none"
            raise Invalid(
                f"environments: {quote(name)} cannot be set, since programs load code by such names: "
                f"METALAKE_JOB_ENVIRONMENT names those that templates may set ({some}).",
                kind="job_template",
            )


def _environment(folder: str) -> dict[str, str]:
    return {"PATH": SEARCHED, "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8"}


def _of_spark(folder: str) -> dict[str, str]:
    java = {"JAVA_HOME": home} if (home := os.environ.get("JAVA_HOME")) else {}
    return {"SPARK_LOCAL_DIRS": folder, "PYSPARK_PYTHON": sys.executable} | java


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    places = f"{home}/bin:{SEARCHED}" if home else SEARCHED
    if shutil.which("java", path=places) is None:
        raise Unsupported("There is no Java here, which Spark runs on: install one, or set JAVA_HOME.")
