"""One system twice: rows behind the real services, and the model's world. Every step is done to both and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.services import grants, owners, people, roles
from catalogs.lookup import find
from catalogs.managed.tables import ManagedTables
from catalogs.pointer_stores import NewState
from catalogs.services import catalogs, metalakes, schemas, tables
from catalogs.services.alterations import Alteration
from catalogs.services.provider_of import files_of
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable
from tests.authz.mirror import FORBIDDEN, OK, Mirror, first
from tests.authz.model import ALLOW, DENY, Grant, Group, Party, World


class Twin(Mirror):
    """Each method is a step: what is asked of the services, what they must answer, and the world it leads to."""

    # Objects.

    def create_metalake(self, name: str) -> int:
        actor = replace(actor_of(self.accounts[self.founder]), service_admin=True)
        row = metalakes.create_metalake(actor, name, None, {})
        self.world = self._born(row.pk, "metalake", name, None, self.founder)
        self.world = replace(self.world, members=self.world.members | {(row.pk, self.founder)})
        return row.pk

    def create_catalog(self, user: int, metalake: int, name: str) -> None:
        wanted = first(self.answer(user, "create_catalog", metalake), self._free("catalog", metalake, name))
        self.step(
            user,
            f"creates catalog {name} in {self.name(metalake)}",
            wanted,
            lambda actor: catalogs.create_catalog(
                actor, self.name(metalake), name, "relational", "lakehouse-iceberg", None, {}
            ),
            lambda row: self._born(row.pk, "catalog", name, metalake, user),
        )

    def create_schema(self, user: int, container: int, *levels: str) -> None:
        nearest, missing = container, list(levels)
        while len(missing) > 1 and (there := self.named("schema", nearest, missing[0])) is not None:
            nearest, missing = there, missing[1:]
        wanted = self.answer(user, "create_schema", nearest, missing=len(missing) - 1)
        ident = self.ident(container, *levels)

        def born(record: schemas.SchemaRecord) -> World:
            world, parent = self.world, nearest
            ids = Securable.objects.get(pk=record.row.pk).lineage_ids[-len(missing) :]
            for id, name in zip(ids, missing, strict=True):
                world, parent = self._born(id, "schema", name, parent, user, world), id
            return world

        self.step(
            user,
            f"creates schema {ident}",
            first(wanted, self._free("schema", nearest, missing[0]) if len(missing) == 1 else OK),
            lambda actor: schemas.create_schema(actor, ident, None, {}),
            born,
        )

    def create_table(self, user: int, schema: int, name: str) -> None:
        """Through the service that publishes a table, without the metadata file that it would point to."""
        ident = replace(self.ident(schema), leaf=name)
        uuid = uuid4()

        def publish(actor: Actor) -> Located:
            home = find(actor, self.ident(schema))
            store = files_of(home)
            place = f"{store.warehouse}/{uuid}"
            metadata = {"table-uuid": str(uuid), "location": place}
            new = NewState(store, metadata, f"{place}/metadata/1.json", b"")
            return ManagedTables.pointers.publish(actor, ident, home, new, "created").published

        self.step(
            user,
            f"creates table {ident}",
            first(self.answer(user, "create_table", schema), self._free("table", schema, name)),
            publish,
            lambda found: self._born(found.id, "table", name, schema, user),
        )

    def drop(self, user: int, obj: int) -> None:
        kind, ident = self.world.kind(obj), self.ident(obj)
        children = self.world.children.get(obj) if kind == "schema" else None
        calls: dict[str, Callable[[Actor], Any]] = {
            "catalog": lambda actor: catalogs.drop_catalog(actor, ident.metalake, self.name(obj), force=True),
            "schema": lambda actor: schemas.drop_schema(actor, ident),
            "table": lambda actor: tables.drop_table(actor, ident),
        }
        wanted = first(self.answer(user, f"drop_{kind}", obj), "not empty" if children else OK)
        self.step(user, f"drops {kind} {self.full_name(obj)}", wanted, calls[kind], lambda _: self._gone(obj))

    def rename_table(self, user: int, table: int, schema: int, name: str) -> None:
        parent = self.world.objects[table].parent
        words = [self.answer(user, "alter_table" if schema == parent else "rename_table", table)]
        if schema != parent:
            left = set(self.world.lineage(table)[1:]) - set(self.world.lineage(schema))
            denied = [grant.obj for grant in self.world.grants if grant.effect == DENY and grant.obj in left]
            words.append(self.answer(user, "create_table", schema))
            words.append(OK if all(map(self.may(user).lifts_deny, denied)) else FORBIDDEN)
            owners_there, owners_here = self._owners(schema), self._owners(table)
            gain = {role for party in owners_there - owners_here for role in self.world.roles_of(party)}
            words.append(OK if self.may(user).makes_owner(gain, [table]) else FORBIDDEN)
        source, target = self.ident(table), replace(self.ident(schema), leaf=name)
        self.step(
            user,
            f"renames table {source} to {target}",
            first(*words, self._free("table", schema, name)),
            lambda actor: tables.rename_table(actor, source, target),
            lambda _: self._with(replace(self.world.objects[table], parent=schema, name=name)),
        )

    def rename_catalog(self, user: int, catalog: int, name: str) -> None:
        metalake, was = self.metalake(catalog), self.name(catalog)
        free = OK if name == was else self._free("catalog", metalake, name)
        self.step(
            user,
            f"renames catalog {was} of {self.name(metalake)} to {name}",
            first(self.answer(user, "alter_catalog", catalog), free),
            lambda actor: catalogs.alter_catalog(actor, self.name(metalake), was, Alteration(new_name=name)),
            lambda _: self._with(replace(self.world.objects[catalog], name=name)),
        )

    def set_owner(self, user: int, obj: int, to: Party) -> None:
        metalake, kind = self.metalake(obj), Kind(self.world.kind(obj))
        owned = self._with(replace(self.world.objects[obj], owner=to))
        same = self.world.objects[obj].owner == to
        valid = OK if obj != metalake or same else self.after(lambda: owned, lambda: self.has_owner(metalake))
        name, full_name = self.party_name(to), self.full_name(obj)
        self.step(
            user,
            f"gives {kind} {full_name} of {self.name(metalake)} to {to.kind} {name}",
            first(
                self.answer(user, "set_owner", obj),
                OK if self.may(user).hands_to(metalake, to) else FORBIDDEN,
                OK if same or self.may(user).hands_over(obj, to) else FORBIDDEN,
                valid,
            ),
            lambda actor: owners.set_owner(actor, self.name(metalake), kind, full_name, name, to.kind),
            lambda _: owned,
        )

    # Grants and roles.

    def grant(self, user: int, role: int, privilege: str, effect: str, obj: int) -> None:
        metalake, full_name = self.name(self.metalake(obj)), self.full_name(obj)
        grant = Grant(role, privilege, effect, obj)
        opposite = grant._replace(effect=ALLOW if effect == DENY else DENY)
        kind = Kind(self.world.kind(obj))
        self.step(
            user,
            f"grants {effect} {privilege} on {kind} {full_name} of {metalake} to role {self.name(role)}",
            first(self._gives(user, obj, privilege), "invalid" if opposite in self.world.grants else OK),
            lambda actor: grants.grant_privileges(
                actor, metalake, self.name(role), kind, full_name, [(privilege, effect)]
            ),
            lambda _: replace(self.world, grants=tuple(dict.fromkeys((*self.world.grants, grant)))),
        )

    def revoke(self, user: int, grant: Grant) -> None:
        metalake, full_name = self.name(self.metalake(grant.obj)), self.full_name(grant.obj)
        kind, pair = Kind(self.world.kind(grant.obj)), (grant.privilege, grant.effect)
        lifts = grant.effect == DENY
        self.step(
            user,
            f"revokes {grant.effect} {grant.privilege} on {kind} {full_name} of {metalake} "
            f"from role {self.name(grant.role)}",
            self.answer(user, "lift_deny", grant.obj) if lifts else self._gives(user, grant.obj, grant.privilege),
            lambda actor: grants.revoke_privileges(actor, metalake, self.name(grant.role), kind, full_name, [pair]),
            lambda _: replace(self.world, grants=tuple(g for g in self.world.grants if g != grant)),
        )

    def _gives(self, user: int, obj: int, privilege: str) -> str:
        if self.may(user).grants(obj, privilege):
            return OK
        # Whoever may grant other privileges on it is told of it, though its load is denied.
        return FORBIDDEN if self.may(user).acts(obj, "manage_grants") else self.told(user, obj, False)

    def create_role(self, user: int, metalake: int, name: str) -> None:
        self.step(
            user,
            f"creates role {name} in {self.name(metalake)}",
            first(self.answer(user, "create_role", metalake), self._free("role", metalake, name)),
            lambda actor: roles.create_role(actor, self.name(metalake), name),
            lambda record: self._born(_pk(record.row), "role", name, metalake, user),
        )

    def drop_role(self, user: int, role: int) -> None:
        metalake = self.metalake(role)
        self.step(
            user,
            f"drops role {self.name(role)} of {self.name(metalake)}",
            self.answer(user, "drop_role", role),
            lambda actor: roles.drop_role(actor, self.name(metalake), self.name(role)),
            lambda _: self._gone(role),
        )

    def assign(self, user: int, role: int, to: Party) -> None:
        metalake = self.metalake(role)
        self.step(
            user,
            f"assigns role {self.name(role)} of {self.name(metalake)} to {to.kind} {self.party_name(to)}",
            self.told(user, metalake, self.may(user).acts(metalake, "manage_grants")),
            lambda actor: roles.assign_roles(
                actor, self.name(metalake), to.kind, self.party_name(to), [self.name(role)]
            ),
            lambda _: replace(self.world, assignments=self.world.assignments | {(role, to)}),
        )

    def unassign(self, user: int, role: int, of: Party) -> None:
        metalake = self.metalake(role)
        lifts = self.lifts(user, [role]) if (role, of) in self.world.assignments else OK
        self.step(
            user,
            f"takes role {self.name(role)} of {self.name(metalake)} from {of.kind} {self.party_name(of)}",
            first(self.told(user, metalake, self.may(user).acts(metalake, "manage_grants")), lifts),
            lambda actor: roles.unassign_roles(
                actor, self.name(metalake), of.kind, self.party_name(of), [self.name(role)]
            ),
            lambda _: replace(self.world, assignments=self.world.assignments - {(role, of)}),
        )

    # People.

    def add_user(self, user: int, metalake: int, added: int, enabled: bool = True) -> None:
        def change(_: Any) -> World:
            back = self.world.without_free_links(metalake, added)
            if enabled:
                return replace(back, members=back.members | {(metalake, added)})
            self.disabled |= {(metalake, added)}
            return back

        name = self.accounts[added].username
        self.step(
            user,
            f"adds user {name} to {self.name(metalake)}{'' if enabled else ', disabled'}",
            first(self.answer(user, "manage_users", metalake), "exists" if added in self.belonging(metalake) else OK),
            lambda actor: people.add_user(actor, self.name(metalake), name, enabled=enabled),
            change,
        )

    def remove_user(self, user: int, metalake: int, removed: int) -> None:
        name, out = self.accounts[removed].username, {(metalake, removed)}
        left = self._handed_over(metalake, Party("user", removed)).without_free_links(metalake, removed)
        left = replace(left, members=left.members - out)

        def change(_: bool) -> World:
            self.disabled -= out
            return left

        owns = self.may(removed).is_party(self.world.objects[metalake].owner)
        valid = self.after(lambda: left, lambda: self.has_owner(metalake)) if owns else OK
        self.step(
            user,
            f"removes user {name} from {self.name(metalake)}",
            first(self.answer(user, "manage_users", metalake), valid),
            lambda actor: people.remove_user(actor, self.name(metalake), name),
            change,
        )

    def add_group(self, user: int, metalake: int, name: str) -> None:
        taken = name in [self.world.groups[group].name for group in self.groups(metalake)]

        def change(person: people.Person) -> World:
            group = Group(_pk(person.row), name, metalake)
            return replace(self.world, groups={**self.world.groups, group.id: group})

        self.step(
            user,
            f"adds group {name} to {self.name(metalake)}",
            first(self.answer(user, "manage_groups", metalake), "exists" if taken else OK),
            lambda actor: people.add_group(actor, self.name(metalake), name),
            change,
        )

    def remove_group(self, user: int, group: int) -> None:
        metalake, party = self.world.groups[group].metalake, Party("group", group)
        left = self._handed_over(metalake, party)
        left = replace(
            left,
            groups={id: other for id, other in left.groups.items() if id != group},
            assignments=frozenset(pair for pair in left.assignments if pair[1] != party),
        )
        self.step(
            user,
            f"removes group {self.party_name(party)} from {self.name(metalake)}",
            first(
                self.answer(user, "manage_groups", metalake),
                "invalid" if self.world.objects[metalake].owner == party else OK,
                self.lifts(user, self._roles_of(party)),
            ),
            lambda actor: people.remove_group(actor, self.name(metalake), self.party_name(party)),
            lambda _: left,
        )

    def set_group_users(self, user: int, group: int, add: Sequence[int] = (), remove: Sequence[int] = ()) -> None:
        here = self.world.groups[group]
        metalake, party = here.metalake, Party("group", group)
        remove = [other for other in remove if other not in add]
        left = replace(here, members=(here.members | set(add)) - set(remove))
        changed = replace(self.world, groups={**self.world.groups, group: left})
        gone = here.members & set(remove)
        owns_metalake = self.world.objects[metalake].owner == party
        by_assigning = self.may(user).acts(metalake, "manage_grants")
        if owns_metalake:
            may = self.may(user).acts(metalake)
        elif self._roles_of(party) or any(obj.owner == party for obj in self.world.objects.values()):
            may = by_assigning
        else:
            may = by_assigning or self.may(user).acts(metalake, "manage_groups")
        valid = self.after(lambda: changed, lambda: self.has_owner(metalake)) if gone and owns_metalake else OK
        joining = {role for other in set(add) - here.members for role in self.world.roles_of(Party("user", other))}
        owned = [obj.id for obj in self.world.objects.values() if obj.owner == party]
        joins = OK if self.may(user).makes_owner(joining, owned) else FORBIDDEN
        names = [[self.accounts[other].username for other in users] for users in (add, remove)]
        self.step(
            user,
            f"puts {names[0]} into group {here.name} of {self.name(metalake)} and takes {names[1]} out",
            first(
                self.told(user, metalake, may), self.lifts(user, self._roles_of(party)) if gone else OK, joins, valid
            ),
            lambda actor: people.set_group_users(actor, self.name(metalake), here.name, *names),
            lambda _: changed,
        )

    def _owners(self, obj: int) -> set[Party]:
        return {self.world.objects[scope].owner for scope in self.world.lineage(obj)}

    def _roles_of(self, party: Party) -> list[int]:
        return [role for role, holder in self.world.assignments if holder == party]


def _pk(row: Any) -> int:
    return row.pk
