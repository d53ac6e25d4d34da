"""The table of writes, and of what may happen to their objects meanwhile: rows that tests.catalogs.orders races.

In each metalake, `{m}`, is the catalog `c` with the schemas X, which holds the table t, Y and E, which hold nothing,
and for the writes of views V, which holds the view w.
`{u}` writes: a user who may use the catalog and the schema X and otherwise has what the row says, none of it in Y.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.catalogs.races import COLUMNS

Request = tuple[str, str, Any]

DEMO, LAKE, WIRE = "/api/metalakes/{m}", "/api/metalakes/{m}/catalogs/c", "/iceberg/{m}/v1/c"
X, T, E = f"{LAKE}/schemas/X", f"{LAKE}/schemas/X/tables/t", f"{LAKE}/schemas/E"
V, W = f"{LAKE}/schemas/V", f"{LAKE}/schemas/V/views/w"
WIRE_W = f"{WIRE}/namespaces/V/views/w"
WIRE_X, WIRE_T = f"{WIRE}/namespaces/X", f"{WIRE}/namespaces/X/tables/t"
VIEW, SHELF = "view", "schema of the view"
METALAKE, CATALOG, SCHEMA, TABLE, EMPTY, RIGHT, ROLE = (
    "metalake",
    "catalog",
    "schema",
    "table",
    "empty",
    "right",
    "role",
)
UP = frozenset({METALAKE, CATALOG, RIGHT})
IN_X = UP | {SCHEMA, TABLE}
IN_E = UP | {EMPTY}
IN_V = UP | {SHELF, VIEW}
ON_TOP = frozenset({METALAKE, RIGHT})


class Write(NamedTuple):
    """`names` are what its path goes by; what the writer `owns`, and `holds` as privileges on the metalake."""

    name: str
    request: Request
    names: frozenset[str]
    owns: tuple[str, str] = ("schema", "c.X")
    holds: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


class Disturbance(NamedTuple):
    """What the metalake's owner does, one request after the other, to what a write goes by."""

    name: str
    on: str
    requests: tuple[Request, ...]

    def __str__(self) -> str:
        return self.name


def _updates(kind: str, **said: Any) -> dict[str, Any]:
    return {"updates": [{"@type": kind, **said}]}


def _commit(requirements: list[Any], *updates: dict[str, Any]) -> dict[str, Any]:
    return {"requirements": requirements, "updates": list(updates)}


def _renamed(space: str, name: str, source: tuple[str, str] = ("X", "t")) -> dict[str, Any]:
    source_space, old = source
    return {
        "source": {"namespace": [source_space], "name": old},
        "destination": {"namespace": [space], "name": name},
    }


def _ways(*names: str, condition: str = "allow") -> list[dict[str, str]]:
    return [{"name": name, "condition": condition} for name in names]


def _on(kind: str, full_name: str, *names: str) -> dict[str, Any]:
    return {"type": kind, "fullName": full_name, "privileges": _ways(*names)}


NATIVE_TABLE = {"name": "n", "columns": [{"name": "id", "type": "long"}]}
ADDED_COLUMN = _updates("addColumn", fieldName=["more"], type="long")
SET_PROPERTY = _updates("setProperty", property="x-key", value="set")
TOUCHED = {"action": "set-properties", "updates": {"x-key": "set"}}
DISABLED = {"inUse": False}
BY_COMMIT = _commit(
    [{"type": "assert-create"}],
    {"action": "assign-uuid", "uuid": "{uuid}"},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": {**COLUMNS, "schema-id": 0}, "last-column-id": 1},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "set-location", "location": "{warehouse}/E/n-{uuid}"},
)
TO_ROLE = f"{DEMO}/permissions/roles/s/table/c.X.t"
OWN_T, OWN_E, OWN_C, OWN_M = ("table", "c.X.t"), ("schema", "c.E"), ("catalog", "c"), ("metalake", "{m}")

