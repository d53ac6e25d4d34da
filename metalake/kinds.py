"""Declares every kind of object once; all code keyed by kind reads these declarations.

Sources: Gravitino's documented access control, the exception names of both APIs, and
docs/authorization.md for the privileges. CONTRIBUTING.md describes how to add a kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Self

from metalake.privileges import Privilege as P


class Kind(StrEnum):
    """The kind of an object; the value is its name in both APIs."""

    METALAKE = "metalake"
    CATALOG = "catalog"
    SCHEMA = "schema"
    TABLE = "table"
    VIEW = "view"
    TOPIC = "topic"
    FILESET = "fileset"
    MODEL = "model"
    FUNCTION = "function"
    COLUMN = "column"
    TAG = "tag"
    POLICY = "policy"
    ROLE = "role"
    JOB = "job"
    JOB_TEMPLATE = "job_template"


class CatalogType(StrEnum):
    """The type of a catalog: its name in the API and the default provider, if any.

    Source: Gravitino's OpenAPI description, CatalogCreateRequest. Such a catalog contains the kinds that declare the
    type, and those that declare none; this server offers the types that its providers declare (`providers.registry`).
    """

    default_provider: str

    def __new__(cls, word: str, default_provider: str = "") -> Self:
        member = str.__new__(cls, word)
        member._value_, member.default_provider = word, default_provider
        return member

    RELATIONAL = "relational"
    FILESET = "fileset", "fileset"
    MESSAGING = "messaging"
    MODEL = "model", "model"


class Slot(StrEnum):
    """A name space that kinds share within one parent: a table and a view cannot have the same name."""

    METALAKE = "metalake"
    CATALOG = "catalog"
    SCHEMA = "schema"
    TABULAR = "tabular"
    ROLE = "role"
    JOB_TEMPLATE = "job_template"


@dataclass(frozen=True, kw_only=True)
class LeafRights:
    """The privileges for each action, any one of which suffices. Owners may do everything; only they may move it.

    The create operation has the name of its first privilege: `create_table`, `register_job_template`.
    A user who may drop an object but not load it sees only its name.
    """

    create: tuple[P, ...]
    load: tuple[P, ...]
    alter: tuple[P, ...]
    drop: tuple[P, ...] = ()


@dataclass(frozen=True, kw_only=True)
class IcebergWords:
    """Iceberg REST's noun for a kind, and its exception for a missing one."""

    noun: str
    missing: str


@dataclass(frozen=True, kw_only=True)
class KindDeclaration:
    """Everything keyed by kind. A kind without a slot is only a name in the APIs: no such object is stored yet.

    `creating` are grantable on any container of such an object; `privileges` on the object and everything above it.
    `catalog_type` is the only catalog type that its privileges apply in; None if all. `label` is used in the native
    API's exception names; `old_codes`: its error handlers in the Python client know no code above 1010 but 1100.
    `stored_here`: Metalake stores such objects itself if a catalog's provider offers none. `icon` is its Lucide icon,
    `tabs` the tabs of its page in order (`frontend.tabs`).
    """

    kind: Kind
    label: str
    plural: str
    lies_in: tuple[Kind, ...] = (Kind.SCHEMA,)
    slot: str | None = None
    catalog_type: CatalogType | None = None
    creating: tuple[P, ...] = ()
    privileges: tuple[P, ...] = ()
    rights: LeafRights | None = None
    iceberg: IcebergWords | None = None
    old_codes: bool = False
    stored_here: bool = False
    icon: str = ""
    tabs: tuple[str, ...] = ("overview", "access", "history")

    @cached_property
    def depth(self) -> int:
        """The number of names on the path to such an object, metalake included; a schema's levels count as one name."""
        return 1 + KINDS[self.lies_in[0]].depth if self.lies_in else 1

    @property
    def is_leaf(self) -> bool:
        """Whether such objects are in schemas and contain no others."""
        return Kind.SCHEMA in self.lies_in and self.kind is not Kind.SCHEMA


