"""The kinds of objects, every privilege, and what each privilege may be granted on.

Source: the access-control model of the native wire (sections 8.1 and 8.2), decisions 8 to 10.
"""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What an object is; the value is the word the wires use."""

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
    """What a catalog holds (RFC-1); only relational catalogs do anything yet."""

    RELATIONAL = "relational"
    FILESET = "fileset"
    MESSAGING = "messaging"
    MODEL = "model"


LEAVES = {
    Kind.TABLE: CatalogType.RELATIONAL,
    Kind.VIEW: CatalogType.RELATIONAL,
    Kind.TOPIC: CatalogType.MESSAGING,
    Kind.FILESET: CatalogType.FILESET,
    Kind.MODEL: CatalogType.MODEL,
    Kind.FUNCTION: CatalogType.RELATIONAL,
}


class Effect(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


class Privilege(StrEnum):
    """A verb that can be granted; the order is stored nowhere, bits are per process."""

    CREATE_CATALOG = "create_catalog"
    USE_CATALOG = "use_catalog"
    CREATE_SCHEMA = "create_schema"
    USE_SCHEMA = "use_schema"
    BOOTSTRAP_NAMESPACE = "bootstrap_namespace"
    CREATE_TABLE = "create_table"
    SELECT_TABLE = "select_table"
    MODIFY_TABLE = "modify_table"
    CREATE_VIEW = "create_view"
    SELECT_VIEW = "select_view"
    ALTER_VIEW = "alter_view"
    DROP_VIEW = "drop_view"
    CREATE_TOPIC = "create_topic"
    CONSUME_TOPIC = "consume_topic"
    PRODUCE_TOPIC = "produce_topic"
    CREATE_FILESET = "create_fileset"
    READ_FILESET = "read_fileset"
    WRITE_FILESET = "write_fileset"
    REGISTER_MODEL = "register_model"
    LINK_MODEL_VERSION = "link_model_version"
    USE_MODEL = "use_model"
    REGISTER_FUNCTION = "register_function"
    EXECUTE_FUNCTION = "execute_function"
    MODIFY_FUNCTION = "modify_function"
    MANAGE_USERS = "manage_users"
    MANAGE_GROUPS = "manage_groups"
    CREATE_ROLE = "create_role"
    MANAGE_GRANTS = "manage_grants"
    CREATE_TAG = "create_tag"
    APPLY_TAG = "apply_tag"
    CREATE_POLICY = "create_policy"
    APPLY_POLICY = "apply_policy"
    REGISTER_JOB_TEMPLATE = "register_job_template"
    USE_JOB_TEMPLATE = "use_job_template"
    RUN_JOB = "run_job"

    @property
    def bit(self) -> int:
        return _BITS[self]

    @property
    def label(self) -> str:
        return self.value.replace("_", " ").capitalize()

    @property
    def grantable_on(self) -> frozenset[Kind]:
        return GRANTABLE_ON[self]


_BITS = {privilege: 1 << position for position, privilege in enumerate(Privilege)}

ALIASES = {"create_model": Privilege.REGISTER_MODEL, "create_model_version": Privilege.LINK_MODEL_VERSION}

_M, _C, _S = Kind.METALAKE, Kind.CATALOG, Kind.SCHEMA

GRANTABLE_ON: dict[Privilege, frozenset[Kind]] = {
    privilege: frozenset(kinds)
    for privileges, kinds in [
        (
            (
                Privilege.CREATE_CATALOG,
                Privilege.MANAGE_USERS,
                Privilege.MANAGE_GROUPS,
                Privilege.CREATE_ROLE,
                Privilege.CREATE_TAG,
                Privilege.CREATE_POLICY,
                Privilege.REGISTER_JOB_TEMPLATE,
                Privilege.RUN_JOB,
            ),
            (_M,),
        ),
        ((Privilege.USE_CATALOG, Privilege.BOOTSTRAP_NAMESPACE), (_M, _C)),
        (
            (
                Privilege.CREATE_SCHEMA,
                Privilege.USE_SCHEMA,
                Privilege.CREATE_TABLE,
                Privilege.CREATE_VIEW,
                Privilege.CREATE_TOPIC,
                Privilege.CREATE_FILESET,
                Privilege.REGISTER_MODEL,
                Privilege.REGISTER_FUNCTION,
            ),
            (_M, _C, _S),
        ),
        ((Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE), (_M, _C, _S, Kind.TABLE)),
        ((Privilege.SELECT_VIEW, Privilege.ALTER_VIEW, Privilege.DROP_VIEW), (_M, _C, _S, Kind.VIEW)),
        ((Privilege.CONSUME_TOPIC, Privilege.PRODUCE_TOPIC), (_M, _C, _S, Kind.TOPIC)),
        ((Privilege.READ_FILESET, Privilege.WRITE_FILESET), (_M, _C, _S, Kind.FILESET)),
        ((Privilege.USE_MODEL, Privilege.LINK_MODEL_VERSION), (_M, _C, _S, Kind.MODEL)),
        ((Privilege.EXECUTE_FUNCTION, Privilege.MODIFY_FUNCTION), (_M, _C, _S, Kind.FUNCTION)),
        (
            (Privilege.MANAGE_GRANTS,),
            (_M, _C, _S, Kind.TABLE, Kind.VIEW, Kind.TOPIC, Kind.FILESET, Kind.MODEL, Kind.FUNCTION),
        ),
        ((Privilege.APPLY_TAG,), (_M, Kind.TAG)),
        ((Privilege.APPLY_POLICY,), (_M, Kind.POLICY)),
        ((Privilege.USE_JOB_TEMPLATE,), (_M, Kind.JOB_TEMPLATE)),
    ]
    for privilege in privileges
}

_FAMILIES = {
    "table": CatalogType.RELATIONAL,
    "view": CatalogType.RELATIONAL,
    "topic": CatalogType.MESSAGING,
    "fileset": CatalogType.FILESET,
    "model": CatalogType.MODEL,
}


def family(privilege: Privilege) -> CatalogType | None:
    """The only catalog type that a privilege about a leaf kind makes sense in; None where it fits all."""
    return next((type_ for word, type_ in _FAMILIES.items() if word in privilege.value.split("_")), None)


def parse_privilege(name: str) -> Privilege | None:
    """The privilege of that name in any case, legacy aliases included."""
    lowered = name.lower() if name.isascii() else ""
    return ALIASES.get(lowered) or (Privilege(lowered) if lowered in set(Privilege) else None)
