"""Runs Spark's analyzer on SQL: names are resolved, nothing is executed."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection
from typing import Any

from metalake_client.engines.quoting import backquoted
from metalake_client.spark.errors import is_sparks_error
from pipelines.analysis.plans import Home, Lineage, tree_of
from pipelines.analysis.problems import problem_of
from pipelines.analysis.results import Analysis, Column, MadeOf, Source

QUOTED = re.compile(r"`((?:[^`]|``)+)`")
LONGEST_PLAN = 20_000_000  # characters of JSON


class Unchecked(Exception):
    """Spark could not analyse the SQL: a catalog is not configured or did not respond."""


class Analyzer:
    """A session's analyzer. Querying files by path is off, since Spark would read them to infer their columns."""

    def __init__(self, session: Any, catalogs: Collection[str], views: Collection[Source]) -> None:
        """`catalogs` are those configured in the session, `views` those of the metalake."""
        self.session, self._catalogs, self._views = session, catalogs, views
        self._state = session._jsparkSession.sessionState()
        execution = session._jvm.org.apache.spark.sql.execution
        self._skip = execution.CommandExecutionMode.SKIP()
        self._parser = execution.SparkSqlParser()  # the Iceberg extension's parser accepts commands as queries
        self._home: tuple[str, ...] | None = None
        session.conf.set("spark.sql.runSQLOnFiles", "false")
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # it would log plans and SQL

    def analyse(self, sql: str, home: tuple[str, ...]) -> Analysis:
        """Analyse a query with `home`, a catalog and the levels of a schema, as the default. Raises Unchecked."""
        try:
            self._go_to(home)
            plan = self._state.executePlan(self._parser.parseQuery(sql), self._skip).analyzed()
            fields = json.loads(plan.schema().json())["fields"]
            shown = plan.toJSON()
        except Exception as error:
            if not is_sparks_error(error):
                raise
            if not _is_refusal(error):
                raise Unchecked(_kind_of(error)) from None
            return Analysis(problems=(problem_of(error, sql),))
        sources, made_of = self._lineage(shown, sql, home)
        columns = [
            Column(each["name"], each["type"], made_of[place] if len(made_of) == len(fields) else ())
            for place, each in enumerate(fields)
        ]
        return Analysis(tuple(sources), tuple(columns))

    def _lineage(self, plan: str, sql: str, home: tuple[str, ...]) -> tuple[list[Source], list[MadeOf]]:
        """The sources named in the SQL and the column lineage; both empty if the plan is too long."""
        if len(plan) > LONGEST_PLAN:
            return [], []
        quoted = {name.replace("``", "`") for name in QUOTED.findall(sql)}
        lineage = Lineage(tree_of(json.loads(plan)), Home(home, self._catalogs, self._views, quoted))
        written = sql.replace("``", "`").casefold()
        named = [place for place, source in enumerate(lineage.sources) if source.name.casefold() in written]
        places = {place: number for number, place in enumerate(named)}
        made_of = [tuple((places[of], name) for of, name in each if of in places) for each in lineage.columns]
        return [lineage.sources[place] for place in named], made_of

    def _go_to(self, home: tuple[str, ...]) -> None:
        if home == self._home:
            return
        self._home = None
        if len(home) == 1:  # USE of the current catalog would keep its schema
            self.session.sql("USE spark_catalog")
        self.session.sql(f"USE {backquoted(*home)}")
        self._home = home


def _is_refusal(error: Exception) -> bool:
    """Whether the analyzer rejected the SQL, as opposed to a catalog failing."""
    from pyspark.errors import AnalysisException, ParseException

    return isinstance(error, AnalysisException | ParseException)


def _kind_of(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    return str(cause.getClass().getSimpleName()) if cause is not None else type(error).__name__