_DECLARED = (
    KindDeclaration(
        kind=Kind.METALAKE,
        label="Metalake",
        plural="metalakes",
        lies_in=(),
        slot=Slot.METALAKE,
        privileges=(P.MANAGE_USERS, P.MANAGE_GROUPS, P.MANAGE_GRANTS),
        icon="waves-horizontal",
    ),
    KindDeclaration(
        kind=Kind.CATALOG,
        label="Catalog",
        plural="catalogs",
        lies_in=(Kind.METALAKE,),
        slot=Slot.CATALOG,
        creating=(P.CREATE_CATALOG,),
        privileges=(P.USE_CATALOG, P.BOOTSTRAP_NAMESPACE, P.MANAGE_GRANTS),
        iceberg=IcebergWords(noun="Warehouse", missing="NoSuchWarehouseException"),
        icon="database",
    ),
    KindDeclaration(
        kind=Kind.SCHEMA,
        label="Schema",
        plural="schemas",
        lies_in=(Kind.CATALOG, Kind.SCHEMA),
        slot=Slot.SCHEMA,
        creating=(P.CREATE_SCHEMA,),
        privileges=(P.USE_SCHEMA, P.MANAGE_GRANTS),
        iceberg=IcebergWords(noun="Namespace", missing="NoSuchNamespaceException"),
        icon="folder",
    ),
    KindDeclaration(
        kind=Kind.TABLE,
        label="Table",
        plural="tables",
        slot=Slot.TABULAR,
        catalog_type=CatalogType.RELATIONAL,
        creating=(P.CREATE_TABLE,),
        privileges=(P.SELECT_TABLE, P.MODIFY_TABLE, P.MANAGE_GRANTS),
        rights=LeafRights(create=(P.CREATE_TABLE,), load=(P.SELECT_TABLE, P.MODIFY_TABLE), alter=(P.MODIFY_TABLE,)),
        iceberg=IcebergWords(noun="Table", missing="NoSuchTableException"),
        old_codes=True,
        icon="table-2",
        tabs=("overview", "columns", "snapshots", "lineage", "access", "history"),
    ),
    KindDeclaration(
        kind=Kind.VIEW,
        label="View",
        plural="views",
        slot=Slot.TABULAR,
        catalog_type=CatalogType.RELATIONAL,
        creating=(P.CREATE_VIEW,),
        privileges=(P.SELECT_VIEW, P.ALTER_VIEW, P.DROP_VIEW, P.MANAGE_GRANTS),
        rights=LeafRights(
            create=(P.CREATE_VIEW,),
            load=(P.SELECT_VIEW, P.ALTER_VIEW),
            alter=(P.ALTER_VIEW,),
            drop=(P.DROP_VIEW,),
        ),
        iceberg=IcebergWords(noun="View", missing="NoSuchViewException"),
        old_codes=True,
        stored_here=True,
        icon="eye",
        tabs=("overview", "columns", "dialects", "versions", "lineage", "access", "history"),
    ),
    KindDeclaration(
        kind=Kind.TOPIC,
        label="Topic",
        plural="topics",
        catalog_type=CatalogType.MESSAGING,
        creating=(P.CREATE_TOPIC,),
        privileges=(P.CONSUME_TOPIC, P.PRODUCE_TOPIC, P.MANAGE_GRANTS),
    ),
    KindDeclaration(
        kind=Kind.FILESET,
        label="Fileset",
        plural="filesets",
        catalog_type=CatalogType.FILESET,
        creating=(P.CREATE_FILESET,),
        privileges=(P.READ_FILESET, P.WRITE_FILESET, P.MANAGE_GRANTS),
    ),
    KindDeclaration(
        kind=Kind.MODEL,
        label="Model",
        plural="models",
        catalog_type=CatalogType.MODEL,
        creating=(P.REGISTER_MODEL,),
        privileges=(P.USE_MODEL, P.LINK_MODEL_VERSION, P.MANAGE_GRANTS),
    ),
    KindDeclaration(
        kind=Kind.FUNCTION,
        label="Function",
        plural="functions",
        creating=(P.REGISTER_FUNCTION,),
        privileges=(P.EXECUTE_FUNCTION, P.MODIFY_FUNCTION, P.MANAGE_GRANTS),
    ),
    # A column has the permissions of its table.
    KindDeclaration(kind=Kind.COLUMN, label="Column", plural="columns", lies_in=(Kind.TABLE,)),
    KindDeclaration(
        kind=Kind.TAG,
        label="Tag",
        plural="tags",
        lies_in=(Kind.METALAKE,),
        creating=(P.CREATE_TAG,),
        privileges=(P.APPLY_TAG,),
    ),
    KindDeclaration(
        kind=Kind.POLICY,
        label="Policy",
        plural="policies",
        lies_in=(Kind.METALAKE,),
        creating=(P.CREATE_POLICY,),
        privileges=(P.APPLY_POLICY,),
    ),
    KindDeclaration(
        kind=Kind.ROLE,
        label="Role",
        plural="roles",
        lies_in=(Kind.METALAKE,),
        slot=Slot.ROLE,
        creating=(P.CREATE_ROLE,),
        icon="shield",
    ),
    KindDeclaration(
        kind=Kind.JOB,
        label="Job",
        plural="jobs",
        lies_in=(Kind.METALAKE,),
        creating=(P.RUN_JOB,),
    ),
    KindDeclaration(
        kind=Kind.JOB_TEMPLATE,
        label="JobTemplate",
        plural="job_templates",
        lies_in=(Kind.METALAKE,),
        slot=Slot.JOB_TEMPLATE,
        creating=(P.REGISTER_JOB_TEMPLATE,),
        privileges=(P.USE_JOB_TEMPLATE,),
        rights=LeafRights(create=(P.REGISTER_JOB_TEMPLATE,), load=(P.USE_JOB_TEMPLATE,), alter=()),
        icon="play",
    ),
)
KINDS: dict[Kind, KindDeclaration] = {declaration.kind: declaration for declaration in _DECLARED}

