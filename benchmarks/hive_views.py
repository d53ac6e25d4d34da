"""What it costs to know the engines of a metastore's views: 500 of four forms, fetched alone, then told apart and read.

`python -m benchmarks.hive_views [views]`
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.harness import claim, finish, median, own_store, ratio, timed

if TYPE_CHECKING:
    from formats.hive.tables import HiveTable
    from tests.hms import HiveMetastore

VIEWS, ROUNDS = 500, 15
NATIVE_NAMES = {"bigint": "long", "int": "integer"}


def main(arguments: list[str]) -> None:
    own_store()
    from benchmarks.outside import metastore
    from formats.hive.views.reader import read
    from providers.hive.objects import hive_table
    from tests.hms import running_hms

    count = int(arguments[0]) if arguments else VIEWS
    with running_hms() as hms:
        database, names = fill_with_views(hms, count)
        with metastore(hms) as client:

            def fetch() -> Any:
                return client.get_table_objects_by_name(database, names)

            def fetch_and_read() -> None:
                engines = {read(hive_table(table)).engine for table in fetch()}
                assert len(engines) == 4

            alone, whole = [], []
            for _ in range(ROUNDS):  # in turn, so that a disturbance meets both
                alone += timed(fetch, 1, 0)
                whole += timed(fetch_and_read, 1, 0)
    print(
        f"  {count} views: fetched in {median(alone):.0f} ms, with their engines and columns in {median(whole):.0f} ms"
    )
    claim("reading over the bare fetch", ratio(whole, alone), 1.3, unit="x")
    finish()


def fill_with_views(hms: HiveMetastore, count: int) -> tuple[str, list[str]]:
    """A database with so many views of twelve columns, and their names."""
    from hive_metastore.ttypes import Table

    from benchmarks.outside import metastore
    from providers.hive.objects import written as written_onto

    database = hms.create_database()
    names = []
    with metastore(hms) as client:
        for view in views(count, database):
            client.create_table(written_onto(view, Table(view.name, database)))
            names.append(view.name)
    return database, names


def views(count: int, database: str) -> Iterator[HiveTable]:
    from benchmarks.outside import FLIGHTS, table_name
    from formats.hive.views.writer import DIALECTS, written
    from formats.native.view_definition import Representation, ViewDefinition

    columns = tuple(
        {"name": name, "type": NATIVE_NAMES.get(type, type), "nullable": True, "autoIncrement": False}
        for name, type in FLIGHTS
    )
    sql = f"select {', '.join(name for name, _ in FLIGHTS)} from flights where delay > 15"
    for number in range(count):
        only = Representation(dialect=DIALECTS[number % len(DIALECTS)], sql=sql)
        yield written(table_name(number), database, ViewDefinition(representations=(only,), columns=columns))


if __name__ == "__main__":
    main(sys.argv[1:])
