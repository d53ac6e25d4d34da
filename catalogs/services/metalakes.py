"""Metalakes: made by service administrators, seen by their members, changed by their owner."""

from __future__ import annotations

from django.db.models import QuerySet

from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.locks import Lock
from authz.models import Member
from authz.writing import write
from catalogs.lookup import find
from catalogs.models import Catalog
from catalogs.secrets import require_values
from catalogs.services.changes import Alteration, event, named, require_settled, require_unreserved, row_of, save
from catalogs.services.holding import Held, write_to
from catalogs.services.removal import remove
from formats.iceberg.guard import check_limits
from metalake.errors import AlreadyExists, Forbidden, InUse, NotEmpty, NotFound
from metalake.events import event_of, gone, record, stands
from metalake.hierarchy import check_strict
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.models import Metalake


def list_metalakes(actor: Actor) -> QuerySet[Metalake]:
    """Those the actor is a member of."""
    if policy.everybody_may():
        return Metalake.objects.order_by("name")
    return Metalake.objects.filter(members__user_id=actor.id, members__enabled=True).order_by("name")


def create_metalake(actor: Actor, name: str, comment: str | None, properties: dict[str, str]) -> Metalake:
    """Its maker becomes its owner and first member."""
    require_maker(actor)
    check_strict(name, Kind.METALAKE)
    check_limits(properties)
    require_values(properties, kind=Kind.METALAKE)
    require_unreserved(properties, Kind.METALAKE)

    def act(actor: Actor) -> Metalake:
        if Metalake.objects.filter(name=name).exists():
            raise AlreadyExists(f"Metalake {name} already exists.", kind=Kind.METALAKE)
        owner_id = account_of(actor)
        row = Metalake.made(
            Kind.METALAKE,
            name,
            None,
            comment=comment,
            properties=properties,
            owner_user_id=owner_id,
            creator=actor.name,
        )
        row.save(force_insert=True)
        Member.objects.create(metalake=row, user_id=owner_id, creator=actor.name)
        member = snapshot.member_change(row.id, owner_id, True)
        record(event_of(actor, "metalake.created", Kind.METALAKE, row.id, [name], row.id, [stands(row), member]))
        snapshot.publish([member])
        return row

    return write(actor, act, holds=None, kind=Kind.METALAKE)  # in nothing that could be renamed


def require_maker(actor: Actor) -> None:
    """Raise Forbidden for whoever may not create metalakes."""
    if not (actor.service_admin or policy.everybody_may()):
        raise Forbidden(f"{actor.name} is no service administrator, and only they create metalakes.")


def load_metalake(actor: Actor, name: str) -> Metalake:
    found = find(actor, Address(metalake=name))
    policy.require(actor, operations.LOAD_METALAKE, found)
    return row_of(Metalake, found)


def alter_metalake(actor: Actor, name: str, alteration: Alteration) -> Metalake:
    renames = alteration.new_name is not None

    def look(actor: Actor) -> Held:
        found = find(actor, Address(metalake=name))
        policy.require(actor, operations.ALTER_METALAKE, found)
        return [(found, Lock.MOVES if renames else Lock.CHANGES)]

    def act(actor: Actor, found: Located) -> Metalake:
        row = row_of(Metalake, found)
        fields = alteration.apply_to(row)
        if "name" in fields:
            check_strict(row.name, Kind.METALAKE)
            if Metalake.objects.filter(name=row.name).exclude(pk=row.pk).exists():
                raise AlreadyExists(f"Metalake {row.name} already exists.", kind=Kind.METALAKE)
        if "properties" in fields:
            require_unreserved(row.properties, Kind.METALAKE)
        if fields:
            save(row, actor, fields)
            record(event(actor, "metalake.altered", found, named(row, fields), changed=sorted(fields)))
        return row

    return write_to(actor, look, act, kind=Kind.METALAKE)


def set_metalake_enabled(actor: Actor, name: str, enabled: bool) -> None:
    def look(actor: Actor) -> Held:
        found = find(actor, Address(metalake=name))
        policy.require(actor, operations.ENABLE_METALAKE, found)
        return [(found, Lock.MOVES)]  # changes of rights, which hang on it, ask whether it is enabled

    def act(actor: Actor, found: Located) -> None:
        if Metalake.objects.filter(pk=found.id).exclude(enabled=enabled).update(enabled=enabled):
            record(event(actor, "metalake.enabled" if enabled else "metalake.disabled", found))

    write_to(actor, look, act, kind=Kind.METALAKE)


def drop_metalake(actor: Actor, name: str, force: bool) -> bool:
    """False where there is none for this caller. Without force it must be disabled and empty of catalogs.

    Raises InUse while a write to an outside system is under way in one of them, by force or not.
    """

    def look(actor: Actor) -> Held:
        try:
            found = find(actor, Address(metalake=name))
            policy.require(actor, operations.DROP_METALAKE, found)
        except NotFound:
            return []
        return [(found, Lock.MOVES)]

    def act(actor: Actor, found: Located | None = None) -> bool:
        if found is None:
            return False
        row = row_of(Metalake, found)
        require_settled(found)
        if not force:
            if row.enabled:
                raise InUse(f"Metalake {name} is in use; disable it first, or drop it by force.", kind=Kind.METALAKE)
            if Catalog.objects.filter(parent_id=row.id).exists():
                raise NotEmpty(f"Metalake {name} is not empty.", kind=Kind.METALAKE)
        remove(found)
        record(event(actor, "metalake.dropped", found, [gone(found.id)], force=force))
        return True

    return write_to(actor, look, act, kind=Kind.METALAKE)