STORED_KINDS = tuple(kind for kind, declared in KINDS.items() if declared.slot)
"""The kinds that have rows."""
LEAVES = tuple(kind for kind in STORED_KINDS if KINDS[kind].is_leaf)
"""The stored kinds in schemas."""
IN_CATALOGS = (Kind.SCHEMA, *LEAVES)
"""The stored kinds in catalogs, containers first."""
BESIDE_CATALOGS = tuple(
    kind for kind in STORED_KINDS if KINDS[kind].lies_in == (Kind.METALAKE,) and kind is not Kind.CATALOG
)
"""The stored kinds directly in a metalake, next to its catalogs; traversals of a metalake skip them."""
TOP_LEAVES = tuple(kind for kind in BESIDE_CATALOGS if KINDS[kind].rights)
"""The ones with grants like leaves; roles have their own rules."""
CONTAINERS = (Kind.METALAKE, Kind.CATALOG, Kind.SCHEMA)
"""The container kinds, outermost first."""


def slot_of(kind: str) -> str:
    """The name space of a stored kind."""
    slot = KINDS[Kind(kind)].slot
    assert slot is not None, kind
    return slot


def sharing(slot: str) -> frozenset[Kind]:
    """The stored kinds of one name space."""
    return frozenset(kind for kind in STORED_KINDS if KINDS[kind].slot == slot)


def kind_choices() -> list[tuple[str, str]]:
    """The choices of a model field; a callable, so that a new kind needs no migration."""
    return [(kind.value, kind.value) for kind in STORED_KINDS]


def slot_choices() -> list[tuple[str, str]]:
    """The choices of a model field for slots."""
    return [(slot, slot.capitalize()) for slot in dict.fromkeys(slot_of(kind) for kind in STORED_KINDS)]


def above(kind: Kind) -> frozenset[Kind]:
    """The kinds that may be ancestors of such an object."""
    parents = frozenset(KINDS[kind].lies_in)
    return parents.union(*(above(parent) for parent in parents if parent is not kind))


_GRANTABLE_ON: dict[P, frozenset[Kind]] = dict.fromkeys(P, frozenset())
_CATALOG_TYPES: dict[P, set[CatalogType | None]] = {privilege: set() for privilege in P}
for _kind, _declared in KINDS.items():
    for _privilege in _declared.creating:
        _GRANTABLE_ON[_privilege] |= above(_kind)
    for _privilege in _declared.privileges:
        _GRANTABLE_ON[_privilege] |= above(_kind) | {_kind}
    for _privilege in (*_declared.creating, *_declared.privileges):
        _CATALOG_TYPES[_privilege].add(_declared.catalog_type)


def grantable_on(privilege: P) -> frozenset[Kind]:
    """The kinds that the privilege can be granted on."""
    return _GRANTABLE_ON[privilege]


def family(privilege: P) -> CatalogType | None:
    """The only catalog type that a privilege applies in; None if it applies in all."""
    types = _CATALOG_TYPES[privilege]
    return next(iter(types)) if len(types) == 1 else None
