"""Wrong evaluators: each is the model with one believable mistake. A generator that finds them all has teeth."""

from __future__ import annotations

from collections.abc import Callable

from tests.authz.model import BARE, DENY, Actor, Party, Request, World

Evaluator = Callable[..., str]
PLANTED: dict[str, Evaluator] = {}


def evaluator(actor: type[Actor]) -> Evaluator:
    """What such an actor is answered; called like `answer`."""

    def evaluate(
        world: World,
        user: int,
        operation: str,
        obj: int | None,
        missing: int = 0,
        privilege: str = "",
        how: Request = BARE,
    ) -> str:
        asked = actor(world, user, how)
        if asked.may(operation, obj, missing, privilege):
            return "ok"
        return "forbidden" if obj is None or asked.sees(obj) else "unseen"

    return evaluate


def planted(mistaken: type[Actor]) -> type[Actor]:
    PLANTED[mistaken.__name__] = evaluator(mistaken)
    return mistaken


def full_name(world: World, obj: int) -> str:
    return ":".join(reversed([world.objects[scope].name for scope in world.lineage(obj)]))


def catalog_of(world: World, obj: int) -> int:
    return next(scope for scope in world.lineage(obj) if world.kind(scope) == "catalog")


# Grants looked up by name, or on the wrong scopes


@planted
class NamePrefixMatch(Actor):
    def scopes(self, obj: int) -> list[int]:
        name = full_name(self.world, obj)
        return [other for other in self.world.objects if name.startswith(full_name(self.world, other))]


@planted
class CaseFolding(Actor):
    def scopes(self, obj: int) -> list[int]:
        names = {full_name(self.world, scope).casefold() for scope in self.world.lineage(obj)}
        return [other for other in self.world.objects if full_name(self.world, other).casefold() in names]


@planted
class SeparatorInANameTakenForALevel(Actor):
    def scopes(self, obj: int) -> list[int]:
        names = {full_name(self.world, scope) for scope in self.world.lineage(obj)}
        return [other for other in self.world.objects if full_name(self.world, other) in names]


@planted
class MetalakeScopeForgotten(Actor):
    def scopes(self, obj: int) -> list[int]:
        return super().scopes(obj)[:-1] or [obj]


@planted
class OnlyObjectParentAndCatalogLookedAt(Actor):
    def scopes(self, obj: int) -> list[int]:
        line = super().scopes(obj)
        return line[:2] + line[-2:]


# Roles, groups and members


@planted
class GroupRolesForgotten(Actor):
    def roles(self) -> set[int]:
        return {role for role, holder in self.world.assignments if holder == Party("user", self.user)}


@planted
class GroupDenyForgotten(Actor):
    def denied(self, privilege: str, obj: int) -> bool:
        direct = GroupRolesForgotten(self.world, self.user, Request(self.now))
        return direct.granted(privilege, DENY, obj)


@planted
class GroupOwnershipForgotten(Actor):
    def owns(self, obj: int) -> bool:
        return any(self.world.objects[scope].owner == ("user", self.user) for scope in self.world.lineage(obj))


@planted
class MembershipForgotten(Actor):
    def is_member(self, metalake: int) -> bool:
        return True


@planted
class ServiceAdministratorIsMember(Actor):
    def is_member(self, metalake: int) -> bool:
        return super().is_member(metalake) or self.world.users[self.user].service_admin


# DENY


@planted
class DenyForgotten(Actor):
    def denied(self, privilege: str, obj: int) -> bool:
        return False


@planted
class DenyOnlyOnTheLeaf(Actor):
    def denied(self, privilege: str, obj: int) -> bool:
        return any(g[1:4] == (privilege, DENY, obj) and self.counts(g) for g in self.world.grants)


@planted
class DenyOnlyInTheSameRole(Actor):
    def holds(self, privilege: str, obj: int) -> bool:
        scopes = self.scopes(obj)
        found = [g for g in self.world.grants if g.privilege == privilege and g.obj in scopes and self.counts(g)]
        denying = {g.role for g in found if g.effect == DENY}
        return any(g.role not in denying for g in found)


@planted
class NearestScopeWins(Actor):
    def holds(self, privilege: str, obj: int) -> bool:
        for scope in self.scopes(obj):
            here = [g for g in self.world.grants if g.privilege == privilege and g.obj == scope]
            if effects := {g.effect for g in here if self.counts(g)}:
                return DENY not in effects
        return False


@planted
class DenyOfOnePrivilegeCutsItsAlternative(Actor):
    def acts(self, obj: int, *privileges: str) -> bool:
        if self.owns(obj) or not any(self.denied(p, obj) for p in privileges):
            return super().acts(obj, *privileges)
        return False


# Ownership and traversal


@planted
class OwnerCutByDeny(Actor):
    def acts(self, obj: int, *privileges: str) -> bool:
        return super().acts(obj, *privileges) and not any(self.denied(p, obj) for p in privileges)


@planted
class OwnerImmuneToTraversal(Actor):
    def reaches(self, obj: int) -> bool:
        return super().reaches(obj) or (self.owns(obj) and self.is_member(self.world.lineage(obj)[-1]))


@planted
class SchemaOwnerNeedsUseSchema(Actor):
    def reaches(self, obj: int) -> bool:
        if self.world.kind(obj) not in ("table", "view") or self.owns(catalog_of(self.world, obj)):
            return super().reaches(obj)
        return super().reaches(obj) and self.holds("use_schema", self.world.gate(obj))


@planted
class CatalogOwnerNeedsUseCatalog(Actor):
    def reaches(self, obj: int) -> bool:
        needed = self.world.kind(obj) == "schema"
        return super().reaches(obj) and (not needed or self.holds("use_catalog", self.world.gate(obj)))


