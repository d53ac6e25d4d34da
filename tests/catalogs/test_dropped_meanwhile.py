"""What is asked about rights while an object, role, group, user, catalog or metalake that they name is dropped.

The drop is done between two statements of the request, at each place in turn. A write may keep it waiting until the
write has ended. Whatever is answered, it is no failure of the server's own, which every answer of a caller is held to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest
from django.db import connection

from tests.catalogs.callers import Caller

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

M = "metalakes/demo"
LAKE = f"{M}/catalogs/lake"
ON_TABLE = "permissions/roles/r/table/lake.s.t"
WAIT = 2.0  # seconds that a request waits for a drop, which may wait for a lock that the request's thread has
IN_A_WRITE = 0.3  # the same where the drop is sure to wait once the rows are held


class Ask(NamedTuple):
    """What is asked of the metalake, which has the table `lake.s.t`, the role r, the group g and the user mia."""

    method: str
    path: str
    body: Any = None

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


def _ways(*names: str, condition: str = "allow") -> list[dict[str, str]]:
    return [{"name": name, "condition": condition} for name in names]


def _on(kind: str, name: str, *names: str) -> dict[str, Any]:
    return {"type": kind, "fullName": name, "privileges": _ways(*names)}


ON = {"type": "table", "fullName": "lake.s.t"}
HELD = [
    _on("table", "lake.s.t", "select_table"),
    _on("schema", "lake.s", "use_schema"),
    _on("catalog", "lake", "use_catalog"),
]
READS = [
    Ask("GET", "roles/r"),
    Ask("GET", "roles"),
    Ask("GET", "users?details=true"),
    Ask("GET", "users/mia"),
    Ask("GET", "groups?details=true"),
    Ask("GET", "groups/g"),
    Ask("GET", "objects/table/lake.s.t/roles"),
    Ask("GET", "owners/table/lake.s.t"),
    Ask("GET", "owners/schema/lake.s"),
    Ask("GET", "owners/role/r"),
    Ask("GET", "access/explain?user=mia&privilege=select_table&type=table&fullName=lake.s.t"),
    Ask("GET", "access/objects/table/lake.s.t"),
    Ask("GET", "access/objects/catalog/lake"),
    Ask("GET", "access/users/mia"),
    Ask("GET", "access/groups/g"),
    Ask("GET", "access/roles/r"),
    Ask("GET", "access/former-members"),
    Ask("GET", "access/export"),
    Ask("GET", "access/export?type=schema&fullName=lake.s"),
    Ask("POST", "access/plan", {"metalake": "demo", "roles": [{"name": "r", "grants": []}]}),
    Ask("POST", "access/check", {"questions": [{"user": "mia", "privilege": "select_table", **ON}]}),
]
WRITES = [
    Ask("PUT", f"{ON_TABLE}/grant", {"privileges": _ways("modify_table")}),
    Ask("PUT", f"{ON_TABLE}/grant", {"privileges": _ways("modify_table", condition="deny")}),
    Ask("PUT", f"{ON_TABLE}/revoke", {"privileges": _ways("select_table")}),
    Ask("PUT", "permissions/roles/r", {"overrides": [_on("table", "lake.s.t", "modify_table")]}),
    Ask("PUT", "permissions/users/mia/grant", {"roleNames": ["q"]}),
    Ask("PUT", "permissions/users/mia/revoke", {"roleNames": ["r"]}),
    Ask("PUT", "permissions/groups/g/grant", {"roleNames": ["q"]}),
    Ask("PUT", "permissions/groups/g/revoke", {"roleNames": ["r"]}),
    Ask("PUT", "owners/table/lake.s.t", {"name": "mia", "type": "user"}),
    Ask("PUT", "owners/schema/lake.s", {"name": "g", "type": "group"}),
    Ask("PUT", "owners/role/r", {"name": "mia", "type": "user"}),
    Ask("POST", "roles", {"name": "n", "securableObjects": HELD}),
    Ask("DELETE", "roles/r"),
    Ask("PUT", "groups/g", {"usersToAdd": [], "usersToRemove": ["mia"]}),
    Ask("DELETE", "groups/g"),
    Ask("DELETE", "users/mia"),
]
DROPS = {
    "table": [f"{LAKE}/schemas/s/tables/t"],
    "schema": [f"{LAKE}/schemas/s/tables/t", f"{LAKE}/schemas/s"],
    "catalog": [f"{LAKE}?force=true"],
    "role": [f"{M}/roles/r"],
    "group": [f"{M}/groups/g"],
    "user": [f"{M}/users/mia"],
    "metalake": [f"{M}?force=true"],
}
# Those that were found to fail: a drop of what a role holds, and of who owns.
SAMPLE = [(READS[0], "table"), (READS[7], "group")]
MATRIX = [(ask, drop) for ask in [*READS, *WRITES] for drop in DROPS]


MAKING = {
    "metalake": Ask("POST", "metalakes", {"name": "demo"}),
    "user": Ask("POST", f"{M}/users", {"name": "mia"}),
    "catalog": Ask("POST", f"{M}/catalogs", {"name": "lake", "type": "relational", "provider": "lakehouse-iceberg"}),
    "schema": Ask("POST", f"{LAKE}/schemas", {"name": "s"}),
    "table": Ask("POST", f"{LAKE}/schemas/s/tables", {"name": "t", "columns": [{"name": "id", "type": "long"}]}),
    "the other role": Ask("POST", f"{M}/roles", {"name": "q", "securableObjects": []}),
    "role": Ask("POST", f"{M}/roles", {"name": "r", "securableObjects": []}),
    "held": Ask("PUT", f"{M}/permissions/roles/r", {"overrides": HELD}),
    "group": Ask("POST", f"{M}/groups", {"name": "g"}),
    "members": Ask("PUT", f"{M}/groups/g", {"usersToAdd": ["admin", "mia"], "usersToRemove": []}),
    "holder": Ask("PUT", f"{M}/permissions/users/mia/grant", {"roleNames": ["r"]}),
    "holders": Ask("PUT", f"{M}/permissions/groups/g/grant", {"roleNames": ["r"]}),
    "owner": Ask("PUT", f"{M}/owners/table/lake.s.t", {"name": "g", "type": "group"}),
}
# What goes with a drop; the rest is still there after something that only reads.
GONE = {
    "table": ("table", "held", "owner"),
    "schema": ("schema", "table", "held", "owner"),
    "catalog": ("catalog", "schema", "table", "held", "owner"),
    "role": ("role", "held", "holder", "holders"),
    "group": ("group", "members", "holders", "owner"),
    "user": ("user", "members", "holder"),
    "metalake": tuple(MAKING),
}


def make(admin: Caller, what: Iterable[str]) -> None:
    for name in what:
        answer = admin.send(*MAKING[name])
        assert answer.status in (200, 409), (name, answer)


def make_after(admin: Caller, ask: Ask, drop: str) -> None:
    """Make what is missing after the question and the drop."""
    if ask in READS:
        return make(admin, GONE[drop])
    admin.delete(f"{M}/roles/n")
    return make(admin, list(MAKING)[admin.get(M).status == 200 :])


def dropping_at(place: int, drop: Callable[[], object]) -> tuple[Callable[..., Any], list[threading.Thread]]:
    """A wrapper of statements that drops before the one of this number, and the thread that it does so in."""
    threads: list[threading.Thread] = []
    passed = 0

    def wrapper(execute: Callable[..., Any], *args: Any) -> Any:
        nonlocal passed
        passed += 1
        if passed == place:
            threads.append(threading.Thread(target=drop))
            threads[0].start()
            threads[0].join(IN_A_WRITE if connection.in_atomic_block else WAIT)
        return execute(*args)

    return wrapper, threads


def ask_while(admin: Caller, ask: Ask, drop: str) -> int:
    """Ask with the drop at every place; returns how many there are."""

    def dropped() -> None:
        try:
            for path in DROPS[drop]:
                admin.delete(path)
        finally:
            connection.close()

    for place in range(1, 300):
        wrapper, threads = dropping_at(place, dropped)
        with connection.execute_wrapper(wrapper):
            admin.send(ask.method, f"{M}/{ask.path}", ask.body)
        for thread in threads:
            thread.join()
        if not threads:
            return place
        make_after(admin, ask, drop)
    raise AssertionError("the request has no end")


def check(admin: Caller, ask: Ask, drop: str) -> None:
    if ask in WRITES and not connection.features.has_select_for_update:
        pytest.skip("not offered: a whole write of SQLite has the database to itself")
    make(admin, MAKING)
    answer = admin.send(ask.method, f"{M}/{ask.path}", ask.body)
    assert answer.status == 200, f"it is right while nothing is dropped: {answer}"
    make_after(admin, ask, drop)
    assert ask_while(admin, ask, drop) > 3


@pytest.mark.parametrize(("ask", "drop"), SAMPLE, ids=str)
def test_rights_are_asked_while_something_is_dropped(admin: Caller, mia: Caller, ask: Ask, drop: str) -> None:
    check(admin, ask, drop)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("ask", "drop"), MATRIX, ids=str)
def test_any_right_is_asked_while_anything_is_dropped(admin: Caller, mia: Caller, ask: Ask, drop: str) -> None:
    check(admin, ask, drop)
