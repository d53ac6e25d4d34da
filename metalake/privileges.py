"""All privileges; metalake/kinds.py declares which kinds each can be granted on.

Source: Gravitino's documented access control.
"""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    ALLOW = "allow"
    DENY = "deny"


class Privilege(StrEnum):
    """A grantable privilege; the order is never stored, bits are per process."""

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


_BITS = {privilege: 1 << position for position, privilege in enumerate(Privilege)}

BEYOND_GRAVITINO = frozenset({Privilege.ALTER_VIEW, Privilege.DROP_VIEW, Privilege.BOOTSTRAP_NAMESPACE})
"""Privileges unknown to Gravitino's clients, which fail on a role that has one."""

ALIASES = {"create_model": Privilege.REGISTER_MODEL, "create_model_version": Privilege.LINK_MODEL_VERSION}


def parse_privilege(name: str) -> Privilege | None:
    """The privilege with this name, case-insensitive, including legacy aliases; None if unknown."""
    lowered = name.lower() if name.isascii() else ""
    return ALIASES.get(lowered) or (Privilege(lowered) if lowered in set(Privilege) else None)
