"""The one table of operations: on what they are asked, which privileges suffice, which owners may, what is traversed.

Nothing else decides who may do what; routes and services name a row of this table. Source: the rule book of
docs/authorization.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from metalake.privileges import Kind, Privilege


class Traversal(Enum):
    """What must be passed to reach the object, unless its catalog or metalake is owned."""

    NONE = auto()
    CATALOG = auto()  # USE_CATALOG
    SCHEMA = auto()  # USE_CATALOG, and USE_SCHEMA on any one scope


METALAKE, CATALOG, SCHEMA, SELF = Kind.METALAKE, Kind.CATALOG, Kind.SCHEMA, "self"

_TOP = frozenset({METALAKE})
_CATALOG_UP = frozenset({METALAKE, CATALOG})
_SCHEMA_UP = frozenset({METALAKE, CATALOG, SCHEMA})
_ALL = frozenset({METALAKE, CATALOG, SCHEMA, SELF})

Sets = tuple[frozenset[Privilege], ...]
ANYONE: Sets = (frozenset(),)
NOBODY: Sets = ()


def any_of(*privileges: Privilege) -> Sets:
    return tuple(frozenset({privilege}) for privilege in privileges)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """`on` is the kinds it is asked on: the container for creations and lists. Any one of `sufficient` is enough."""

    name: str
    on: frozenset[Kind]
    sufficient: Sets = NOBODY
    owners: frozenset[str]
    traversal: Traversal = Traversal.NONE
    # A denied privilege that blocks the privilege routes, though not owners.
    blocked_by: Privilege | None = None


OPERATIONS: dict[str, Operation] = {}


def _add(
    name: str,
    on: Kind | frozenset[Kind],
    sufficient: Sets,
    owners: frozenset[str],
    traversal: Traversal = Traversal.NONE,
    blocked_by: Privilege | None = None,
) -> Operation:
    kinds = frozenset({on}) if isinstance(on, Kind) else on
    operation = Operation(
        name=name, on=kinds, sufficient=sufficient, owners=owners, traversal=traversal, blocked_by=blocked_by
    )
    OPERATIONS[name] = operation
    return operation


P = Privilege
_LEAF = frozenset({Kind.TABLE, Kind.VIEW})
_CONTAINER = frozenset({Kind.CATALOG, Kind.SCHEMA})

LOAD_METALAKE = _add("load_metalake", METALAKE, ANYONE, _TOP)
ALTER_METALAKE = _add("alter_metalake", METALAKE, NOBODY, _TOP)
DROP_METALAKE = _add("drop_metalake", METALAKE, NOBODY, _TOP)
ENABLE_METALAKE = _add("enable_metalake", METALAKE, NOBODY, _TOP)

LIST_CATALOGS = _add("list_catalogs", METALAKE, ANYONE, _TOP)
CREATE_CATALOG = _add("create_catalog", METALAKE, any_of(P.CREATE_CATALOG), _TOP)
LOAD_CATALOG = _add("load_catalog", CATALOG, ANYONE, _CATALOG_UP, Traversal.CATALOG)
ALTER_CATALOG = _add("alter_catalog", CATALOG, NOBODY, _CATALOG_UP)
DROP_CATALOG = _add("drop_catalog", CATALOG, NOBODY, _CATALOG_UP)
ENABLE_CATALOG = _add("enable_catalog", CATALOG, NOBODY, _CATALOG_UP)

LIST_SCHEMAS = _add("list_schemas", CATALOG, ANYONE, _CATALOG_UP, Traversal.CATALOG)
LIST_CHILD_SCHEMAS = _add("list_child_schemas", SCHEMA, ANYONE, _SCHEMA_UP, Traversal.SCHEMA)
CREATE_SCHEMA = _add(
    "create_schema", _CONTAINER, any_of(P.CREATE_SCHEMA), _SCHEMA_UP, Traversal.CATALOG, blocked_by=P.USE_SCHEMA
)
LOAD_SCHEMA = _add("load_schema", SCHEMA, ANYONE, _SCHEMA_UP, Traversal.SCHEMA)
ALTER_SCHEMA = _add("alter_schema", SCHEMA, NOBODY, _SCHEMA_UP, Traversal.CATALOG)
DROP_SCHEMA = _add("drop_schema", SCHEMA, NOBODY, _SCHEMA_UP, Traversal.CATALOG)

LIST_TABLES = _add("list_tables", SCHEMA, ANYONE, _SCHEMA_UP, Traversal.SCHEMA)
CREATE_TABLE = _add("create_table", SCHEMA, any_of(P.CREATE_TABLE), _SCHEMA_UP, Traversal.SCHEMA)
LOAD_TABLE = _add("load_table", Kind.TABLE, any_of(P.SELECT_TABLE, P.MODIFY_TABLE), _ALL, Traversal.SCHEMA)
ALTER_TABLE = _add("alter_table", Kind.TABLE, any_of(P.MODIFY_TABLE), _ALL, Traversal.SCHEMA)
DROP_TABLE = _add("drop_table", Kind.TABLE, NOBODY, _ALL, Traversal.SCHEMA)

LIST_MEMBERS = _add("list_members", METALAKE, ANYONE, _TOP)
MANAGE_USERS = _add("manage_users", METALAKE, any_of(P.MANAGE_USERS), _TOP)
MANAGE_GROUPS = _add("manage_groups", METALAKE, any_of(P.MANAGE_GROUPS), _TOP)
LIST_ROLES = _add("list_roles", METALAKE, ANYONE, _TOP)
CREATE_ROLE = _add("create_role", METALAKE, any_of(P.CREATE_ROLE), _TOP)
READ_ROLES = _add("read_roles", METALAKE, any_of(P.MANAGE_GRANTS), _TOP)
ASSIGN_ROLES = _add("assign_roles", METALAKE, any_of(P.MANAGE_GRANTS), _TOP)
DROP_ROLE = _add("drop_role", Kind.ROLE, NOBODY, _ALL)

GRANT_ON_METALAKE = _add("grant_on_metalake", METALAKE, any_of(P.MANAGE_GRANTS), _TOP)
# What is traversed lies above the object: whoever may grant on it need not be able to load it.
GRANT_ON_CATALOG = _add("grant_on_catalog", CATALOG, any_of(P.MANAGE_GRANTS), _CATALOG_UP)
GRANT_ON_SCHEMA = _add("grant_on_schema", SCHEMA, any_of(P.MANAGE_GRANTS), _SCHEMA_UP, Traversal.CATALOG)
GRANT_ON_LEAF = _add("grant_on_leaf", _LEAF, any_of(P.MANAGE_GRANTS), _ALL, Traversal.SCHEMA)

OWN_METALAKE = _add("own_metalake", METALAKE, NOBODY, _TOP)
OWN_CATALOG = _add("own_catalog", CATALOG, NOBODY, _CATALOG_UP)
OWN_SCHEMA = _add("own_schema", SCHEMA, NOBODY, _SCHEMA_UP, Traversal.CATALOG)
OWN_LEAF = _add("own_leaf", _LEAF, NOBODY, _ALL, Traversal.SCHEMA)
OWN_ROLE = _add("own_role", Kind.ROLE, NOBODY, _ALL)

_LOAD = {
    Kind.METALAKE: LOAD_METALAKE,
    Kind.CATALOG: LOAD_CATALOG,
    Kind.SCHEMA: LOAD_SCHEMA,
    Kind.TABLE: LOAD_TABLE,
}
_GRANT_ON = {
    Kind.METALAKE: GRANT_ON_METALAKE,
    Kind.CATALOG: GRANT_ON_CATALOG,
    Kind.SCHEMA: GRANT_ON_SCHEMA,
    Kind.TABLE: GRANT_ON_LEAF,
    Kind.VIEW: GRANT_ON_LEAF,
}
_OWN = {
    Kind.METALAKE: OWN_METALAKE,
    Kind.CATALOG: OWN_CATALOG,
    Kind.SCHEMA: OWN_SCHEMA,
    Kind.TABLE: OWN_LEAF,
    Kind.VIEW: OWN_LEAF,
    Kind.ROLE: OWN_ROLE,
}


def load_of(kind: str) -> Operation:
    """What seeing an object of this kind asks."""
    return _LOAD[Kind(kind)]


def grant_on(kind: str) -> Operation:
    """What granting and revoking on an object of this kind asks."""
    return _GRANT_ON[Kind(kind)]


def own(kind: str) -> Operation:
    """What setting the owner of an object of this kind asks."""
    return _OWN[Kind(kind)]
