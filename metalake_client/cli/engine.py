"""`gcli engine config`: what each catalog needs in an engine, as files, kept current with --watch."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from metalake_client.cli.commands import add, complete, family, option
from metalake_client.cli.output import print_done, print_rows
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

if TYPE_CHECKING:
    from metalake_client.engines.catalogs import EngineCatalog
    from metalake_client.engines.rendered import Rendered

Catalogs = list["EngineCatalog"]
Render = Callable[..., "Rendered"]

COMMON = [
    option(
        "catalog",
        list[str],
        "--catalog",
        "-c",
        default=(),
        help="Only this catalog; repeatable.",
        autocompletion=complete("catalog"),
    ),
    option("watch", bool, "--watch", default=False, help="Go on, and keep the files current."),
    option("every", float, "--every", default=10.0, min=0.1, help="Seconds between two looks, with --watch."),
]
PASSING = frozenset({Exit.UNREACHABLE, Exit.FAILED, Exit.CONFLICT})
"""Failures after which --watch goes on: a server that does not answer, and what somebody else can set right."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine that has a command; `render` takes the session, its catalogs, the folder and the `options`.

    `folder` is where its files go if nobody says it, which the engine looks at where it can be.
    """

    name: str
    help: str
    folder: str
    render: Render
    options: list[Parameter] = field(default_factory=list)


def add_to(app: typer.Typer) -> None:
    engines = family(app, "engine", "What engines need to use the catalogs of a metalake, as files.")
    config = family(engines, "config", "Write what an engine needs, and keep it current.")
    for each in ENGINES:
        help = "Where the files go; it is made if it is not there."
        folder = option("folder", Path, "--folder", "-f", default=Path(each.folder), help=help)
        add(config, each.name, partial(configure, each), [folder, *COMMON, *each.options], help=each.help)


# -- What each engine is rendered from; imported when asked for, since --help has no use for it


def _trino(session: Session, catalogs: Catalogs, folder: Path, trino_version: int) -> Rendered:
    from metalake_client.engines import trino

    return trino.render(session.profile.url, session.metalake, catalogs, version=trino_version)


def _flink(session: Session, catalogs: Catalogs, folder: Path, flink_folder: str, flink_version: str) -> Rendered:
    from metalake_client.engines import flink, schemas

    parents = schemas.parents_of(session.client, session.metalake, catalogs)
    seen = flink_folder or str(folder.absolute())
    where = {"folder": seen, "version": flink_version}
    return flink.render(session.profile.url, session.metalake, catalogs, parents=parents, **where)


def _duckdb(session: Session, catalogs: Catalogs, folder: Path) -> Rendered:
    from metalake_client.engines import duckdb

    return duckdb.render(session.profile.url, session.metalake, catalogs)


def _pyiceberg(session: Session, catalogs: Catalogs, folder: Path) -> Rendered:
    from metalake_client.engines import pyiceberg

    return pyiceberg.render(session.profile.url, session.metalake, catalogs)


def _spark(
    session: Session, catalogs: Catalogs, folder: Path, spark_version: str, hive_catalog: str | None
) -> Rendered:
    from metalake_client.engines import spark_defaults

    url, metalake = session.profile.url, session.metalake
    return spark_defaults.render(url, metalake, catalogs, version=spark_version, hive_catalog=hive_catalog)


ENGINES = [
    Engine(
        name="trino",
        folder="etc/catalog",
        help="Write a catalog file for each catalog (Trino's etc/catalog).",
        render=_trino,
        options=[option("trino_version", int, "--trino-version", default=476, help="As in 476; from 435 on.")],
    ),
    Engine(
        name="flink",
        folder="flink",
        help="Write metalake.sql with a CREATE CATALOG for each catalog, and for each schema that holds others.",
        render=_flink,
        options=[
            option(
                "flink_folder", str, "--flink-folder", default="", help="The folder's path where Flink runs, if other."
            ),
            option("flink_version", str, "--flink-version", default="2.1", help="As in 1.20, which has Hive's tables."),
        ],
    ),
    Engine(name="duckdb", folder=".", help="Write metalake.sql with an ATTACH for each catalog.", render=_duckdb),
    Engine(
        name="pyiceberg",
        folder=".",
        help="Write .pyiceberg.yaml, and pyiceberg.sh with the variables of its secrets.",
        render=_pyiceberg,
    ),
    Engine(
        name="spark",
        folder="conf",
        help="Write spark-defaults.conf; in Python, metalake_session does more.",
        render=_spark,
        options=[
            option("spark_version", str, "--spark-version", default="4.1", help="4.1 or 3.5."),
            option("hive_catalog", str | None, "--hive-catalog", default=None, help="Whose metastore is Spark's own."),
        ],
    ),
]


# -- Once, or again and again


def configure(
    engine: Engine, session: Session, catalog: list[str], folder: Path, watch: bool, every: float, **options: Any
) -> None:
    render = partial(_rendered, engine, session, folder, options, catalog)
    first = render(is_first=True)
    _write(session, folder, first, catalog, shows_all=not watch)
    if watch:
        _watch(session, folder, render, catalog, every)


def _watch(session: Session, folder: Path, render: Render, only: Collection[str], every: float) -> None:
    print_done(f"Watching {session.profile.url}: {folder} is kept current until you press Ctrl-C.")
    last_failure = ""
    while True:
        time.sleep(every)
        try:
            _write(session, folder, render(is_first=False), only, shows_all=False)
        except Failure as failure:
            if failure.exit_code not in PASSING:
                raise
            if str(failure) != last_failure:
                print_done(f"{failure} The files stay as they are, and the watch goes on.")
            last_failure = str(failure)
        else:
            if last_failure:
                print_done("It works again.")
            last_failure = ""


def _rendered(
    engine: Engine, session: Session, folder: Path, options: dict[str, Any], only: Collection[str], *, is_first: bool
) -> Rendered:
    """Raises Failure, the first time also for a catalog that was named and cannot be there."""
    from metalake_client.engines.catalogs import catalogs_of

    known = catalogs_of(session.client, session.metalake)
    wanted = [each for each in known if not only or each.name in only]
    if is_first and (absent := sorted(set(only) - {each.name for each in wanted})):
        raise Failure(f"There is no catalog {absent[0]} in {session.metalake} that you may use.", Exit.MISSING)
    made: Rendered = engine.render(session, wanted, folder, **options)
    if is_first and only and made.refused:
        raise Failure(next(iter(made.refused.values())), Exit.USAGE)
    return made


def _write(session: Session, folder: Path, made: Rendered, only: Collection[str], *, shows_all: bool) -> None:
    """Write, and tell what changed; what people must know of the catalogs is told where something did."""
    from metalake_client.engines.file_writer import write

    done = write(folder, made, only)
    rows = [{"file": name, "change": "written" if name in done.changed else "kept"} for name in made.files]
    rows += [{"file": name, "change": "removed"} for name in done.removed]
    if shows_all:
        print_rows(rows, ("file", "change"), session.output)
        needed = "the engine needs METALAKE_TOKEN in its environment (gcli token create makes one)"
        print_done(f"Written to {folder}; {needed}.")
    elif done:
        for row in rows:
            if row["change"] != "kept":
                print_done(f"{row['file']} is {row['change']}.")
    if shows_all or done:
        for line in [*made.notes, *(f"Left out: {why}" for why in made.refused.values())]:
            print_done(line)
