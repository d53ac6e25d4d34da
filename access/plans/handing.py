"""What handing an object to another owner would do, before it is done."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from access.explain.reach import group_alone, type_of, usable
from authz import policy
from authz.actor import Actor
from authz.services.owners import Owner, check_owner, owner_of
from authz.services.ownership_rules import party_of
from metalake.lineage import Located, Node
from metalake.privileges import Privilege


class Handing(NamedTuple):
    """The object as it would be, and its owner `before`.

    `former_owns` is what that owner then still owns on its lineage, `former_keeps` the privileges that they then have
    on it by grants. `is_same`: they stay the owner.
    """

    handed: Located
    before: Owner
    is_same: bool
    former_owns: Node | None
    former_keeps: tuple[Privilege, ...]


def preview_owner(actor: Actor, metalake: str, target: Located, name: str, type_: str) -> Handing:
    """What `set_owner` would do. Raises what it would raise now."""
    user_id, group_id = party = check_owner(actor, metalake, target, name, type_)
    node, before = target.node, owner_of(target)
    handed = replace(target, nodes=(*target.nodes[:-1], node._replace(owner_user_id=user_id, owner_group_id=group_id)))
    if node.owner_user_id is not None:
        former = Actor(node.owner_user_id, before.name, actor.policy)
    else:
        assert node.owner_group_id is not None
        former = group_alone(node.owner_group_id, before.name, actor.policy, None)
    owns = next((each for each in reversed(handed.nodes) if former.owns(each)), None)
    keeps = usable(policy.rights_on(former, handed), target.kind, type_of(target))
    return Handing(handed, before, party == party_of(node), owns, keeps)
