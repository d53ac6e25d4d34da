"""The table of operations: for each the object kinds, the sufficient privileges, the owners who may do it, and the
required traversal.

It alone decides who may do what. Routes and services name a row of this table, or a family of rows if the object's
kind is part of the request. Source: docs/authorization.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cache

from metalake.kinds import KINDS, LEAVES, STORED_KINDS, TOP_LEAVES, Kind, LeafRights
from metalake.privileges import Privilege


class Traversal(Enum):
    """The USE_ privileges needed to reach the object, unless the actor owns its catalog or metalake."""

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
    """An action. Any one set of `sufficient` is enough.

    `on` are the kinds of the object that is checked: for create and list, the container.
    """

    name: str
    on: frozenset[Kind]
    sufficient: Sets = NOBODY
    owners: frozenset[str]
    traversal: Traversal = Traversal.NONE
    # Privileges whose DENY on these kinds blocks everybody except owners.
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
# Rows of containers and roles are written out, since no two are alike; leaf rows are derived from KINDS.
_LEAF = frozenset(LEAVES)
_CONTAINER = frozenset({Kind.CATALOG, Kind.SCHEMA})

LOAD_METALAKE = _add("load_metalake", METALAKE, ANYONE, _TOP)
ALTER_METALAKE = _add("alter_metalake", METALAKE, NOBODY, _TOP)
_add("drop_metalake", METALAKE, NOBODY, _TOP)
_add("enable_metalake", METALAKE, NOBODY, _TOP)

# Whoever sees a container may list it; if it is visible only as a path, only what it leads to is listed.
LIST_CATALOGS = _add("list_catalogs", METALAKE, ANYONE, _TOP)
CREATE_CATALOG = _add("create_catalog", METALAKE, any_of(P.CREATE_CATALOG), _TOP)
TEST_CONNECTION = _add("test_connection", METALAKE, any_of(P.CREATE_CATALOG), _TOP)
LOAD_CATALOG = _add("load_catalog", CATALOG, ANYONE, _CATALOG_UP, Traversal.CATALOG)
ALTER_CATALOG = _add("alter_catalog", CATALOG, NOBODY, _CATALOG_UP)
_add("drop_catalog", CATALOG, NOBODY, _CATALOG_UP)
_add("enable_catalog", CATALOG, NOBODY, _CATALOG_UP)
REFRESH_CATALOG = _add("refresh_catalog", CATALOG, NOBODY, _CATALOG_UP)
# Choosing the locations of a catalog's schemas, and of tables outside their schema's folder.
CHOOSE_PLACES = _add("choose_places", CATALOG, NOBODY, _CATALOG_UP)

LIST_SCHEMAS = _add("list_schemas", CATALOG, ANYONE, _CATALOG_UP, Traversal.CATALOG)
LIST_CHILD_SCHEMAS = _add("list_child_schemas", SCHEMA, ANYONE, _SCHEMA_UP, Traversal.SCHEMA)
_HIDDEN_PARENT = (P.USE_SCHEMA, frozenset({SCHEMA}))
CREATE_SCHEMA = _add(
    "create_schema", _CONTAINER, any_of(P.CREATE_SCHEMA), _SCHEMA_UP, Traversal.CATALOG, (_HIDDEN_PARENT,)
)
# The same with missing parent schemas, which are created too.
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
    """Add the operations common to all leaves, with the privileges declared for the kind."""
    rights, is_top = rights_of(kind), kind in TOP_LEAVES
    home, up, traversal = (METALAKE, _TOP, Traversal.NONE) if is_top else (SCHEMA, _SCHEMA_UP, Traversal.SCHEMA)
    _add(f"list_{KINDS[kind].plural}", home, ANYONE, up, traversal)
    _add(rights.create[0], home, any_of(*rights.create), up, traversal)
    # A move goes to another schema and requires create there; a rename within the schema is an alteration.
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
DROP_VIEW = OPERATIONS["drop_view"]

# Operations that only some leaves have.
REGISTER_VIEW = _add("register_view", SCHEMA, any_of(P.CREATE_VIEW), _SCHEMA_UP, Traversal.SCHEMA)
REGISTER_TABLE = _add("register_table", SCHEMA, any_of(P.CREATE_TABLE), _SCHEMA_UP, Traversal.SCHEMA)
VEND_CREDENTIALS = _add("vend_credentials", Kind.TABLE, any_of(P.SELECT_TABLE), _ALL, Traversal.SCHEMA)
COMMIT_TABLE = _add("commit_table", Kind.TABLE, any_of(P.MODIFY_TABLE), _ALL, Traversal.SCHEMA)
# Releasing a table's former locations, which no other object may use until then.
RELEASE_PLACES = _add("release_places", Kind.TABLE, NOBODY, _ALL, Traversal.SCHEMA)

LIST_MEMBERS = _add("list_members", METALAKE, ANYONE, _TOP)
MANAGE_USERS = _add("manage_users", METALAKE, any_of(P.MANAGE_USERS), _TOP)
MANAGE_GROUPS = _add("manage_groups", METALAKE, any_of(P.MANAGE_GROUPS), _TOP)
LIST_ROLES = _add("list_roles", METALAKE, ANYONE, _TOP)
CREATE_ROLE = _add("create_role", METALAKE, any_of(P.CREATE_ROLE), _TOP)
READ_ROLES = _add("read_roles", METALAKE, any_of(P.MANAGE_GRANTS), _TOP)
ASSIGN_ROLES = _add("assign_roles", METALAKE, any_of(P.MANAGE_GRANTS), _TOP)
# A role's holders may load it as well.
LOAD_ROLE = _add("load_role", Kind.ROLE, any_of(P.MANAGE_GRANTS), _ALL)
DROP_ROLE = _add("drop_role", Kind.ROLE, NOBODY, _ALL)

# Whoever sees the metalake may list its job templates and other top leaves; the list has what they may load.
for _kind in TOP_LEAVES:
    _leaf_rows(_kind)
# Running a template also requires USE_JOB_TEMPLATE on it; loading the built-in ones requires it on the metalake.
LOAD_BUILT_IN_TEMPLATES = _add("load_built_in_templates", METALAKE, any_of(P.USE_JOB_TEMPLATE), _TOP)
RUN_JOB = _add("run_job", METALAKE, any_of(P.RUN_JOB), _TOP)
# Everybody may see and cancel their own runs; other users' runs require this.
LIST_JOBS = _add("list_jobs", METALAKE, ANYONE, _TOP)
MANAGE_JOBS = _add("manage_jobs", METALAKE, NOBODY, _TOP)
# Creating the catalog that jobs write their results to, with its service account.
CREATE_SYSTEM_CATALOG = _add("create_system_catalog", METALAKE, NOBODY, _TOP)


def _on_each(verb: str, sufficient: Sets, *more: Kind) -> dict[Kind, Operation]:
    """Add a verb's row for each grantable kind and for `more`; leaves in schemas share one row."""
    rows = {
        METALAKE: _add(f"{verb}_metalake", METALAKE, sufficient, _TOP),
        CATALOG: _add(f"{verb}_catalog", CATALOG, sufficient, _CATALOG_UP),
        SCHEMA: _add(f"{verb}_schema", SCHEMA, sufficient, _SCHEMA_UP, Traversal.CATALOG),
        **dict.fromkeys(LEAVES, _add(f"{verb}_leaf", _LEAF, sufficient, _ALL, Traversal.SCHEMA)),
    }
    return rows | {kind: _add(f"{verb}_{kind}", kind, sufficient, _ALL) for kind in (*more, *TOP_LEAVES)}


