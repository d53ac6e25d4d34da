"""Authorize a request by path and caller only, before its body is read.

This grants nothing: the service checks again in its transaction and would raise the same error. If the body decides
which of two rights is needed, either is enough here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from authz import operations, policy
from authz.actor import Actor
from authz.objects import find_asked, find_object
from authz.operations import FAMILIES, OPERATIONS
from authz.services.authority import may_lift, require
from authz.services.change import enter
from catalogs.services import resolution, schema_paths
from catalogs.services.writes import Target
from metalake.errors import Forbidden, MetalakeError, NotFound
from metalake.kinds import LEAVES, Kind
from metalake.lineage import Address, address_in
from metalake.wire import kind_of

# Operations on a metalake's people and roles, which are refused while the metalake is disabled.
_OF_PEOPLE = frozenset({"load_metalake", "manage_users", "manage_groups", "create_role", "assign_roles"})


def admit(actor: Actor, asked: str, names: Mapping[str, str]) -> None:
    """Raise what the service would raise for this caller and path; `asked` is the operation, as in `answers`."""
    if "metalake" not in names:
        return
    if asked in FAMILIES:
        _admit_to_any(actor, asked, names)
    elif asked in _OF_PEOPLE:
        _admit_to_people(actor, asked, names)
    else:
        admit_to(actor, asked, address_in(names))


def admit_to(actor: Actor, asked: str, ident: Address) -> None:
    """As `admit`, for the object at an address or one to be created below it. Do not call in a transaction."""
    _FURTHER.get(asked, _require)(actor, asked, ident)


def _require(actor: Actor, asked: str, ident: Address) -> None:
    operation = OPERATIONS[asked]
    located = Target(ident, operation).find(actor, resolution.find)
    if located.kind in operation.on:
        policy.require(actor, operation, located)
    elif not policy.sees(actor, located):  # the body names the object
        raise policy.hidden(actor, operation, located)


def _reach(actor: Actor, asked: str, ident: Address) -> None:
    """Check the catalog only: which schema needs the right depends on the new schema's name, in the body."""
    schema_paths.catalog_at(actor, ident)


def _create(actor: Actor, asked: str, ident: Address) -> None:
    resolution.resolve_parent(actor, ident, OPERATIONS[asked])


def _commit(actor: Actor, asked: str, ident: Address) -> None:
    """Check the right to commit to the table or to create it: the requirements in the body decide which."""
    try:
        _require(actor, asked, ident)
    except Forbidden:
        if not _may_create(actor, ident.of_schema()):
            raise
    except NotFound as miss:
        if miss.kind not in (Kind.SCHEMA, Kind.TABLE):
            raise


def _may_create(actor: Actor, ident: Address) -> bool:
    try:
        resolution.resolve_parent(actor, ident)
    except MetalakeError:
        return False
    return True


_FURTHER: dict[str, Callable[[Actor, str, Address], None]] = {
    "create_schema": _reach,
    **{operations.create_of(kind).name: _create for kind in LEAVES},
    "register_table": _create,
    "register_view": _create,
    "commit_table": _commit,
}


def admit_with(asked: str, check: Callable[[Actor, str, Address], None]) -> None:
    """Register the check of another app's operation; it gets the actor, the operation and the address."""
    _FURTHER[asked] = check


def _admit_to_people(actor: Actor, asked: str, names: Mapping[str, str]) -> None:
    top = enter(actor, names["metalake"])
    # Either right allows changing the users of a group (docs/authorization.md, rule 9).
    if "group" in names and policy.permits(actor, operations.ASSIGN_ROLES, top):
        return
    policy.require(actor, OPERATIONS[asked], top)


def _admit_to_any(actor: Actor, asked: str, names: Mapping[str, str]) -> None:
    """Check an operation on any kind of object; to lift a DENY, authority above the object is enough."""
    enter(actor, names["metalake"])
    kind = kind_of(names["type"])
    if kind not in FAMILIES[asked]:
        return
    find = find_asked if asked in ("load", "read_access") else find_object
    located = find(names["metalake"], kind, names["full_name"], actor)
    if not (asked == "grant_on" and may_lift(actor, located)):
        require(actor, FAMILIES[asked][kind], located)
