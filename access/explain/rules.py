"""The rules of using a privilege on an object, as data for clients that resolve a whole metalake's rights."""

from __future__ import annotations

from typing import Any

from authz import operations
from authz.actor import Actor
from authz.operations import Operation, Traversal
from authz.services.change import enter
from metalake.kinds import STORED_KINDS, Kind, family, grantable_on
from metalake.privileges import Privilege

_TRAVERSED = {
    Traversal.NONE: (),
    Traversal.CATALOG: (Kind.CATALOG,),
    Traversal.SCHEMA: (Kind.CATALOG, Kind.SCHEMA),
}


def rules_for(actor: Actor, metalake: str) -> dict[str, list[dict[str, Any]]]:
    """The rules and operations, which are the same in every metalake, for its members. Raises NotFound, NotInUse."""
    enter(actor, metalake)
    return {"rules": rules(), "operations": operation_rules()}


def rules() -> list[dict[str, Any]]:
    """What each privilege takes on each kind of object that it may be granted on (docs/authorization.md, rules 2 to 8).

    Its `owners` may use it anyway: of the object itself ("self") or of a container. `traversal` are the containers
    whose use it takes; any one set of `sufficient` is enough; a DENY of `blockedBy` blocks all but owners. `family` is
    the only type of catalog in which it applies.
    """
    return [
        _rule(privilege, kind)
        for privilege in Privilege
        for kind in sorted(STORED_KINDS)
        if kind in grantable_on(privilege)
    ]


def operation_rules() -> list[dict[str, Any]]:
    """What each operation requires on the kinds of object it applies to, in the same format."""
    return [
        {"operation": operation.name, "on": sorted(map(str, operation.on)), **_needs(operation)}
        for operation in operations.OPERATIONS.values()
    ]


def _needs(operation: Operation) -> dict[str, Any]:
    return {
        "owners": sorted(map(str, operation.owners)),
        "traversal": [each.value for each in _TRAVERSED[operation.traversal]],
        "sufficient": [sorted(each.value for each in needed) for needed in operation.sufficient],
    }


def _rule(privilege: Privilege, kind: Kind) -> dict[str, Any]:
    use, type_ = operations.use_of(privilege, kind), family(privilege)
    return {
        "privilege": privilege.value,
        "kind": kind.value,
        **_needs(use),
        "blockedBy": [denied.value for denied, kinds in use.blocked_by if kind in kinds],
        **({"family": str(type_)} if type_ else {}),
    }