FAMILIES: dict[str, dict[Kind, Operation]] = {
    "load": {kind: OPERATIONS[f"load_{kind}"] for kind in STORED_KINDS},
    "list_below": {METALAKE: LIST_CATALOGS, CATALOG: LIST_SCHEMAS, SCHEMA: LIST_CHILD_SCHEMAS},
    # Only the containers are traversed: granting on an object does not require loading it.
    "grant_on": _on_each("grant_on", any_of(P.MANAGE_GRANTS)),
    "own": _on_each("own", NOBODY, Kind.ROLE),
    # Reading other users' access to an object, current or past, requires grant there.
    "read_access": _on_each("read_access_to", any_of(P.MANAGE_GRANTS)),
}
"""Rows of the same action on different kinds, by kind."""
GRANT_ON_METALAKE = OPERATIONS["grant_on_metalake"]
OWN_METALAKE = OPERATIONS["own_metalake"]
OWN_CATALOG = OPERATIONS["own_catalog"]
READ_ACCESS_TO_METALAKE = OPERATIONS["read_access_to_metalake"]


FINDING: dict[str, Operation] = {
    kind: OPERATIONS[f"drop_{kind}"] for kind in (*LEAVES, *TOP_LEAVES) if rights_of(kind).drop
}
"""Rows that make an object's name visible without load: whoever may drop it must find it."""


def load_of(kind: str) -> Operation:
    """The operation of loading an object of this kind."""
    return FAMILIES["load"][Kind(kind)]


def listing(kind: Kind) -> Operation:
    """The operation of listing the leaves of this kind in a schema or metalake."""
    return OPERATIONS[f"list_{KINDS[kind].plural}"]


def create_of(kind: str) -> Operation:
    """The operation of creating a leaf of this kind."""
    return OPERATIONS[rights_of(kind).create[0]]


def grant_on(kind: str) -> Operation:
    """The operation of granting and revoking on an object of this kind."""
    return FAMILIES["grant_on"][Kind(kind)]


def own(kind: str) -> Operation:
    """The operation of setting the owner of an object of this kind."""
    return FAMILIES["own"][Kind(kind)]


def read_access(kind: str) -> Operation:
    """The operation of reading other users' access to an object of this kind."""
    return FAMILIES["read_access"][Kind(kind)]


@cache
def use_of(privilege: Privilege, kind: Kind) -> Operation:
    """The operation of using a privilege on an object of this kind: requires the privilege or ownership, and traversal.

    On a container it covers only the container itself; objects below may require more.
    """
    if privilege is P.MANAGE_GRANTS:
        return grant_on(kind)
    row = BOOTSTRAP_SCHEMA if privilege is P.BOOTSTRAP_NAMESPACE else OPERATIONS.get(privilege.value)
    if row is not None and kind in row.on:
        return replace(row, sufficient=any_of(privilege))
    loading = FAMILIES["load"].get(kind, LOAD_TABLE)  # kinds without rows are traversed like tables
    return replace(loading, name=f"use_{privilege}", on=frozenset({kind}), sufficient=any_of(privilege))
