"""The one table of operations: for each the kinds of objects, the privileges that suffice, the owners who may do it,
and what must be traversed.

Nothing else decides who may do what. Routes and services name a row of this table, or a family of rows if the kind
of the object is part of the request. Source: docs/authorization.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cache

from metalake.kinds import KINDS, LEAVES, STORED_KINDS, TOP_LEAVES, Kind, LeafRights
from metalake.privileges import Privilege


class Traversal(Enum):
    """The privileges of use that reaching the object takes, unless the actor owns its catalog or metalake."""

    NONE = auto()
    CATALOG = auto()  # USE_CATALOG
    SCHEMA = auto()  # USE_CATALOG, and USE_SCHEMA on any one scope


METALAKE, CATALOG, SCHEMA, SELF = Kind.METALAKE, Kind.CATALOG, Kind.SCHEMA, "self"

_TOP = frozenset({METALAKE})
_CATALOG_UP = frozenset({METALAKE, CATALOG})
_SCHEMA_UP = frozenset({METALAKE, CATALOG, SCHEMA})
_ALL = frozenset({METALAKE, CATALOG, SCHEMA, SELF})

Sets = tuple[frozenset[Privilege], ...]
Blocks = tuple[tuple[Privilege, frozenset[Kind]], ...]
ANYONE: Sets = (frozenset(),)
NOBODY: Sets = ()


def any_of(*privileges: Privilege) -> Sets:
    return tuple(frozenset({privilege}) for privilege in privileges)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """What a request asks to do. Any one set of `sufficient` is enough.

    `on` are the kinds of objects that the rights are checked on: for creations and lists that is the container.
    """

    name: str
    on: frozenset[Kind]
    sufficient: Sets = NOBODY
    owners: frozenset[str]
    traversal: Traversal = Traversal.NONE
    # Privileges whose DENY on objects of these kinds blocks everybody but owners.
    blocked_by: Blocks = ()


OPERATIONS: dict[str, Operation] = {}


def _add(
    name: str,
    on: Kind | frozenset[Kind],
    sufficient: Sets,
    owners: frozenset[str],
    traversal: Traversal = Traversal.NONE,
    blocked_by: Blocks = (),
) -> Operation:
    kinds = frozenset({on}) if isinstance(on, Kind) else on
    operation = Operation(
        name=name, on=kinds, sufficient=sufficient, owners=owners, traversal=traversal, blocked_by=blocked_by
    )
    OPERATIONS[name] = operation
    return operation


P = Privilege
# Rows of containers and roles are written out, since no two are alike; those of leaves follow from their declarations.
_LEAF = frozenset(LEAVES)
_CONTAINER = frozenset({Kind.CATALOG, Kind.SCHEMA})

LOAD_METALAKE = _add("load_metalake", METALAKE, ANYONE, _TOP)
ALTER_METALAKE = _add("alter_metalake", METALAKE, NOBODY, _TOP)
DROP_METALAKE = _add("drop_metalake", METALAKE, NOBODY, _TOP)
ENABLE_METALAKE = _add("enable_metalake", METALAKE, NOBODY, _TOP)

# Whoever sees a container may list it: one that is only a path to something below lists that and nothing else.
LIST_CATALOGS = _add("list_catalogs", METALAKE, ANYONE, _TOP)
CREATE_CATALOG = _add("create_catalog", METALAKE, any_of(P.CREATE_CATALOG), _TOP)
TEST_CONNECTION = _add("test_connection", METALAKE, any_of(P.CREATE_CATALOG), _TOP)
LOAD_CATALOG = _add("load_catalog", CATALOG, ANYONE, _CATALOG_UP, Traversal.CATALOG)
ALTER_CATALOG = _add("alter_catalog", CATALOG, NOBODY, _CATALOG_UP)
DROP_CATALOG = _add("drop_catalog", CATALOG, NOBODY, _CATALOG_UP)
ENABLE_CATALOG = _add("enable_catalog", CATALOG, NOBODY, _CATALOG_UP)
REFRESH_CATALOG = _add("refresh_catalog", CATALOG, NOBODY, _CATALOG_UP)
# Choosing locations for a catalog's schemas, and for tables outside their schema's folder.
CHOOSE_PLACES = _add("choose_places", CATALOG, NOBODY, _CATALOG_UP)

LIST_SCHEMAS = _add("list_schemas", CATALOG, ANYONE, _CATALOG_UP, Traversal.CATALOG)
LIST_CHILD_SCHEMAS = _add("list_child_schemas", SCHEMA, ANYONE, _SCHEMA_UP, Traversal.SCHEMA)
_HIDDEN_PARENT = (P.USE_SCHEMA, frozenset({SCHEMA}))
CREATE_SCHEMA = _add(
    "create_schema", _CONTAINER, any_of(P.CREATE_SCHEMA), _SCHEMA_UP, Traversal.CATALOG, (_HIDDEN_PARENT,)
)
# The same if parent schemas are missing, which are then created too.
BOOTSTRAP_SCHEMA = _add(
    "bootstrap_schema",
    _CONTAINER,
    any_of(P.CREATE_SCHEMA, P.BOOTSTRAP_NAMESPACE),
    _SCHEMA_UP,
    Traversal.CATALOG,
    (_HIDDEN_PARENT, (P.CREATE_SCHEMA, _CONTAINER)),
)
LOAD_SCHEMA = _add("load_schema", SCHEMA, ANYONE, _SCHEMA_UP, Traversal.SCHEMA)
ALTER_SCHEMA = _add("alter_schema", SCHEMA, NOBODY, _SCHEMA_UP, Traversal.CATALOG)
DROP_SCHEMA = _add("drop_schema", SCHEMA, NOBODY, _SCHEMA_UP, Traversal.CATALOG)


def _leaf_rows(kind: Kind) -> None:
    """Add the operations that every kind of leaf has, with the privileges of its declaration."""
    rights, is_top = rights_of(kind), kind in TOP_LEAVES
    home, up, traversal = (METALAKE, _TOP, Traversal.NONE) if is_top else (SCHEMA, _SCHEMA_UP, Traversal.SCHEMA)
    _add(f"list_{KINDS[kind].plural}", home, ANYONE, up, traversal)
    _add(rights.create[0], home, any_of(*rights.create), up, traversal)
    # A move leads to another schema and takes the right to create there; a new name in the same one is an alteration.
    for verb, privileges in (("load", rights.load), ("alter", rights.alter), ("move", ()), ("drop", rights.drop)):
        if not (is_top and verb == "move"):
            _add(f"{verb}_{kind}", kind, any_of(*privileges), _ALL, traversal)


def rights_of(kind: str) -> LeafRights:
    """The declared rights of a leaf."""
    rights = KINDS[Kind(kind)].rights
    assert rights is not None, kind
    return rights


for _kind in LEAVES:
    _leaf_rows(_kind)
LIST_TABLES = OPERATIONS["list_tables"]
CREATE_TABLE = OPERATIONS["create_table"]
LOAD_TABLE = OPERATIONS["load_table"]
ALTER_TABLE = OPERATIONS["alter_table"]
MOVE_TABLE = OPERATIONS["move_table"]
DROP_TABLE = OPERATIONS["drop_table"]
LIST_VIEWS = OPERATIONS["list_views"]
CREATE_VIEW = OPERATIONS["create_view"]
LOAD_VIEW = OPERATIONS["load_view"]
ALTER_VIEW = OPERATIONS["alter_view"]
MOVE_VIEW = OPERATIONS["move_view"]
DROP_VIEW = OPERATIONS["drop_view"]

# Operations that only some leaves have.
REGISTER_VIEW = _add("register_view", SCHEMA, any_of(P.CREATE_VIEW), _SCHEMA_UP, Traversal.SCHEMA)
REGISTER_TABLE = _add("register_table", SCHEMA, any_of(P.CREATE_TABLE), _SCHEMA_UP, Traversal.SCHEMA)
VEND_CREDENTIALS = _add("vend_credentials", Kind.TABLE, any_of(P.SELECT_TABLE), _ALL, Traversal.SCHEMA)
COMMIT_TABLE = _add("commit_table", Kind.TABLE, any_of(P.MODIFY_TABLE), _ALL, Traversal.SCHEMA)
# Releasing the former places of a table, which no other object may use until then.
RELEASE_PLACES = _add("release_places", Kind.TABLE, NOBODY, _ALL, Traversal.SCHEMA)

LIST_MEMBERS = _add("list_members", METALAKE, ANYONE, _TOP)
MANAGE_USERS = _add("manage_users", METALAKE, any_of(P.MANAGE_USERS), _TOP)
MANAGE_GROUPS = _add("manage_groups", METALAKE, any_of(P.MANAGE_GROUPS), _TOP)
LIST_ROLES = _add("list_roles", METALAKE, ANYONE, _TOP)
CREATE_ROLE = _add("create_role", METALAKE, any_of(P.CREATE_ROLE), _TOP)
READ_ROLES = _add("read_roles", METALAKE, any_of(P.MANAGE_GRANTS), _TOP)
ASSIGN_ROLES = _add("assign_roles", METALAKE, any_of(P.MANAGE_GRANTS), _TOP)
# A role's holders may load it too.
LOAD_ROLE = _add("load_role", Kind.ROLE, any_of(P.MANAGE_GRANTS), _ALL)
DROP_ROLE = _add("drop_role", Kind.ROLE, NOBODY, _ALL)

# Whoever sees the metalake may list its job templates and other top leaves, and sees what they may load.
for _kind in TOP_LEAVES:
    _leaf_rows(_kind)
# Running a template takes USE_JOB_TEMPLATE on it as well; those that are built in take it on the metalake to load.
LOAD_BUILT_IN_TEMPLATES = _add("load_built_in_templates", METALAKE, any_of(P.USE_JOB_TEMPLATE), _TOP)
RUN_JOB = _add("run_job", METALAKE, any_of(P.RUN_JOB), _TOP)
# Everybody sees and cancels the runs that they started; those of others take this.
LIST_JOBS = _add("list_jobs", METALAKE, ANYONE, _TOP)
MANAGE_JOBS = _add("manage_jobs", METALAKE, NOBODY, _TOP)
# Making the catalog that jobs write their results to, with its principal.
CREATE_SYSTEM_CATALOG = _add("create_system_catalog", METALAKE, NOBODY, _TOP)

GRANT_ON_METALAKE = _add("grant_on_metalake", METALAKE, any_of(P.MANAGE_GRANTS), _TOP)
# Only what lies above the object is traversed: granting on an object does not require loading it.
GRANT_ON_CATALOG = _add("grant_on_catalog", CATALOG, any_of(P.MANAGE_GRANTS), _CATALOG_UP)
GRANT_ON_SCHEMA = _add("grant_on_schema", SCHEMA, any_of(P.MANAGE_GRANTS), _SCHEMA_UP, Traversal.CATALOG)
GRANT_ON_LEAF = _add("grant_on_leaf", _LEAF, any_of(P.MANAGE_GRANTS), _ALL, Traversal.SCHEMA)
for _kind in TOP_LEAVES:
    _add(f"grant_on_{_kind}", _kind, any_of(P.MANAGE_GRANTS), _ALL)

OWN_METALAKE = _add("own_metalake", METALAKE, NOBODY, _TOP)
OWN_CATALOG = _add("own_catalog", CATALOG, NOBODY, _CATALOG_UP)
OWN_SCHEMA = _add("own_schema", SCHEMA, NOBODY, _SCHEMA_UP, Traversal.CATALOG)
OWN_LEAF = _add("own_leaf", _LEAF, NOBODY, _ALL, Traversal.SCHEMA)
OWN_ROLE = _add("own_role", Kind.ROLE, NOBODY, _ALL)
for _kind in TOP_LEAVES:
    _add(f"own_{_kind}", _kind, NOBODY, _ALL)

# Reading other people's access to an object, present or past, takes the right to grant there.
READ_ACCESS_TO_METALAKE = _add("read_access_to_metalake", METALAKE, any_of(P.MANAGE_GRANTS), _TOP)
READ_ACCESS_TO_CATALOG = _add("read_access_to_catalog", CATALOG, any_of(P.MANAGE_GRANTS), _CATALOG_UP)
READ_ACCESS_TO_SCHEMA = _add("read_access_to_schema", SCHEMA, any_of(P.MANAGE_GRANTS), _SCHEMA_UP, Traversal.CATALOG)
READ_ACCESS_TO_LEAF = _add("read_access_to_leaf", _LEAF, any_of(P.MANAGE_GRANTS), _ALL, Traversal.SCHEMA)
for _kind in TOP_LEAVES:
    _add(f"read_access_to_{_kind}", _kind, any_of(P.MANAGE_GRANTS), _ALL)


def _family(row_of: Callable[[Kind, str], str]) -> dict[Kind, Operation]:
    """The rows of this name for each kind that has one; leaves share theirs."""
    rows = {kind: row_of(kind, "leaf" if kind in LEAVES else kind) for kind in STORED_KINDS}
    return {kind: OPERATIONS[name] for kind, name in rows.items() if name in OPERATIONS}


FAMILIES: dict[str, dict[Kind, Operation]] = {
    "load": _family(lambda kind, _: f"load_{kind}"),
    "list_below": {METALAKE: LIST_CATALOGS, CATALOG: LIST_SCHEMAS, SCHEMA: LIST_CHILD_SCHEMAS},
    "grant_on": _family(lambda _, word: f"grant_on_{word}"),
    "own": _family(lambda _, word: f"own_{word}"),
    "read_access": _family(lambda _, word: f"read_access_to_{word}"),
}
"""Rows that ask the same of objects of different kinds."""


FINDING: dict[str, Operation] = {
    kind: OPERATIONS[f"drop_{kind}"] for kind in (*LEAVES, *TOP_LEAVES) if rights_of(kind).drop
}
"""Rows that let an actor see an object's name without loading it: whoever may drop it must find it."""