TABLE_WRITES = [
    Write("commit", ("POST", WIRE_T, _commit([], TOUCHED)), IN_X),
    Write("commit by the table's owner", ("POST", WIRE_T, _commit([], TOUCHED)), IN_X, OWN_T),
    Write("alter table", ("PUT", T, ADDED_COLUMN), IN_X),
    Write("rename table", ("PUT", T, _updates("rename", newName="v")), IN_X),
    Write("rename table on Iceberg's wire", ("POST", f"{WIRE}/tables/rename", _renamed("X", "v")), IN_X),
    Write("move table", ("POST", f"{WIRE}/tables/rename", _renamed("E", "v")), IN_X | {EMPTY}, OWN_C),
    Write("drop table", ("DELETE", T, None), IN_X),
    Write("drop table by its owner", ("DELETE", WIRE_T, None), IN_X, OWN_T),
    Write("purge table", ("DELETE", f"{T}?purge=true", None), IN_X),
    Write("purge table on Iceberg's wire", ("DELETE", f"{WIRE_T}?purgeRequested=true", None), IN_X),
    Write("create table", ("POST", f"{E}/tables", NATIVE_TABLE), IN_E, OWN_E),
    Write(
        "create table on Iceberg's wire",
        ("POST", f"{WIRE}/namespaces/E/tables", {"name": "n", "schema": COLUMNS}),
        IN_E,
        OWN_E,
    ),
    Write("create table by a commit", ("POST", f"{WIRE}/namespaces/E/tables/n", BY_COMMIT), IN_E, OWN_E),
    Write("create the same table", ("POST", f"{X}/tables", {**NATIVE_TABLE, "name": "t"}), IN_X),
]
SCHEMA_WRITES = [
    Write("alter schema", ("PUT", E, SET_PROPERTY), IN_E, OWN_E),
    Write(
        "alter namespace",
        ("POST", f"{WIRE}/namespaces/E/properties", {"updates": {"x-key": "set"}, "removals": []}),
        IN_E,
        OWN_E,
    ),
    Write("drop schema", ("DELETE", E, None), IN_E, OWN_E),
    Write("drop namespace", ("DELETE", f"{WIRE}/namespaces/E", None), IN_E, OWN_E),
    Write("create child schema", ("POST", f"{LAKE}/schemas", {"name": "E:child"}), IN_E, OWN_E),
    Write("create namespace", ("POST", f"{WIRE}/namespaces", {"namespace": ["E", "a", "b"]}), IN_E, OWN_E),
    Write("create the same schema", ("POST", f"{LAKE}/schemas", {"name": "E"}), IN_E, OWN_C),
]
CATALOG_WRITES = [
    Write("alter catalog", ("PUT", LAKE, SET_PROPERTY), UP, OWN_C),
    Write("rename catalog", ("PUT", LAKE, _updates("rename", newName="v")), UP, OWN_C),
    Write("disable catalog", ("PATCH", LAKE, DISABLED), UP, OWN_C),
    Write("drop catalog", ("DELETE", f"{LAKE}?force=true", None), UP, OWN_C),
    Write(
        "create catalog",
        ("POST", f"{DEMO}/catalogs", {"name": "n", "type": "relational", "provider": "lakehouse-iceberg"}),
        ON_TOP,
        OWN_M,
    ),
    Write("alter metalake", ("PUT", DEMO, SET_PROPERTY), ON_TOP, OWN_M),
    Write("rename metalake", ("PUT", DEMO, _updates("rename", newName="{m}-v")), ON_TOP, OWN_M),
    Write("disable metalake", ("PATCH", DEMO, DISABLED), ON_TOP, OWN_M),
    Write("drop metalake", ("DELETE", f"{DEMO}?force=true", None), ON_TOP, OWN_M),
]
RIGHTS_WRITES = [
    Write("grant on table", ("PUT", f"{TO_ROLE}/grant", {"privileges": _ways("select_table")}), IN_X | {ROLE}),
    Write("deny on table", ("PUT", f"{TO_ROLE}/grant", {"privileges": _ways("select_table", condition="deny")}), IN_X),
    Write("revoke on table", ("PUT", f"{TO_ROLE}/revoke", {"privileges": _ways("modify_table")}), IN_X | {ROLE}),
    Write("own table", ("PUT", f"{DEMO}/owners/table/c.X.t", {"name": "g", "type": "group"}), IN_X),
    Write("own schema", ("PUT", f"{DEMO}/owners/schema/c.E", {"name": "{u}", "type": "user"}), IN_E, OWN_E),
    Write("own catalog", ("PUT", f"{DEMO}/owners/catalog/c", {"name": "{u}", "type": "user"}), UP, OWN_C),
    Write(
        "create role",
        ("POST", f"{DEMO}/roles", {"name": "n", "securableObjects": [_on("table", "c.X.t", "select_table")]}),
        IN_X,
        holds=("create_role",),
    ),
    Write(
        "replace role",
        ("PUT", f"{DEMO}/permissions/roles/s", {"overrides": [_on("table", "c.X.t", "select_table")]}),
        IN_X | {ROLE},
        holds=("manage_grants",),
    ),
    Write("drop role", ("DELETE", f"{DEMO}/roles/s", None), ON_TOP | {ROLE}, OWN_M),
    Write(
        "assign role",
        ("PUT", f"{DEMO}/permissions/users/other/grant", {"roleNames": ["s"]}),
        ON_TOP | {ROLE},
        holds=("manage_grants",),
    ),
    Write("add user", ("POST", f"{DEMO}/users", {"name": "another"}), ON_TOP, holds=("manage_users",)),
    Write("remove user", ("DELETE", f"{DEMO}/users/other", None), ON_TOP, holds=("manage_users",)),
    Write("add group", ("POST", f"{DEMO}/groups", {"name": "n"}), ON_TOP, holds=("manage_groups",)),
    Write("remove group", ("DELETE", f"{DEMO}/groups/h", None), ON_TOP, holds=("manage_groups",)),
    Write(
        "fill group",
        ("PUT", f"{DEMO}/groups/h", {"usersToAdd": ["other"], "usersToRemove": []}),
        ON_TOP,
        holds=("manage_groups",),
    ),
]
NATIVE_VIEW = {
    "name": "w",
    "columns": [{"name": "id", "type": "long"}],
    "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT id FROM t"}],
}
OWN_V, OWN_W = ("schema", "c.V"), ("view", "c.V.w")
VIEW_WRITES = [
    Write("alter view", ("PUT", W, SET_PROPERTY), IN_V, OWN_V),
    Write("alter view by its owner", ("PUT", W, SET_PROPERTY), IN_V, OWN_W),
    Write("replace view", ("POST", WIRE_W, _commit([], TOUCHED)), IN_V, OWN_V),
    Write("rename view", ("PUT", W, _updates("rename", newName="v")), IN_V, OWN_V),
    Write(
        "rename view on Iceberg's wire", ("POST", f"{WIRE}/views/rename", _renamed("V", "v", ("V", "w"))), IN_V, OWN_V
    ),
    Write("move view", ("POST", f"{WIRE}/views/rename", _renamed("E", "v", ("V", "w"))), IN_V | {EMPTY}, OWN_C),
    Write("drop view", ("DELETE", W, None), IN_V, OWN_V),
    Write("drop view by its owner", ("DELETE", WIRE_W, None), IN_V, OWN_W),
    Write("create view", ("POST", f"{E}/views", NATIVE_VIEW), IN_E, OWN_E),
    Write("create the same view", ("POST", f"{V}/views", NATIVE_VIEW), IN_V, OWN_V),
    Write("create a table of its name", ("POST", f"{V}/tables", {**NATIVE_TABLE, "name": "w"}), IN_V, OWN_V),
]
WRITES = [*TABLE_WRITES, *SCHEMA_WRITES, *CATALOG_WRITES, *RIGHTS_WRITES, *VIEW_WRITES]


