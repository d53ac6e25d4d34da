"""The job builtin-view_check: Spark's analyzer reads the SQL of every view in the dialects `spark` and `hive`.

Views of databases are analysed by their own planners, which the server asks as the dialect workbench does. Nothing is
executed. Results (sources, column lineage and differences from the declared columns) appear on the views' pages and in
`system.lineage`; the server emits an event for drift.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from requests import Timeout

from metalake_client.engines.names import levels_of
from metalake_client.engines.quoting import spark_text
from metalake_client.engines.schemas import separator_of
from metalake_client.spark import metalake_session
from pipelines import job, ndjson_streams
from pipelines.analysis import comparing
from pipelines.analysis.analyzer import Analyzer, Unchecked
from pipelines.analysis.results import Analysis, Column, Problem, Source
from pipelines.analysis.tables import CHECKS, COLUMNS, READS, TABLES
from pipelines.job import Job, Progress
from pipelines.rest import Refused
from pipelines.results import Results, Unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DIALECTS = ("spark", "hive")
DATABASES = ("postgresql", "mysql")  # formats, and dialects, of views that their own system checks
AT_ONCE, LARGEST = 100, 1_000_000  # findings and their characters per delivery
Json = dict[str, Any]


@dataclass
class Checked:
    """A view with an engine's analysis of each of its dialects."""

    view: Json
    engine: str
    dialects: list[tuple[str, Analysis, list[Json]]] = field(default_factory=list)


def main(given: list[str]) -> int:
    return job.run(check_views, {}, given)


def check_views(job: Job, given: Mapping[str, str]) -> None:
    """Check all views that the caller may load; findings of views they may not alter are only in the tables."""
    writing, progress = job.session(), Progress(job)
    results = Results(job, writing, "view_check", TABLES)
    reading = metalake_session(job.url, job.metalake, job.token)
    checked, unchecked = _check_all(job, reading, progress)
    refused = _deliver(job, checked, progress)
    broken = [each for each in checked if _is_broken(each)]
    progress.stage("writing the tables")
    _write(results, checked)
    print(f"Views checked: {len(checked)}, of which broken: {len(broken)}; not to be checked: {unchecked}.")
    if refused:
        print(f"{refused} of them the caller may not alter, so nothing is said on their pages.")


def _check_all(job: Job, session: Any, progress: Progress) -> tuple[list[Checked], int]:
    """The views that an engine could analyse, and the number of others."""
    separator = separator_of(job.client)
    views = list(ndjson_streams.views_of(job.client, job.metalake))
    sources = {Source(each["catalog"], levels_of(each["schema"], separator), each["name"]) for each in views}
    views = [view for view in views if _queries(view) or view["format"] in DATABASES]
    views.sort(key=lambda view: (view["catalog"], view["schema"]))  # so that Spark seldom switches schemas
    reachable = {each.name for each in session.metalake.catalogs if each.settings}
    analyzer = Analyzer(session, reachable, sources)
    progress.stage("checking views", len(views))
    checked, unchecked = list[Checked](), 0
    for done, view in enumerate(views, 1):
        one = Checked(view, f"Spark {session.version}")
        if view["format"] in DATABASES:
            one = _check_in_database(job, view, separator)
        for query in _queries(view):
            home = _home(view, query, separator)
            if home[0] not in reachable:
                continue
            try:
                analysis = analyzer.analyse(query["sql"], home)
            except Unchecked:
                continue
            one.dialects.append((query["dialect"], analysis, _differences(view, analysis)))
        if one.dialects:
            checked.append(one)
        else:
            unchecked += 1
        progress.at(done)
    return sorted(checked, key=lambda each: each.view["view"]), unchecked


def _check_in_database(job: Job, view: Json, separator: str) -> Checked:
    """What the database's planner says of a view, with what the server reads in its SQL."""
    place = ("catalogs", view["catalog"], "schemas", view["schema"], "views", view["name"])
    try:
        dialects = job.client.call("POST", "metalakes", job.metalake, *place, "check")["dialects"]
    except (Refused, Timeout) as refused:
        print(f"{'.'.join(place[1::2])} could not be checked: {refused}")
        dialects = []
    checked = Checked(view, "")
    for each in dialects:
        if own := each.get("own"):
            checked.engine = own["engine"]
            checked.dialects.append((each["dialect"], _analysis(view, each, separator), []))
    return checked


def _analysis(view: Json, check: Json, separator: str) -> Analysis:
    sources = [
        Source(each.get("catalog") or view["catalog"], levels_of(each.get("schemaName") or view["schema"], separator),
               each["name"])
        for each in check["reads"]
    ]  # fmt: skip
    types = {each["name"]: each["type"] for each in view["columns"]}
    columns = [
        Column(name, types[name], tuple((one["source"], one["name"]) for one in each.get("madeOf") or ()))
        for each in check.get("columns") or ()
        if (name := each.get("name")) in types
    ]
    problems = tuple(Problem(text) for text in check["own"]["problems"])
    return Analysis(tuple(sources), tuple(columns), problems)


