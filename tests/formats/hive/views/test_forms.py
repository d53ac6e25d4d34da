"""Which engine a view is of, by its marks alone."""

from __future__ import annotations

import pytest

from formats.hive.views.forms import Form, detect, is_materialized, properties_of, why_reserved
from tests.cases import each
from tests.formats.hive.views import samples
from tests.formats.hive.views.samples import FLINK_PARAMETERS, SPARK_PARAMETERS, VIEW_DEFINITION, a_view

TRINO = {"presto_view": "true"}
OLD_FLINK = {"flink.generic.table.schema.0.name": "id"}


@pytest.mark.parametrize("name", ["hive", "spark", "trino", "flink", "glue", "iceberg"])
def test_every_engine_s_view_is_told_by_its_marks(name: str) -> None:
    table = getattr(samples, f"of_{name}")()
    assert detect(table) == name and table.is_view and not is_materialized(table)


@each(
    "form, parts",
    [
        (Form.ICEBERG, {"parameters": {**SPARK_PARAMETERS, **TRINO, "table_type": "iceberg-view"}}),
        (Form.GLUE, {"parameters": TRINO, "comment": "Presto View", "rest": {"ViewDefinition": VIEW_DEFINITION}}),
        (Form.TRINO, {"parameters": SPARK_PARAMETERS | TRINO, "comment": "presto view"}),
        (Form.TRINO, {"parameters": {"presto_view": "TRUE", "comment": "Presto View"}, "comment": "of Glue"}),
        (Form.TRINO, {"parameters": TRINO, "comment": "changed", "view_original_text": "/* Presto View: e30= */"}),
        (Form.HIVE, {"parameters": TRINO, "comment": "Prestissimo", "view_original_text": "select 1"}),
        (Form.HIVE, {"comment": "Presto View", "view_original_text": "/* Presto View: e30= */"}),
        (Form.SPARK, {"parameters": {**FLINK_PARAMETERS, "spark.sql.create.version": "2.4.8"}}),
        (Form.FLINK, {"parameters": {"is_generic": "TRUE"}}),
        (Form.FLINK, {"parameters": OLD_FLINK}),
        (Form.HIVE, {"parameters": {**OLD_FLINK, "is_generic": "false"}}),
        (Form.HIVE, {"parameters": {"view.query.out.numCols": "1"}}),
    ],
)
def test_the_forms_are_tried_in_order(form: Form, parts: dict[str, object]) -> None:
    assert detect(a_view(**parts)) is form


def test_materialized_views_are_told_apart() -> None:
    assert is_materialized(samples.of_trino_materialized()) and detect(samples.of_trino_materialized()) is Form.TRINO
    assert is_materialized(samples.of_hive(table_type="MATERIALIZED_VIEW"))


def test_the_parameters_of_engines_are_not_the_user_s() -> None:
    tables = [samples.of_spark(), samples.of_trino(), samples.of_hive()]
    assert [properties_of(table) for table in tables] == [{"owner_team": "x"}] * 3
    assert properties_of(samples.of_flink()) == {"flink.owner_team": "ops"}
    assert why_reserved("Transient_LastDdlTime") == "it is written by engines"
    assert why_reserved("view") is None and why_reserved("spark.sql.x") == "it is written by Spark"
