"""The changes that would turn a no into a yes, and who may make them, by evaluating each candidate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from django.contrib.auth.models import Permission

from access.explain.cases import Case
from access.explain.permissions import reads_access
from access.explain.reasons import Piece, Pieces, What
from access.history.current import GrantRow
from authz import operations, policy
from authz.actor import Actor
from authz.models import Grant, Group, User
from authz.services.authority import may_give, may_lift
from authz.services.owners import Owner, owner_of
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

SHOWN = 5
MAX_ASKED = 100


@dataclass(frozen=True)
class By:
    """Who may make a change: the first few names, and how many more of the candidates may.

    Names are None if the asker may not read access there; they see the owner instead if they may load the object.
    `is_asker`: the asker may make the change themselves.
    """

    names: tuple[str, ...] | None
    more: int = 0
    owner: Owner | None = None
    is_asker: bool = False


@dataclass(frozen=True)
class Step:
    """One change: addMember, grant, liftDeny, own or useRole; `on` is None if the asker may not see the object."""

    change: str
    says: str
    on: Located | None = None
    privilege: Privilege | None = None
    role: str | None = None
    by: By | None = None


@dataclass(frozen=True)
class Remedies:
    """The steps that would turn a case's no of the present into a yes."""

    case: Case
    _made: dict[Piece, list[Step]] = field(default_factory=dict, repr=False)

    def steps(self, pieces: Pieces) -> tuple[Step, ...]:
        for piece in pieces:
            if piece not in self._made:
                self._made[piece] = self._steps(piece)
        return tuple(step for piece in pieces for step in self._made[piece])

    def _steps(self, piece: Piece) -> list[Step]:
        """The changes that add one missing piece to the subject's rights; several if several DENYs are to be lifted."""
        match piece.what:
            case What.MEMBER:
                return [self._join()]
            case What.ALLOW:
                return [self._use_role(piece.privilege) or self._grant(piece.privilege)]
            case What.NO_DENY:
                rows = self.case.in_force(self.case.given(piece.privilege, Effect.DENY))
                return [self._lift(row) for row in rows]
            case What.OWN:
                return [self._own(self.case.at_level(piece.of)[0])]

    def _join(self) -> Step:
        top = self.case.top
        says = f"Add {self.case.who} to {policy.describe(top)} as an enabled user."
        by = self.by(top, lambda actor: policy.permits(actor, operations.MANAGE_USERS, top))
        return Step("addMember", says, top, by=by)

    def _use_role(self, privilege: Privilege) -> Step | None:
        """The step of activating a role that has the privilege but was omitted from this request, if there is one."""
        if self.case.subject.active is None:
            return None
        for row in self.case.in_force(self.case.given(privilege, Effect.ALLOW)):
            role = self.case.roles.get(row.role_id)
            says = f"Name role {role} in X-Gravitino-Active-Roles, or leave the header out."
            return Step("useRole", says, self.case.shown(self.case.at(row.object_id)), privilege, role)
        return None

    def _grant(self, privilege: Privilege) -> Step:
        on = self.case.nearest(privilege)
        says = f"Grant {privilege} on {self.case.named(on)} to a role"
        if self._has_role:
            by = self.by(on, lambda actor: may_give(actor, on, privilege))
            return Step("grant", f"{says} of {self.case.who}.", self.case.shown(on), privilege, by=by)
        by = self.by(on, lambda actor: may_give(actor, on, privilege) and self._may_assign(actor))
        return Step("grant", f"{says} and assign it to {self.case.who}.", self.case.shown(on), privilege, by=by)

    @cached_property
    def _has_role(self) -> bool:
        """Whether the subject holds any role in this metalake."""
        return bool(self.case.roles) or bool(self.case.state.roles(self.case.subject.allowing_roles))

    def _may_assign(self, actor: Actor) -> bool:
        return policy.permits(actor, operations.ASSIGN_ROLES, self.case.top)

    def _lift(self, row: GrantRow) -> Step:
        on, role = self.case.at(row.object_id), self.case.roles.get(row.role_id, "")
        says = f"Lift the DENY of {row.privilege} on {self.case.named(on)} in role {role}, or take that role from"
        by = self.by(on, lambda actor: may_lift(actor, on))
        return Step("liftDeny", f"{says} {self.case.who}.", self.case.shown(on), row.privilege, role, by)

    def _own(self, on: Located) -> Step:
        by = self.by(on, lambda actor: policy.permits(actor, operations.own(on.kind), on))
        return Step("own", f"Make {self.case.who} the owner of {self.case.named(on)}.", self.case.shown(on), by=by)

    def by(self, on: Located, may: Callable[[Actor], bool]) -> By:
        """Who may make a change on an object of the lineage, as far as the asker may see."""
        asker = self.case.asker
        if not reads_access(asker, on):
            is_loaded = policy.permits(asker, operations.load_of(on.kind), on)
            return By(None, owner=owner_of(on) if is_loaded else None, is_asker=may(asker))
        names = [actor.name for actor in self._candidates if may(actor)]
        return By(tuple(names[:SHOWN]), more=len(names[SHOWN:]), is_asker=may(asker))

    @cached_property
    def _candidates(self) -> list[Actor]:
        """The owners of the lineage's objects, and the holders of rights to grant or add users there, by name."""
        nodes = self.case.target.nodes
        role_ids = _roles_with_a_say([node.id for node in nodes])
        groups = {node.owner_group_id for node in nodes if node.owner_group_id is not None}
        groups |= set(Group.roles.through.objects.filter(role_id__in=role_ids).values_list("group_id", flat=True))
        users = {node.owner_user_id for node in nodes if node.owner_user_id is not None}
        holding = User.groups.through.objects.filter(group__role__in=role_ids).values_list("user_id", flat=True)
        inside = Group.users.through.objects.filter(group_id__in=groups).values_list("user_id", flat=True)
        users |= {*holding[:MAX_ASKED], *inside[:MAX_ASKED]}
        rows = User.objects.filter(pk__in=users, is_active=True).order_by("username").values_list("pk", "username")
        return [Actor(id, name, self.case.subject.policy) for id, name in rows[:MAX_ASKED]]


def _roles_with_a_say(lineage: list[int]) -> list[int]:
    """The roles with an ALLOW to grant or add users on the lineage; the evaluator decides about their holders."""
    wanted = Permission.objects.filter(codename__in=(Privilege.MANAGE_GRANTS.value, Privilege.MANAGE_USERS.value))
    rows = Grant.objects.filter(content_object__in=lineage, permission__in=list(wanted.values_list("pk", flat=True)))
    return list(rows.filter(effect=Effect.ALLOW.value).values_list("group__role", flat=True).distinct())
