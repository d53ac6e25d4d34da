"""Every way to lose a right, as a race of tests.catalogs.races: lost in one process of one server, it is lost in all.

In each round a reader may first load a table in every process. One of them then acknowledges the loss; whatever any
is asked from then on is refused, also what was written after the loss, which the reader was never to see.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from tests.catalogs.races import COLUMNS
from tests.catalogs.racing import ICEBERG, NATIVE, Answer, Client, Nodes

Race = Callable[[Nodes, str], list[str]]
Request = tuple[str, str, Any]

READER, READER_TOKEN = "reader", "mlk_reader"
DEMO = "/api/metalakes/demo"
TABLES = f"{ICEBERG}/namespaces/{READER}/tables"
USER, ROLE, GROUP = "users/reader", "roles/readers", "groups/readers"
REFUSED = (403, 404)
RIGHTS = ("select_table", "modify_table")
NAMED = {"roleNames": ["readers"]}
CREATED = ("POST", "roles", {"name": "readers", "properties": {}, "securableObjects": []})


def _ways(*names: str, condition: str = "allow") -> dict[str, Any]:
    return {"privileges": [{"name": name, "condition": condition} for name in names]}


def _on_lake(word: str) -> Request:
    return "PUT", f"permissions/roles/readers/catalog/lake/{word}", _ways(*RIGHTS)


def _deny(word: str) -> Request:
    return "PUT", f"permissions/roles/readers/table/lake.reader.t/{word}", _ways(*RIGHTS, condition="deny")


def _members(**users: list[str]) -> Request:
    return "PUT", GROUP, {"usersToAdd": [], "usersToRemove": []} | users


def _owner(name: str) -> Request:
    return "PUT", "owners/table/lake.reader.t", {"name": name, "type": "user"}


ASSIGNED: Request = ("PUT", f"permissions/{USER}/grant", NAMED)
UNASSIGNED: Request = ("PUT", f"permissions/{USER}/revoke", NAMED)
OF_GROUP: Request = ("PUT", f"permissions/{GROUP}/grant", NAMED)
HELD: list[Request] = [CREATED, _on_lake("grant"), ASSIGNED]
HELD_BY_GROUP: list[Request] = [
    CREATED,
    _on_lake("grant"),
    ("POST", "groups", {"name": "readers"}),
    OF_GROUP,
    _members(usersToAdd=[READER]),
]
DROPPED: Request = ("DELETE", ROLE, None)
DISBANDED: Request = ("DELETE", GROUP, None)
ADDED: list[Request] = [
    ("POST", "users", {"name": READER}),
    ("PUT", f"permissions/{USER}/grant", {"roleNames": [READER]}),
]


def revocation(name: str, give: list[Request], take: Request, restore: list[Request]) -> Race:
    """What leads to the right, the one request that ends it, and what leaves things as they were."""

    def race(nodes: Nodes, tag: str) -> list[str]:
        readers = prepared(nodes)
        wrong = _told(nodes, give)
        # Last in the process that does not hear of the loss, so that what it remembers is fresh.
        used = _uses(readers[::-1], tag)
        wrong += [f"before, a use was answered with {answer.status}" for answer in used if answer.status != 200]
        wrong += _told(nodes, [take])
        wrong += _leaks(readers, tag)
        # By the process that has not been told: what it writes is new, and its readers are asked at once.
        written = write(nodes.clients(len(nodes.doors))[-1], f"after {tag}")
        if written.status != 200:
            wrong.append(f"the owner's write was answered with {written}")
        return wrong + _leaks(readers, tag) + _told(nodes, restore)

    race.__name__ = name
    return race


RACES: list[Race] = [
    revocation("grant_revoked", HELD, _on_lake("revoke"), [DROPPED]),
    revocation("deny_added", HELD, _deny("grant"), [DROPPED]),
    revocation("role_unassigned", HELD, UNASSIGNED, [DROPPED]),
    revocation("role_deleted", HELD, DROPPED, []),
    revocation("user_out_of_group", HELD_BY_GROUP, _members(usersToRemove=[READER]), [DISBANDED, DROPPED]),
    revocation("group_deleted", HELD_BY_GROUP, DISBANDED, [DROPPED]),
    revocation("owner_changed", [_owner(READER)], _owner("admin"), []),
    revocation("membership_removed", HELD, ("DELETE", USER, None), [DROPPED, *ADDED]),
]


def prepared(nodes: Nodes) -> list[Client]:
    """The reader in each process, the one that does not hear of the loss first; may reach `t`, but not read it."""
    if nodes.ask("GET", f"{DEMO}/roles/{READER}").status == 404:
        nodes.made(f"{NATIVE}/schemas", {"name": READER})
        nodes.made(TABLES, {"name": "t", "schema": COLUMNS})
        lake = {"type": "catalog", "fullName": "lake", **_ways("use_catalog", "use_schema")}
        nodes.made(f"{DEMO}/roles", {"name": READER, "properties": {}, "securableObjects": [lake]})
        assert _told(nodes, ADDED) == []
        nodes.execute(
            "INSERT INTO authz_token (user_id, name, digest, created_at) "
            "SELECT id, 'race', %s, date_joined FROM authz_user WHERE username = %s",
            hashlib.sha256(READER_TOKEN.encode()).hexdigest(),
            READER,
        )
    return [door(token=READER_TOKEN) for door in reversed(nodes.doors)]


def write(client: Client, value: str) -> Answer:
    update = {"action": "set-properties", "updates": {"written": value}}
    return client.send("POST", f"{TABLES}/t", {"requirements": [], "updates": [update]})


def _uses(readers: list[Client], tag: str) -> list[Answer]:
    return [answer for reader in readers for answer in (reader.send("GET", f"{TABLES}/t"), write(reader, tag))]


def _leaks(readers: list[Client], tag: str) -> list[str]:
    used = _uses(readers, tag)
    leaks = [f"a use was answered with {answer.status}" for answer in used if answer.status not in REFUSED]
    for reader in readers:
        listed = reader.send("GET", TABLES)
        if listed.status not in REFUSED and listed.body["identifiers"] != []:
            leaks.append(f"a list was answered with {listed}")
    return leaks


def _told(nodes: Nodes, requests: list[Request]) -> list[str]:
    """Asked of the first process; what it did not do."""
    answers = [nodes.ask(method, f"{DEMO}/{path}", body) for method, path, body in requests]
    return [f"{request} was answered with {a}" for request, a in zip(requests, answers, strict=True) if a.status != 200]
