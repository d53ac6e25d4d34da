"""Read the caller of a request together with the object it addresses."""

from __future__ import annotations

from collections.abc import Mapping

from authz.actor import Actor
from authz.callers.joined_lookup import actor_in, caller_in
from catalogs.lookup import nearest_in
from catalogs.lookup_statement import BY_NAMES, COLUMNS, parameters_of, statement
from metalake.lineage import Address
from metalake.prefetch import ReadAhead
from metalake.statements import fetch

ALL_ROLES = ("", "ALL")  # of X-Gravitino-Active-Roles


def caller_at(sent: Mapping[str, str], address: Address, *, again: bool = False) -> tuple[Actor, ReadAhead] | None:
    """The actor of a request's headers, and the object of an address, in one statement.

    None if identity.authenticate must decide who the caller is. `again`: the object is looked up twice (ReadAhead).
    """
    caller = caller_in(sent.get("HTTP_AUTHORIZATION"))
    if caller is None or sent.get("HTTP_X_GRAVITINO_ACTIVE_ROLES", "") not in ALL_ROLES:
        return None
    rows = fetch(statement(BY_NAMES, caller.form), [*parameters_of(address), caller.parameter])
    actor = actor_in(caller, rows[0][COLUMNS:]) if rows else None
    if actor is None:
        return None
    return actor, ReadAhead(address, nearest_in(address, rows), again=again)
