"""What databases and tables may be called in Hive and AWS Glue."""

from __future__ import annotations

import pytest

from formats.hive.names import GLUE, HIVE, ICEBERG_IN_GLUE, folded_name
from metalake.errors import Invalid
from tests.cases import each


def refused(name, rule, kind="table"):
    with pytest.raises(Invalid) as caught:
        folded_name(name, rule, kind)
    assert caught.value.kind == kind
    return caught.value.message


def test_names_fold_to_lower_case():
    assert folded_name("Sales_2026", HIVE, "table") == "sales_2026"
    assert folded_name("Größe - Ost.1", GLUE, "schema") == "größe - ost.1"


@each("name", ["sales-2026", "größe", "a b", "a.b", "", "a\n", "s/x", "*"])
def test_hive_takes_letters_digits_and_underscores(name):
    assert "is no name for a table in Hive; use letters a to z, digits and underscores" in refused(name, HIVE)
    assert "Iceberg in AWS Glue; use letters" in refused(name, ICEBERG_IN_GLUE)


@each("name", ["", "a\x00b", "a\tb", " sales", "sales ", "*", ".", ".."])
def test_glue_takes_most(name):
    assert refused(name, GLUE, "schema").endswith("is no name for a schema in AWS Glue; use no control characters")


@pytest.mark.parametrize(("rule", "longest"), [(HIVE, 128), (GLUE, 255), (ICEBERG_IN_GLUE, 252)])
def test_names_have_a_longest_length(rule, longest):
    assert folded_name("a" * longest, rule, "table")
    assert refused("a" * (longest + 1), rule).endswith(f"use at most {longest} bytes")


def test_glue_counts_bytes():
    assert folded_name("é" * 127, GLUE, "table")
    assert "too long" in refused("é" * 128, GLUE)
