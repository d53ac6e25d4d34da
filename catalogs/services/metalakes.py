"""Metalakes: service administrators create them, members see them, the owner alters them."""

from __future__ import annotations

from functools import partial

from django.db.models import QuerySet

from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.locks import Lock
from authz.models import Member, User
from authz.transactions import write
from catalogs.lookup import find
from catalogs.secrets import require_values
from catalogs.services import containers
from catalogs.services.alterations import Alteration, event, named, require_unreserved, row_of, save
from catalogs.services.writes import Target, Write, write_to
from formats.iceberg.forbidden_properties import check_limits
from metalake.errors import AlreadyExists, Forbidden
from metalake.events import event_of, record, stands
from metalake.hierarchy import check_strict
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Metalake


def list_metalakes(actor: Actor) -> QuerySet[Metalake]:
    """The metalakes that the actor is a member of."""
    if policy.authorization_is_off():
        return Metalake.objects.order_by("name")
    return policy.metalakes_of(actor).order_by("name")


def create_metalake(actor: Actor, name: str, comment: str | None, properties: dict[str, str]) -> Metalake:
    """Create a metalake; the actor becomes its owner and first member."""
    require_maker(actor)
    check_strict(name, Kind.METALAKE)
    check_limits(properties)
    require_values(properties, kind=Kind.METALAKE)
    require_unreserved(properties, Kind.METALAKE)

    made = partial(_made, name=name, comment=comment, properties=properties)
    return write(actor, made, holds=None, kind=Kind.METALAKE)  # no lock, since it has no container


def _made(actor: Actor, name: str, comment: str | None, properties: dict[str, str]) -> Metalake:
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


def require_maker(actor: Actor) -> None:
    """Raise Forbidden for an actor who may not create metalakes."""
    if not (actor.service_admin or policy.authorization_is_off()):
        raise Forbidden(f"{actor.name} is not a service administrator; only they may create metalakes.")
    if User.objects.filter(pk=actor.id, guest_of__isnull=False).exists():
        raise Forbidden(
            f"The password of {actor.name} was set by an invitation; that of a service administrator must be set by an "
            f"operator (manage.py set_password {actor.name})."
        )


def load_metalake(actor: Actor, name: str) -> Metalake:
    located = find(actor, Address(metalake=name))
    policy.require(actor, operations.LOAD_METALAKE, located)
    return row_of(Metalake, located)


def alter_metalake(actor: Actor, name: str, alteration: Alteration) -> Metalake:
    lock = Lock.CHANGES if alteration.new_name is None else Lock.MOVES
    target = Target(Address(metalake=name), operations.ALTER_METALAKE, lock, while_disabled=True)
    return write_to(actor, target, _alter, alteration)


def _alter(write: Write, alteration: Alteration) -> Metalake:
    row = row_of(Metalake, write.located)
    fields = alteration.apply_to(row)
    if "name" in fields:
        check_strict(row.name, Kind.METALAKE)
        if Metalake.objects.filter(name=row.name).exclude(pk=row.pk).exists():
            raise AlreadyExists(f"Metalake {row.name} already exists.", kind=Kind.METALAKE)
    if "properties" in fields:
        require_unreserved(row.properties, Kind.METALAKE)
    if fields:
        save(row, write.actor, fields)
        record(event(write.actor, "metalake.altered", write.located, named(row, fields), changed=sorted(fields)))
    return row


def set_metalake_enabled(actor: Actor, name: str, enabled: bool) -> None:
    """Enable or disable a metalake; changes of rights, which depend on this, wait for the lock."""
    containers.set_enabled(actor, Address(metalake=name), enabled, lock=Lock.MOVES)


def drop_metalake(actor: Actor, name: str, force: bool) -> bool:
    """As `containers.drop`."""
    return containers.drop(actor, Address(metalake=name), force=force)
