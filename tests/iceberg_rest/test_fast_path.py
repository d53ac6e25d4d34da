"""The fast path answers as the way of all requests does, whatever the world and the request."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from authz import snapshot
from metalake.statements import Row
from server.http.hot_reads import FastReads
from tests.authz.model import ALLOW, Grant, Party, Securable, User, World
from tests.authz.worlds import random_world
from tests.iceberg_rest.twins import Asked, Requests, Twins, Wired, change_something, read

STRAIGHT = [
    ("iceberg", "load_table", "GET", 200),
    ("iceberg", "load_view", "GET", 200),
    ("iceberg", "load_table", "HEAD", 204),
    ("iceberg", "load_view", "HEAD", 204),
    *((wire, f"list_{each}", "GET", 200) for each in ("tables", "views", "schemas") for wire in ("iceberg", "api")),
    ("iceberg", "load_catalog", "GET", 200),
    ("iceberg", "load_schema", "HEAD", 204),
    ("iceberg", "load_table", "HEAD", 404),
    ("api", "load_table", "GET", 200),
    ("api", "load_table", "GET", 404),
    ("api", "load_view", "GET", 200),
    ("api", "load_view", "GET", 404),
]
"""What the fast path answers, and how."""


@pytest.mark.store
@pytest.mark.timeout(600)
@pytest.mark.parametrize("count", [4_000, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.django_db(transaction=True)
def test_both_ways_answer_the_same_bytes(count: int) -> None:
    rng = random.Random(15)
    twins = Twins()
    requests = Requests(Wired([random_world(seed) for seed in range(12)], rng), rng)
    least = 5
    if connection.vendor != "sqlite":  # where only the statements are new
        count, least = count // 4, 1
    while twins.compared < count or any(twins.straight[kind] < least for kind in STRAIGHT):
        if twins.compared % 50 == 0:
            change_something(rng)
        twins.compare(requests.one())
        # Chance decides how often a rare kind is asked about; a kind that the fast path has left ends the test here.
        assert twins.compared < 10 * count, twins.straight
    assert twins.straight.total() > 0.3 * twins.compared, twins.straight


READER = Party("user", 2)
STATEMENTS = {
    "/iceberg/0m/v1/c/namespaces/s/tables/t": 1,
    "/iceberg/0m/v1/c/namespaces/s/views/v": 1,
    "/iceberg/0m/v1/c/namespaces/s/tables/none": 1,
    "/iceberg/0m/v1/c/namespaces/s/tables": 2,
    "/iceberg/0m/v1/c/namespaces/s/views": 2,
    "/iceberg/0m/v1/c/namespaces": 2,
    "/api/metalakes/0m/catalogs/c/schemas/s/tables/t": 2,  # who made it and when is the second
    "/api/metalakes/0m/catalogs/c/schemas/s/tables/none": 1,
    "/api/metalakes/0m/catalogs/c/schemas/s/views/v": 2,  # so is the number of its version
    "/api/metalakes/0m/catalogs/c/schemas/s/views/none": 1,
    "/api/metalakes/0m/catalogs/c/schemas/s/tables": 2,
    "/api/metalakes/0m/catalogs/c/schemas/s/views": 2,
    "/api/metalakes/0m/catalogs/c/schemas": 2,
}


def world_of(roles: int) -> World:
    """A reader who holds that many roles, each with rights of its own on the one catalog, and one of them with all."""
    owner = Party("user", 1)
    names = ("metalake", "m", None), ("catalog", "c", 10), ("schema", "s", 11), ("table", "t", 12), ("view", "v", 12)
    objects = {id: Securable(id, kind, name, above, owner) for id, (kind, name, above) in enumerate(names, 10)}
    ids = range(100, 100 + roles)
    objects |= {id: Securable(id, "role", f"role{id}", 10, owner) for id in ids}
    grants = [Grant(id, "use_catalog", ALLOW, 11) for id in ids]
    grants += [Grant(ids[-1], privilege, ALLOW, 12) for privilege in ("use_schema", "select_table", "select_view")]
    users = {id: User(id, f"user{id}") for id in (1, 2)}
    return World(
        users, {}, objects, frozenset({(10, 1), (10, 2)}), frozenset((id, READER) for id in ids), tuple(grants)
    )


class NeverByChance(random.Random):
    """Chooses what most worlds have: a catalog that is enabled and nested, accounts and tokens that are valid."""

    def random(self) -> float:
        return 0.5

    def choice(self, seq: Any) -> Any:
        return seq[0]


@pytest.mark.store
@pytest.mark.parametrize("roles", [10, 1000])
@pytest.mark.django_db(transaction=True)
def test_a_load_takes_one_statement_and_a_list_two_however_many_roles(roles: int) -> None:
    Wired([world_of(roles)], NeverByChance())
    snapshot.latest()
    twins = Twins()
    straight, sent = twins.fast._fetch, list[str]()

    def counting(statement: str, parameters: Sequence[Any]) -> list[Row]:
        sent.append(statement)
        return straight(statement, parameters)

    twins.fast._fetch = counting
    for path, expected in STATEMENTS.items():
        sent.clear()
        asked = Asked("GET", path, {"Authorization": f"Bearer {Wired.token('0-2')}"})
        twins.compare(asked)
        assert len(sent) == expected, (path, sent)
    assert {status for *_, status in twins.straight} == {200, 404}
    assert twins.straight.total() == len(STATEMENTS)


HIDDEN = [("s/tables/t", "s/tables/none"), ("s/views/v", "s/views/none"), ("s/tables", "none/tables"), ("s", "none")]
NATIVE = [
    ("s/tables/t", "s/tables/none"),
    ("s/views/v", "s/views/none"),
    ("s/views", "none/views"),
    ("s/tables", "none/tables"),
]


@pytest.mark.store
@pytest.mark.parametrize("rights", [(), ("use_catalog",), ("use_catalog", "use_schema"), ("use_schema",)])
@pytest.mark.django_db(transaction=True)
def test_what_is_hidden_goes_the_way_of_what_is_missing(rights: tuple[str, ...]) -> None:
    world = world_of(1)
    Wired([replace(world, grants=tuple(Grant(100, each, ALLOW, 11) for each in rights))], NeverByChance())
    snapshot.latest()
    fast, sent = FastReads(), list[str]()
    straight = fast._fetch

    def counting(statement: str, parameters: Sequence[Any]) -> list[Row]:
        sent.append(statement)
        return straight(statement, parameters)

    def way(path: str, base: str = "/iceberg/0m/v1/c/namespaces", method: str = "HEAD") -> tuple[int | None, list[str]]:
        sent.clear()
        headers = {"Authorization": f"Bearer {Wired.token('0-2')}"}
        question = fast.find(read(Asked(method, f"{base}/{path}", headers)))
        assert question or path.endswith(("tables", "views"))
        answered = fast.answer(question, closes=False) if question else None
        return answered.status if answered else None, list(sent)

    fast._fetch = counting
    is_schema_seen = "use_schema" in rights and "use_catalog" in rights
    ways = [(way(hidden), way(missing)) for hidden, missing in HIDDEN[: 2 if is_schema_seen else None]]
    native = "/api/metalakes/0m/catalogs/c/schemas", "GET"
    ways += [(way(hidden, *native), way(none, *native)) for hidden, none in NATIVE[: 2 if is_schema_seen else None]]
    assert all(hidden == missing for hidden, missing in ways), ways