def _queries(view: Json) -> list[Json]:
    return [each for each in view["representations"] if each["dialect"].casefold() in DIALECTS]


def _home(view: Json, query: Json, separator: str) -> tuple[str, ...]:
    """The default catalog and schema levels for names in a query.

    For an Iceberg view without a default schema, Spark uses none.
    """
    schema = query["defaultSchema"] or ("" if view["format"] == "iceberg" else view["schema"])
    return query["defaultCatalog"] or view["catalog"], *(levels_of(schema, separator) if schema else ())


def _differences(view: Json, analysis: Analysis) -> list[Json]:
    if analysis.problems:
        return []
    # Spark renames the columns of Hive and Glue views afterwards.
    with_names = view["format"] not in ("hive", "glue")
    return comparing.differences(view["columns"], analysis.columns, with_names=with_names)


def _is_broken(checked: Checked) -> bool:
    return any(analysis.problems or differences for _, analysis, differences in checked.dialects)


# Deliveries to the server


def _deliver(job: Job, checked: Sequence[Checked], progress: Progress) -> int:
    """Deliver the findings for the views' pages; returns how many views the caller may not alter."""
    progress.stage("delivering", len(checked))
    refused = done = 0
    path = ("bulk", "metalakes", job.metalake, "views", "findings")
    for engine in dict.fromkeys(each.engine for each in checked):
        for some in _batches(_finding(each) for each in checked if each.engine == engine):
            outcome = job.client.call("POST", *path, body={"engine": engine[:64], "findings": some})
            refused += len(outcome["refused"])
            done += len(some)
            progress.at(done)
    return refused


def _batches(findings: Iterator[Json]) -> Iterator[list[Json]]:
    some, size = list[Json](), 0
    for each in findings:
        length = len(json.dumps(each))
        if some and (len(some) == AT_ONCE or size + length > LARGEST):
            yield some
            some, size = [], 0
        some.append(each)
        size += length
    if some:
        yield some


def _finding(checked: Checked) -> Json:
    view = checked.view
    return {
        "view": view["view"],
        "version": view["version"],
        "dialects": [_dialect(*each) for each in checked.dialects],
    }


def _dialect(dialect: str, analysis: Analysis, differences: list[Json]) -> Json:
    return {
        "dialect": dialect,
        "problems": [vars(each) for each in analysis.problems],
        "differences": differences,
        "reads": [
            {"catalog": each.catalog, "schemaName": ".".join(each.levels), "name": each.name}
            for each in analysis.sources[:1000]
        ],
        "columns": [
            {
                "name": each.name[:255],
                "type": str(comparing.native_of(each.type))[:1000],
                "madeOf": [{"source": place, "name": name[:255]} for place, name in each.made_of if place < 1000],
            }
            for each in analysis.columns[:10_000]
        ],
    }


# The tables


def _write(results: Results, checked: Sequence[Checked]) -> None:
    metalake = results.job.metalake
    rows = {CHECKS: list[Any](), READS: list[Any](), COLUMNS: list[Any]()}
    for each in checked:
        view = each.view
        path = [view["catalog"], view["schema"], view["name"]]
        for dialect, analysis, differences in each.dialects:
            of = (metalake, view["view"], path, view["version"], dialect)
            problems = [problem.text for problem in analysis.problems]
            texts = [difference["text"] for difference in differences]
            rows[CHECKS].append((*of, bool(problems or texts), problems, texts))
            rows[READS] += [(*of, one.catalog, [*one.levels], one.name) for one in analysis.sources]
            rows[COLUMNS] += [(*of, *row) for row in _columns(analysis)]
    key = hashlib.sha256(repr([rows[table] for table in TABLES]).encode()).hexdigest()
    frames = {table: _frame(results.session, rows[table], table.columns) for table in TABLES}
    results.write(Unit("views", key, f"metalake = {spark_text(metalake)}"), frames).publish()


def _frame(session: SparkSession, rows: list[Any], columns: str) -> Any:
    def frame() -> DataFrame:
        return session.createDataFrame(rows, columns)

    return frame


def _columns(analysis: Analysis) -> Iterator[tuple[Any, ...]]:
    """A row for each pair of output column and source column; one row with nulls for a column without sources."""
    for position, each in enumerate(analysis.columns, 1):
        begin = (position, each.name, str(comparing.native_of(each.type)))
        for place, name in each.made_of:
            source = analysis.sources[place]
            yield (*begin, source.catalog, [*source.levels], source.name, name)
        if not each.made_of:
            yield (*begin, None, None, None, None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
