"""More wrong evaluators: of grants for a time, of requests that are narrowed or claim groups."""

from __future__ import annotations

from tests.authz.model import ALLOW, DENY, Actor, Grant, Party, Request
from tests.authz.planted import GroupOwnershipForgotten, planted


def unclaimed(actor: Actor) -> Actor:
    """The same, as stored alone."""
    return Actor(actor.world, actor.user, Request(actor.now, actor.active))


# Grants for a time


@planted
class StartForgotten(Actor):
    def counts(self, grant: Grant) -> bool:
        return super().counts(grant._replace(starts=None))


@planted
class EndForgotten(Actor):
    def counts(self, grant: Grant) -> bool:
        return super().counts(grant._replace(ends=None))


@planted
class FirstMomentLeftOut(Actor):
    def counts(self, grant: Grant) -> bool:
        return super().counts(grant) and grant.starts != self.now


@planted
class EndIncluded(Actor):
    def counts(self, grant: Grant) -> bool:
        return super().counts(grant) or (grant.ends == self.now and super().counts(grant._replace(ends=None)))


@planted
class TimedGrantsForgotten(Actor):
    def counts(self, grant: Grant) -> bool:
        return super().counts(grant) and grant.starts is grant.ends is None


@planted
class TimedDenyForgotten(Actor):
    def counts(self, grant: Grant) -> bool:
        return super().counts(grant) and (grant.effect == ALLOW or grant.starts is grant.ends is None)


@planted
class TimedDenyForEver(Actor):
    def counts(self, grant: Grant) -> bool:
        return super().counts(grant._replace(starts=None, ends=None) if grant.effect == DENY else grant)


@planted
class EndedDenyKeepsItsRole(Actor):
    def drops_role(self, role: int) -> bool:
        lifted = [self.lifts_deny(g.obj) for g in self.world.grants if g.role == role and g.effect == DENY]
        return super().drops_role(role) and all(lifted)


@planted
class RoleDroppedWithADenyToCome(Actor):
    def drops_role(self, role: int) -> bool:
        denies = [g.obj for g in self.world.grants if g.role == role and g.effect == DENY and g.is_in_force(self.now)]
        return self.acts(role) and all(map(self.lifts_deny, denies))


# Narrowing to active roles


@planted
class NarrowingForgotten(Actor):
    def counts(self, grant: Grant) -> bool:
        return grant.is_in_force(self.now) and grant.role in self.roles()


@planted
class NoActiveRoleTakenForAll(Actor):
    def counts(self, grant: Grant) -> bool:
        return super().counts(grant) if self.active else NarrowingForgotten.counts(self, grant)  # type: ignore[arg-type]


@planted
class DenyNarrowedAway(Actor):
    def counts(self, grant: Grant) -> bool:
        return super().counts(grant) and (self.active is None or grant.role in self.active)


@planted
class ActiveRoleNeedNotBeHeld(Actor):
    def roles(self) -> set[int]:
        return super().roles() | set(self.active or ())


@planted
class RolesNarrowedEverywhere(Actor):
    def roles(self) -> set[int]:
        return super().roles() if self.active is None else super().roles() & self.active


@planted
class OwnershipNarrowedAway(Actor):
    def owns(self, obj: int) -> bool:
        return self.active is None and super().owns(obj)


@planted
class GroupOwnershipNarrowedAway(Actor):
    def owns(self, obj: int) -> bool:
        return super().owns(obj) and (self.active is None or GroupOwnershipForgotten(self.world, self.user).owns(obj))


# Groups that a token claims


@planted
class ClaimsForgotten(Actor):
    def is_party(self, party: Party) -> bool:
        return unclaimed(self).is_party(party)


@planted
class ClaimsReplaceStoredGroups(Actor):
    def is_party(self, party: Party) -> bool:
        replaced = party.kind == "group" and self.claimed
        return party.id in self.claimed if replaced else super().is_party(party)


@planted
class ClaimedRolesForgotten(Actor):
    def roles(self) -> set[int]:
        return unclaimed(self).roles()


@planted
class ClaimedDenyForgotten(Actor):
    def denied(self, privilege: str, obj: int) -> bool:
        return unclaimed(self).denied(privilege, obj)


@planted
class ClaimedOwnershipForgotten(Actor):
    def owns(self, obj: int) -> bool:
        return unclaimed(self).owns(obj)


@planted
class ClaimMakesAMember(Actor):
    def is_member(self, metalake: int) -> bool:
        claimed = {self.world.groups[group].metalake for group in self.claimed}
        return super().is_member(metalake) or metalake in claimed


@planted
class ClaimedGroupActsAsItsMetalakesOnly(Actor):
    def is_member(self, metalake: int) -> bool:
        claimed = {self.world.groups[group].metalake for group in self.claimed}
        return super().is_member(metalake) and (not claimed or metalake in claimed)
