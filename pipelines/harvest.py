"""The job builtin-harvest: a refresh of a large outside catalog, distributed over many tasks.

The executors list and read the system, and deliver differences from the server's rows. Arguments: --catalog, --tasks
(parallel readers, 8), --accept-drops, --secrets (property:VARIABLE, comma-separated, for properties that the server
masks), and --patience (seconds to retry an unresponsive system or server). A restarted job resumes its run.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from metalake_client.engines.catalogs import MASK
from metalake_client.failures import Exit, Failure
from pipelines.crawlers import daemon
from pipelines.crawlers.delivery import ROOT, Listed, Part, Target, deliver_parts, list_schemas, place_of, say_whole
from pipelines.crawlers.systems import Json, System, system_of
from pipelines.job import Job, Progress, run, whole
from pipelines.sealed_secrets import Sealed, sealed

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

DEFAULTS = {"catalog": "", "tasks": "8", "accept-drops": "false", "secrets": "", "patience": "90"}
WAVE = 200  # schemas that are listed, read and completed together
TRIES = 4  # per task, if executors die
LOOK_EVERY = 1.0  # seconds


def main(given: Sequence[str]) -> int:
    return run(harvest, DEFAULTS, given)


def harvest(job: Job, arguments: dict[str, str]) -> None:
    """Run the harvest. Raises Failure."""
    if not arguments["catalog"]:
        raise Failure("Name the catalog: --catalog=NAME.", Exit.USAGE)
    tasks = whole("tasks", arguments["tasks"], 1, 1_000)
    patience = whole("patience", arguments["patience"], 1, 3_600)
    accepts = arguments["accept-drops"]
    if accepts not in ("true", "false"):
        raise Failure(f"--accept-drops is true or false, not {accepts[:80]!r}.", Exit.USAGE)
    catalog = job.client.get("metalakes", job.metalake, "catalogs", arguments["catalog"])["catalog"]
    system = system_of(catalog["provider"])
    properties = with_secrets(system, catalog["properties"], arguments["secrets"])
    context = spark_context(tasks, system)
    begun = job.client.call(
        "POST",
        *("metalakes", job.metalake, "catalogs", arguments["catalog"], "harvests"),
        body={"acceptDrops": accepts == "true"},
    )
    settings = {
        "url": job.url,
        "token": job.token,
        "metalake": job.metalake,
        "catalog": arguments["catalog"],
        "run": begun["refresh"]["id"],
        "turn": begun["turn"],
        "provider": system.provider,
        "properties": properties,
        "patience": patience,
    }
    with sealed(settings, is_local=is_local(context)) as box:
        Harvest(job, context, box, settings, tasks).go()


def with_secrets(system: System, properties: Json, given: str) -> dict[str, str]:
    """The properties, with masked secrets from the environment. Raises Failure naming a missing one."""
    variables = dict(system.secrets)
    for pair in filter(None, given.split(",")):
        name, colon, variable = pair.partition(":")
        if not (name and colon and variable):
            raise Failure(f"--secrets is property:VARIABLE, divided by commas, not {pair[:80]!r}.", Exit.USAGE)
        variables[name.strip()] = variable.strip()
    known = {name: str(value) for name, value in properties.items()}
    masked = [name for name, value in known.items() if value == MASK]
    return known | {name: _secret(name, variables[name]) for name in masked if name in variables}


def _secret(name: str, variable: str) -> str:
    if value := os.environ.get(variable):
        return value
    another = f"or name another variable by --secrets={name}:VARIABLE"
    raise Failure(f"The server shows no secret: set {variable} to the catalog's {name}, {another}.", Exit.USAGE)


def spark_context(tasks: int, system: System) -> SparkContext:
    """The active Spark context, or a new one; in local mode with one thread per task, as these are I/O-bound."""
    try:
        from pyspark import SparkConf, SparkContext
    except ImportError:
        raise Failure("There is no PySpark here: pip install pyspark, or start this by spark-submit.") from None
    if logging.getLogger("py4j").level == logging.NOTSET:
        logging.getLogger("py4j").setLevel(logging.INFO)
    conf = SparkConf()
    if str(conf.get("spark.master", "local")).startswith("local"):
        conf.setMaster(f"local[{tasks},{TRIES}]")
    conf.set("spark.ui.showConsoleProgress", "false")
    conf.set("spark.python.daemon.module", daemon.__name__).set(f"spark.executorEnv.{daemon.MODULE}", system.module)
    return SparkContext.getOrCreate(conf.setIfMissing("spark.app.name", "metalake-harvest"))


def is_local(context: SparkContext) -> bool:
    return str(context.master).startswith("local")


class Harvest:
    """One turn of a run: first the schemas, then their contents, in waves."""

    def __init__(self, job: Job, context: SparkContext, box: Sealed, settings: Json, tasks: int) -> None:
        self.job, self.context, self.box, self.tasks = job, context, box, tasks
        self.target, self.run_id = Target(settings), settings["run"]
        self.path = ("metalakes", job.metalake, "catalogs", settings["catalog"], "refreshes", self.run_id)
        self.progress = Progress(job)

    def go(self) -> None:
        try:
            run = self._all()
        except Failure as failure:
            hint = f"Refresh {self.run_id} goes on where it is when this is started again."
            raise Failure(f"{failure} {hint}", failure.exit_code) from None
        counts = ", ".join(f"{run[name]:,} {name}" for name in ("created", "changed", "dropped", "skipped"))
        print(f"{run['seen']:,} objects: {counts}.", flush=True)
        if run["heldBack"]:
            doubt = f"{run['heldBack']:,} objects are missing there, too many to believe it; none of them was dropped."
            print(f"{doubt} If they are really gone, start this with --accept-drops=true.", flush=True)

    def _all(self) -> Json:
        with self._watched():
            root = self._read([ROOT])[ROOT]
            names = sorted(root.names)
            for start in range(0, len(names), WAVE):
                listings = self._read(names[start : start + WAVE])
                self._require_right(self._over(list(listings.values())).mapPartitions(partial(say_whole, self.box)))
            return self.target.whole(replace(root, count=len(names)))

    def _read(self, schemas: list[str]) -> dict[str, Listed]:
        """Read and deliver these schemas; returns their listings, without those that are gone or already delivered."""
        tasks = self.tasks
        parts = self._over(schemas).mapPartitions(partial(list_schemas, self.box))
        spread = parts.map(partial(_placed, tasks)).partitionBy(tasks, _itself).values()
        listings: dict[str, Listed] = {}
        for each in self._require_right(spread.mapPartitions(partial(deliver_parts, self.box))):
            there = listings.get(each.schema)
            listings[each.schema] = each if there is None else _together(there, each)
        return listings

    def _over(self, items: list[Any]) -> RDD[Any]:
        return self.context.parallelize(items, max(1, min(self.tasks, len(items))))

    def _require_right(self, listed: RDD[Listed]) -> list[Listed]:
        """The results. Raises Failure for the first failed task."""
        results = listed.collect()
        for each in results:
            if each.wrong is not None:
                raise Failure(each.wrong.message, each.wrong.exit_code)
        return results

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Show the run's progress while tasks work; cancel them if the run was ended."""
        ended, failures = Event(), list[Failure]()

        def look() -> None:
            while not ended.wait(LOOK_EVERY):
                try:
                    self._look()
                except Failure as failure:
                    if failure.exit_code is not Exit.UNREACHABLE:
                        failures.append(failure)
                        self.context.cancelAllJobs()
                        return

        self.progress.stage("harvesting")
        watcher = Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        except Exception:
            if failures:
                raise failures[0] from None
            raise
        finally:
            ended.set()
            watcher.join()

    def _look(self) -> None:
        """Show the run's progress. Raises Failure if it has failed."""
        run = self.job.client.get(*self.path)["refresh"]
        if run["state"] == "failed":
            raise Failure(f"The refresh was ended: {run.get('error', '')}", Exit.CONFLICT)
        self.progress.total = max(run["expected"], run["seen"]) if run["expected"] else None
        self.progress.at(run["seen"])


def _placed(tasks: int, part: Part) -> tuple[int, Part]:
    return place_of(part, tasks), part


def _itself(number: int) -> int:
    return number


def _together(one: Listed, other: Listed) -> Listed:
    return replace(
        one,
        count=one.count + other.count,
        missing=[*one.missing, *other.missing],
        names=[*one.names, *other.names],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
