"""The tree of namespaces that benchmarks/tree.py grows is one that the services read."""

from __future__ import annotations

import pytest

from benchmarks import tree
from benchmarks.population import CATALOG, METALAKE, first_catalog, schema
from metalake.models import Securable
from tests.iceberg_rest.world import Caller, basic


@pytest.mark.store
@pytest.mark.django_db
def test_a_tree_has_its_levels_and_what_lies_in_them() -> None:
    owner = first_catalog()
    way = tree.fill([schema(owner, f"top{n}") for n in range(2)], levels=3)
    counts = {kind: Securable.objects.filter(kind=kind).count() for kind in ("schema", "table", "view")}
    assert (counts["schema"], counts["table"]) == (2 * 21, 2 * 42) and 42 < counts["view"] < 84
    signed = {"HTTP_AUTHORIZATION": basic("admin", "bench-password-1")}
    admin, path = Caller("admin", METALAKE, CATALOG, signed), "%1F".join(way)
    assert way == ["top0", "n0", "n0"]
    assert admin.children("top1%1Fn3") == [["top1", "n3", f"n{n}"] for n in range(4)]
    assert admin.children(path) == [] and admin.tables(path) == ["t0", "t1"]
    admin.make_table(path, "new")
    assert admin.tables(path) == ["new", "t0", "t1"]
    assert admin.delete(f"namespaces/{path}").status == 409