def load_of(kind: str) -> Operation:
    """The operation of loading an object of this kind."""
    return FAMILIES["load"][Kind(kind)]


def listing(kind: Kind) -> Operation:
    """The operation of listing the leaves of this kind in a schema or metalake."""
    return OPERATIONS[f"list_{KINDS[kind].plural}"]


def create_of(kind: str) -> Operation:
    """The operation of making a leaf of this kind."""
    return OPERATIONS[rights_of(kind).create[0]]


def grant_on(kind: str) -> Operation:
    """The operation of granting and revoking on an object of this kind."""
    return FAMILIES["grant_on"][Kind(kind)]


def own(kind: str) -> Operation:
    """The operation of setting the owner of an object of this kind."""
    return FAMILIES["own"][Kind(kind)]


def read_access(kind: str) -> Operation:
    """The operation of reading other people's access to an object of this kind."""
    return FAMILIES["read_access"][Kind(kind)]


@cache
def use_of(privilege: Privilege, kind: Kind) -> Operation:
    """The operation of using a privilege on an object of this kind: it takes the privilege or ownership, and traversal.

    On a container it covers the container itself; objects below may need more.
    """
    if privilege is P.MANAGE_GRANTS:
        return grant_on(kind)
    row = BOOTSTRAP_SCHEMA if privilege is P.BOOTSTRAP_NAMESPACE else OPERATIONS.get(privilege.value)
    if row is not None and kind in row.on:
        return replace(row, sufficient=any_of(privilege))
    loading = FAMILIES["load"].get(kind, LOAD_TABLE)  # kinds without rows are reached as tables are
    return replace(loading, name=f"use_{privilege}", on=frozenset({kind}), sufficient=any_of(privilege))