@planted
class AncestorOwnershipForgotten(Actor):
    def owns(self, obj: int) -> bool:
        return self.is_party(self.world.objects[obj].owner)


@planted
class UseSchemaNeededAtEachLevel(Actor):
    def holds(self, privilege: str, obj: int) -> bool:
        held = super().holds(privilege, obj)
        if privilege != "use_schema" or self.world.kind(obj) != "schema":
            return held
        parent = self.world.lineage(obj)[1]
        return held and (self.world.kind(parent) != "schema" or self.holds(privilege, parent))


@planted
class UseCatalogForgotten(Actor):
    def holds(self, privilege: str, obj: int) -> bool:
        return privilege == "use_catalog" or super().holds(privilege, obj)


@planted
class UseSchemaForgotten(Actor):
    def holds(self, privilege: str, obj: int) -> bool:
        return privilege == "use_schema" or super().holds(privilege, obj)


# Creating schemas


@planted
class CreateSchemaOnItself(Actor):
    def creates_schema(self, container: int, missing: int) -> bool:
        children = self.world.children.get(container, ())
        on_a_child = any(self.holds("create_schema", child) for child in children if self.world.kind(child) == "schema")
        return super().creates_schema(container, missing) or (on_a_child and self.reaches(container))


@planted
class CreateSchemaOnlyForDirectChildren(Actor):
    def creates_schema(self, container: int, missing: int) -> bool:
        return super().creates_schema(container, missing) and (missing == 0 or self.owns(container))


@planted
class CreateSchemaNeedsUseSchema(Actor):
    def creates_schema(self, container: int, missing: int) -> bool:
        return super().creates_schema(container, missing) and (
            self.world.kind(container) == "catalog" or self.loads(container)
        )


@planted
class DenyOfUseSchemaDoesNotBlockCreation(Actor):
    def creates_schema(self, container: int, missing: int) -> bool:
        reaches = self.loads(catalog_of(self.world, container))
        return super().creates_schema(container, missing) or (reaches and self.holds("create_schema", container))


@planted
class BootstrapWithNothingMissing(Actor):
    def creates_schema(self, container: int, missing: int) -> bool:
        return super().creates_schema(container, 1)


@planted
class BootstrapForgotten(Actor):
    def creates_schema(self, container: int, missing: int) -> bool:
        return super().creates_schema(container, 0)


@planted
class BootstrapBeatsDeny(Actor):
    def creates_schema(self, container: int, missing: int) -> bool:
        reaches = missing > 0 and self.loads(catalog_of(self.world, container))
        return super().creates_schema(container, missing) or (reaches and self.holds("bootstrap_namespace", container))


# Who grants, and what is seen


@planted
class ManageGrantsPassesItselfOn(Actor):
    def grants(self, obj: int, privilege: str) -> bool:
        return self.acts(obj, "manage_grants")


@planted
class OwnerLiftsTheDenyOnWhatHeOwns(Actor):
    def lifts_deny(self, obj: int) -> bool:
        return self.acts(obj, "manage_grants")


@planted
class RoleDroppedWithItsDenies(Actor):
    def drops_role(self, role: int) -> bool:
        return self.acts(role)


@planted
class PathRefusesItsLists(Actor):
    def sees(self, obj: int) -> bool:
        return self.loads(obj)


@planted
class ModifyTableDrops(Actor):
    def may(self, operation: str, obj: int | None, missing: int = 0, privilege: str = "") -> bool:
        dropping = operation in ("drop_table", "rename_table")
        return super().may("alter_table" if dropping else operation, obj, missing, privilege)


@planted
class AnyUseOfACatalogEnablesIt(Actor):
    def may(self, operation: str, obj: int | None, missing: int = 0, privilege: str = "") -> bool:
        return super().may("load_catalog" if operation == "enable_catalog" else operation, obj, missing, privilege)


# Views


@planted
class DroppableViewNotNamed(Actor):
    def sees(self, obj: int) -> bool:
        return self.loads(obj) or any(self.sees(child) for child in self.world.children.get(obj, ()))


@planted
class NameOfAViewOpensIt(Actor):
    def loads(self, obj: int) -> bool:
        return super().loads(obj) or (self.world.kind(obj) == "view" and self.acts(obj, "drop_view"))

    def may(self, operation: str, obj: int | None, missing: int = 0, privilege: str = "") -> bool:
        opened = operation == "load_view" and obj is not None and self.acts(obj, "drop_view")
        return super().may(operation, obj, missing, privilege) or opened


@planted
class CreateViewLoads(Actor):
    def acts(self, obj: int, *privileges: str) -> bool:
        return super().acts(obj, *privileges, *(("create_view",) if "select_view" in privileges else ()))


@planted
class AlterViewDoesNotLoad(Actor):
    def acts(self, obj: int, *privileges: str) -> bool:
        return super().acts(obj, *(privileges[:1] if "select_view" in privileges else privileges))


@planted
class ViewsReadAsTables(Actor):
    def acts(self, obj: int, *privileges: str) -> bool:
        return super().acts(obj, *privileges, *(("select_table",) if "select_view" in privileges else ()))


@planted
class ViewsAlteredAsTables(Actor):
    def acts(self, obj: int, *privileges: str) -> bool:
        return super().acts(obj, *privileges, *(("modify_table",) if privileges == ("alter_view",) else ()))


@planted
class ViewDroppedByItsOwnersAlone(Actor):
    def may(self, operation: str, obj: int | None, missing: int = 0, privilege: str = "") -> bool:
        return super().may("set_owner" if operation == "drop_view" else operation, obj, missing, privilege)