def _again(level: str, drop: str, *creations: Request) -> Disturbance:
    return Disturbance(f"{level} made anew", level, (("DELETE", drop, None), *creations))


MADE_C: Request = (
    "POST",
    f"{DEMO}/catalogs",
    {"name": "c", "type": "relational", "provider": "lakehouse-iceberg", "comment": "another"},
)
MADE_M: Request = ("POST", "/api/metalakes", {"name": "{m}", "comment": "another"})
MADE_X: Request = ("POST", f"{LAKE}/schemas", {"name": "X", "comment": "another"})
MADE_E: Request = ("POST", f"{LAKE}/schemas", {"name": "E", "comment": "another"})
MADE_T: Request = ("POST", f"{WIRE_X}/tables", {"name": "t", "schema": COLUMNS, "properties": {"x-key": "another"}})
RENAMED_C: Request = ("PUT", LAKE, _updates("rename", newName="d"))
RENAMED_M: Request = ("PUT", DEMO, _updates("rename", newName="{m}-b"))
MOVED_T: Request = ("POST", f"{WIRE}/tables/rename", _renamed("Y", "t"))


def _owned(level: str, on: str, full_name: str, by: str) -> Disturbance:
    request = ("PUT", f"{DEMO}/owners/{on}/{full_name}", {"name": by, "type": "user"})
    return Disturbance(f"owner of {on} {full_name} changed", level, (request,))


