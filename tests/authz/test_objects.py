"""Finding securables by name: one at a time and many at once agree, and names are decoded once."""

from __future__ import annotations

from typing import Any

import pytest

from authz.objects import address_of, by_ids, find_object, find_objects
from metalake.errors import Invalid, NotFound
from metalake.full_names import dotted
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from tests.authz.small_world import World
from tests.cases import each


def everything(world: World) -> list[tuple[Kind, str, int]]:
    odd = world.schema("x.y%z")
    rows = [world.acme, world.lake, world.files, world.a, world.ab, world.t, odd, world.table("t.1", odd)]
    names = [
        "acme",
        "lake",
        "files",
        "lake.A",
        "lake.A:B",
        "lake.A:B.t",
        "lake.x%2Ey%25z",
        "lake.x%2Ey%25z.t%2E1",
    ]
    return [(Kind(row.kind), name, row.id) for row, name in zip(rows, names, strict=True)]


@pytest.mark.store
def test_one_and_many_find_the_same(world: World, django_assert_max_num_queries: Any) -> None:
    asked = everything(world)
    one = [find_object("acme", kind, name) for kind, name, _ in asked]
    top = Located(nodes=one[0].nodes)
    with django_assert_max_num_queries(5):
        many = list(find_objects(top, [address_of("acme", kind, name) for kind, name, _ in asked]))
    assert one == many
    assert [found.id for found in one] == [id for *_, id in asked]
    assert [dotted(found.full_name) for found in one] == [name for _, name, _ in asked]


def test_lineages_run_from_the_metalake_to_the_object(world: World, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2):
        found = by_ids([world.t.id, world.ab.id, 12345])
    assert [node.name for node in found[world.t.id].nodes] == ["acme", "lake", "A", "B", "t"]
    assert found[world.t.id].lineage == world.t.lineage
    assert set(found) == {world.t.id, world.ab.id}


@each(
    "kind, name",
    [
        (Kind.METALAKE, "other"),
        (Kind.CATALOG, "acme"),
        (Kind.CATALOG, "LAKE"),
        (Kind.SCHEMA, "lake.B"),
        (Kind.SCHEMA, "lake.A:"),
        (Kind.SCHEMA, "files.A"),
        (Kind.TABLE, "lake.A.t"),
        (Kind.VIEW, "lake.A:B.t"),
        (Kind.TABLE, "lake.A:B.T"),
        (Kind.FILESET, "lake.A:B.t"),
        (Kind.TAG, "lake"),
        (Kind.ROLE, "role"),
    ],
)
def test_what_is_not_there(world: World, kind: Kind, name: str) -> None:
    with pytest.raises(NotFound) as one:
        find_object("acme", kind, name)
    assert one.value.kind == "object"
    top = find_object("acme", Kind.METALAKE, "acme")
    with pytest.raises(NotFound) as many:
        list(find_objects(top, [Address(metalake="acme", catalog="lake"), address_of("acme", kind, name)]))
    assert one.value.message == many.value.message


@pytest.mark.store
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Kind.CATALOG, ""),
        (Kind.CATALOG, "a.b"),
        (Kind.SCHEMA, "lake"),
        (Kind.SCHEMA, "lake.A.B"),
        (Kind.SCHEMA, ".A"),
        (Kind.TABLE, "lake.A"),
        (Kind.TABLE, "lake.A."),
        (Kind.COLUMN, "lake.A.t"),
        (Kind.SCHEMA, "lake.A\x00"),
    ],
)
def test_names_with_the_wrong_parts_are_invalid(kind: Kind, name: str) -> None:
    with pytest.raises(Invalid) as illegal:
        address_of("acme", kind, name)
    assert illegal.value.kind == "object"


def test_a_column_points_to_its_table(world: World) -> None:
    assert find_object("acme", Kind.COLUMN, "lake.A:B.t.c.inner").id == world.t.id
