"""The tables of `system.lineage`: the sources, column lineage and problems of views, according to Spark."""

from __future__ import annotations

from pipelines.results import ResultTable

OF_VIEW = "metalake string, view_id bigint, view array<string>, version int, dialect string"

CHECKS = ResultTable(
    "lineage",
    "view_checks",
    f"{OF_VIEW}, is_broken boolean, problems array<string>, differences array<string>",
    ("metalake",),
    "What Spark says of each dialect of each view: problems, and differences from the declared columns.",
)
READS = ResultTable(
    "lineage",
    "view_reads",
    f"{OF_VIEW}, catalog string, levels array<string>, name string",
    ("metalake",),
    "The tables and views that each view reads, as Spark names them.",
)
COLUMNS = ResultTable(
    "lineage",
    "view_columns",
    f"{OF_VIEW}, position int, column string, type string, of_catalog string, of_levels array<string>, "
    "of_name string, of_column string",
    ("metalake",),
    "The columns of each view, and each column of what it reads that they are made of.",
)
TABLES = (CHECKS, READS, COLUMNS)