TO_WRITER = f"{DEMO}/permissions/roles/r/metalake/{{m}}"
DENIED: Request = ("PUT", f"{TO_WRITER}/grant", {"privileges": _ways("use_catalog", condition="deny")})
GRANTED: Request = ("PUT", f"{TO_ROLE}/grant", {"privileges": _ways("select_table")})
PURGED: Request = ("DELETE", f"{WIRE_T}?purgeRequested=true", None)
COMMITTED: Request = ("POST", WIRE_T, _commit([], {**TOUCHED, "updates": {"x-other": "set"}}))
EMPTIED = (("DELETE", T, None), ("DELETE", X, None))
MADE_W: Request = ("POST", f"{V}/views", {**NATIVE_VIEW, "properties": {"x-key": "another"}})
MADE_V: Request = ("POST", f"{LAKE}/schemas", {"name": "V", "comment": "another"})
MOVED_W: Request = ("POST", f"{WIRE}/views/rename", _renamed("Y", "w", ("V", "w")))
REPLACED: Request = ("POST", WIRE_W, _commit([], {**TOUCHED, "updates": {"x-other": "set"}}))
CLEARED = (("DELETE", W, None), ("DELETE", V, None))

DISTURBANCES = [
    Disturbance("table renamed", TABLE, (("PUT", T, _updates("rename", newName="u")),)),
    Disturbance("table moved", TABLE, (MOVED_T,)),
    Disturbance("table moved, another made", TABLE, (MOVED_T, MADE_T)),
    Disturbance("table committed", TABLE, (COMMITTED,)),
    Disturbance("table dropped", TABLE, (("DELETE", T, None),)),
    Disturbance("table purged", TABLE, (PURGED,)),
    _again(TABLE, f"{T}?purge=true", MADE_T),
    _owned(TABLE, "table", "c.X.t", "other"),
    Disturbance("table granted", TABLE, (GRANTED,)),
    Disturbance("schema emptied and dropped", SCHEMA, EMPTIED),
    Disturbance("schema emptied and made anew", SCHEMA, (*EMPTIED, MADE_X, MADE_T)),
    _owned(SCHEMA, "schema", "c.X", "admin"),
    Disturbance("view renamed", VIEW, (("PUT", W, _updates("rename", newName="u")),)),
    Disturbance("view moved", VIEW, (MOVED_W,)),
    Disturbance("view moved, another made", VIEW, (MOVED_W, MADE_W)),
    Disturbance("view replaced", VIEW, (REPLACED,)),
    Disturbance("view dropped", VIEW, (("DELETE", W, None),)),
    _again(VIEW, W, MADE_W),
    Disturbance(
        "view dropped, a table made",
        VIEW,
        (("DELETE", W, None), ("POST", f"{V}/tables", {**NATIVE_TABLE, "name": "w"})),
    ),
    _owned(VIEW, "view", "c.V.w", "other"),
    Disturbance("its schema emptied and dropped", SHELF, CLEARED),
    Disturbance("its schema emptied and made anew", SHELF, (*CLEARED, MADE_V, MADE_W)),
    _owned(SHELF, "schema", "c.V", "admin"),
    Disturbance("empty schema dropped", EMPTY, (("DELETE", E, None),)),
    _again(EMPTY, E, MADE_E),
    _owned(EMPTY, "schema", "c.E", "admin"),
    Disturbance("catalog renamed", CATALOG, (RENAMED_C,)),
    Disturbance("catalog renamed, another made", CATALOG, (RENAMED_C, MADE_C)),
    Disturbance("catalog dropped", CATALOG, (("DELETE", f"{LAKE}?force=true", None),)),
    _again(CATALOG, f"{LAKE}?force=true", MADE_C),
    Disturbance("catalog disabled", CATALOG, (("PATCH", LAKE, DISABLED),)),
    _owned(CATALOG, "catalog", "c", "other"),
    Disturbance("metalake renamed", METALAKE, (RENAMED_M,)),
    Disturbance("metalake renamed, another made", METALAKE, (RENAMED_M, MADE_M)),
    Disturbance("metalake dropped", METALAKE, (("DELETE", f"{DEMO}?force=true", None),)),
    _again(METALAKE, f"{DEMO}?force=true", MADE_M),
    Disturbance("metalake disabled", METALAKE, (("PATCH", DEMO, DISABLED),)),
    _owned(METALAKE, "metalake", "{m}", "admin"),
    Disturbance("writer denied", RIGHT, (DENIED,)),
    Disturbance("writer's role dropped", RIGHT, (("DELETE", f"{DEMO}/roles/r", None),)),
    Disturbance("writer removed", RIGHT, (("DELETE", f"{DEMO}/users/{{u}}", None),)),
    Disturbance("role dropped", ROLE, (("DELETE", f"{DEMO}/roles/s", None),)),
    Disturbance("role emptied", ROLE, (("PUT", f"{DEMO}/permissions/roles/s", {"overrides": []}),)),
]


