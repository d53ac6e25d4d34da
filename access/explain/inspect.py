"""What the reader of an object may do there, all of it from the policy in memory."""

from __future__ import annotations

from dataclasses import dataclass

from authz import policy
from authz.actor import Actor
from metalake.kinds import Kind, grantable_on
from metalake.lineage import Lineage, Node
from metalake.privileges import Privilege


@dataclass(frozen=True)
class Standing:
    """What one actor may do on an object: the topmost thing they own on its lineage, and the privileges in effect."""

    owns: Node | None
    privileges: tuple[Privilege, ...]


def standing(actor: Actor, lineage: Lineage) -> Standing:
    """What the actor may do on the object; no statement, it is all in the actor's snapshot."""
    rights = policy.rights_on(actor, lineage)
    kind = Kind(lineage.nodes[-1].kind)
    owns = next((node for node in lineage.nodes if actor.owns(node)), None) if rights.member else None
    privileges = [privilege for privilege in rights.effective() if kind in grantable_on(privilege)]
    return Standing(owns, tuple(privileges))
