"""Views of a metalake in Spark, by their own names where its catalogs have them, else as global temporary views.

A view is made when it is asked for. Spark runs the query for `spark`, or that for `hive` where it can be parsed, in the
view's own default catalog and schema.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from metalake_client.engines.names import Levels, levels_of
from metalake_client.engines.quoting import backquoted
from metalake_client.engines.schemas import separator_of
from metalake_client.engines.spark import JDBC, SparkCatalog
from metalake_client.failures import Exit, Failure
from metalake_client.rest import Client, Json
from metalake_client.spark.errors import is_sparks_error

DIALECTS = ("spark", "hive")
OF_ONE = ("hive", "glue")  # formats of an entry in the form of one engine
ALONE = "It is stored in the form of {}, which holds one query: make a view for Spark beside it, under another name."


@dataclass
class Views:
    """The views of one session; `made` has those that stand in global_temp, by the name that Spark folds theirs to."""

    client: Client
    metalake: str
    session: Any
    catalogs: Collection[SparkCatalog]
    made: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def name_of(self, catalog: str, schema: str, name: str) -> str:
        """See MetalakeOfSession.view."""
        asked = ("catalogs", catalog, "schemas", schema, "views", name)
        view = self.client.get("metalakes", self.metalake, *asked)["view"]
        if own := self._own_name(catalog, schema, view):
            return own
        query = self._query(catalog, schema, view)
        return self._make((catalog, schema, name), view, query)

    def _own_name(self, catalog: str, schema: str, view: Json) -> str:
        """The name under which a catalog of Spark has this view for Spark, or nothing."""
        there = next((each for each in self.catalogs if each.name == catalog and each.settings), None)
        if there is None:
            return ""
        if there.settings[f"spark.sql.catalog.{catalog}"] == JDBC:
            return backquoted(catalog, schema, view["name"])
        levels = self._levels(schema)
        if view["format"] == "iceberg":
            is_sparks = any(each["dialect"].lower() == "spark" for each in view["representations"])
            return backquoted(catalog, *levels, view["name"]) if is_sparks else ""
        if there.hive_views and view["engine"] in DIALECTS and len(levels) == 1:
            return backquoted(there.hive_views, schema, view["name"])
        return ""

    def _levels(self, schema: str) -> Levels:
        return levels_of(schema, self._separator)

    @cached_property
    def _separator(self) -> str:
        return separator_of(self.client)

    def _query(self, catalog: str, schema: str, view: Json) -> Json:
        """The representation that Spark can run. Raises Failure where there is none."""
        queries = {each["dialect"].lower(): each for each in view["representations"]}
        for dialect in DIALECTS:
            if dialect in queries and (dialect == "spark" or self._parses(queries[dialect]["sql"])):
                return queries[dialect]
        there = ", ".join(sorted(queries))
        adds = f"gcli view add-dialect --catalog {catalog} --schema {schema} --view {view['name']} --dialect spark "
        raise Failure(
            f"View {catalog}.{schema}.{view['name']} has no query that Spark can run, only: {there}. "
            + (f"{adds}--sql-file ... adds one." if view["format"] not in OF_ONE else ALONE.format(view["engine"])),
            Exit.CONFLICT,
        )

    def _parses(self, sql: str) -> bool:
        try:
            self.session._jsparkSession.sessionState().sqlParser().parsePlan(sql)
        except Exception as refused:
            if is_sparks_error(refused):
                return False
            raise
        return True

    def _make(self, path: tuple[str, ...], view: Json, query: Json) -> str:
        """Create a global temporary view, in a new session, so that the caller's current schema stays."""
        catalog, schema, _ = path
        name = ".".join(part.replace("%", "%25").replace(".", "%2E") for part in path)
        if (other := self.made.setdefault(name.lower(), path)) != path:
            raise Failure(f"Spark folds the names of {'.'.join(path)} and {'.'.join(other)} to one.", Exit.CONFLICT)
        columns = ", ".join(map(_column, view["columns"]))
        home = [query.get("defaultCatalog") or view.get("defaultCatalog") or catalog]
        home += self._levels(query.get("defaultSchema") or view.get("defaultSchema") or schema)
        beside = type(self.session)(self.session._sc, self.session._jsparkSession.cloneSession())
        try:
            beside.sql(f"USE {backquoted(*home)}")
            declared = f" ({columns})" if columns else ""
            beside.sql(f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {backquoted(name)}{declared} AS {query['sql']}")
        except Exception as refused:
            if not is_sparks_error(refused):
                raise
            reason = str(refused).strip().splitlines()[0]
            raise Failure(f"Spark cannot make the view {'.'.join(path)}: {reason}", Exit.CONFLICT) from None
        return f"global_temp.{backquoted(name)}"


def _column(column: Json) -> str:
    comment = (column.get("comment") or "").replace("\\", "\\\\").replace("'", "\\'")
    return backquoted(column["name"]) + (f" COMMENT '{comment}'" if comment else "")