def pairs() -> Iterator[tuple[Write, Disturbance]]:
    """Every write with all that may happen to what it goes by."""
    for write in WRITES:
        for disturbance in DISTURBANCES:
            if disturbance.on in write.names:
                yield write, disturbance


def pair(write: str, disturbance: str) -> tuple[Write, Disturbance]:
    return next(each for each in pairs() if (each[0].name, each[1].name) == (write, disturbance))


def made(write: Write) -> list[Request]:
    """The requests, the metalake's owner's, that lead up to a race."""
    role = [_on("catalog", "c", "use_catalog"), _on("schema", "c.X", "use_schema")]
    role += [_on("metalake", "{m}", *write.holds)] if write.holds else []
    role += [_on("schema", "c.V", "use_schema")] if write in VIEW_WRITES else []
    requests: list[Request] = [
        ("POST", "/api/metalakes", {"name": "{m}"}),
        ("POST", f"{DEMO}/users", {"name": "{u}"}),
        ("POST", f"{DEMO}/users", {"name": "other"}),
        ("POST", f"{DEMO}/catalogs", {**MADE_C[2], "comment": None}),
        ("POST", f"{LAKE}/schemas", {"name": "X"}),
        ("POST", f"{LAKE}/schemas", {"name": "Y"}),
        ("POST", f"{LAKE}/schemas", {"name": "E"}),
        ("POST", f"{WIRE_X}/tables", {"name": "t", "schema": COLUMNS}),
        *([MADE_V, ("POST", f"{V}/views", NATIVE_VIEW)] if write in VIEW_WRITES else []),
        ("POST", f"{DEMO}/roles", {"name": "r", "securableObjects": role}),
        ("PUT", f"{DEMO}/permissions/users/{{u}}/grant", {"roleNames": ["r"]}),
    ]
    if write in RIGHTS_WRITES:
        requests += [
            ("POST", f"{DEMO}/roles", {"name": "s", "securableObjects": [_on("table", "c.X.t", "modify_table")]}),
            ("POST", f"{DEMO}/groups", {"name": "h"}),
        ]
    # A group's, so that whoever disturbs may still do so.
    requests += [
        ("POST", f"{DEMO}/groups", {"name": "g"}),
        ("PUT", f"{DEMO}/groups/g", {"usersToAdd": ["{u}", "admin"], "usersToRemove": []}),
        ("PUT", f"{DEMO}/owners/{'/'.join(write.owns)}", {"name": "g", "type": "group"}),
    ]
    return requests
