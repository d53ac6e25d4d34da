"""Large stores written in bulk, past the services, for what is measured afterwards through them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import Group as GuardianGroup
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction

from authz import snapshot
from authz.callers import actor_of
from authz.models import Grant, Member, Role, User
from authz.policy import Actor
from catalogs.lookup import Ident
from catalogs.services import catalogs, metalakes, schemas
from metalake.models import Securable, Slot, new_id
from metalake.privileges import Kind, Privilege

METALAKE, CATALOG = "bench", "lake"


def first_catalog() -> Actor:
    """An owner with a metalake and a nested catalog."""
    owner = User.objects.create_superuser("admin", "bench-password-1")
    metalakes.create_metalake(actor_of(owner), METALAKE, None, {})
    catalogs.create_catalog(actor_of(owner), METALAKE, CATALOG, "relational", "lakehouse-iceberg", None, {})
    return actor_of(owner)


def member(name: str) -> User:
    """Another user of the metalake, who holds nothing yet."""
    user = User.objects.create_user(name, "bench-password-1")
    Member.objects.create(metalake_id=Securable.objects.get(name=METALAKE).pk, user=user, creator="bench")
    return user


def role(name: str, *holders: User) -> Role:
    metalake = Securable.objects.get(name=METALAKE)
    made = Role(kind=Kind.ROLE, name=name, owner_user=User.objects.get(username="admin"), creator="bench")
    made.group = GuardianGroup.objects.create(name=f"{metalake.pk}:{name}")
    made.place_under(metalake)
    made.save(force_insert=True)
    for holder in holders:
        holder.groups.add(made.group)
    return made


def grant(to: Role, privilege: Privilege, ids: Iterable[int], effect: str = "allow") -> None:
    """The same privilege on many objects; the snapshot is forgotten, so it is read anew."""
    permission = Permission.objects.get(
        content_type=ContentType.objects.get_for_model(Securable), codename=privilege.value
    )
    with transaction.atomic():
        for some in batches(ids, 5000):
            Grant.objects.bulk_create(
                [
                    Grant(group=to.group, permission=permission, content_object_id=pk, effect=effect, grantor="bench")
                    for pk in some
                ],
                batch_size=5000,
            )
    snapshot.forget()


def children(parent: Securable, names: Iterable[str], kind: Kind, owner: User) -> list[int]:
    """Schemas or tables below one parent, in bulk; their ids."""
    made: list[int] = []
    catalog_id = parent.lineage_ids[1]
    path = parent.schema.physical_name + "\x01" if parent.kind == Kind.SCHEMA else ""
    slot = Slot.SCHEMA if kind == Kind.SCHEMA else Slot.TABULAR
    with transaction.atomic(), connection.cursor() as cursor:
        for some in batches(names, 5000):
            rows = [
                Securable(
                    id=new_id(), kind=kind, slot=slot, name=name, parent=parent, owner_user=owner, creator="bench"
                )
                for name in some
            ]
            for row in rows:
                row.lineage = f"{parent.lineage}/{row.id}"
            Securable.objects.bulk_create(rows)
            if kind == Kind.SCHEMA:
                cursor.executemany(
                    "INSERT INTO catalogs_schema (securable_ptr_id, catalog_id, physical_name) VALUES (%s, %s, %s)",
                    [(row.id, catalog_id, path + row.name) for row in rows],
                )
            else:
                cursor.executemany(
                    "INSERT INTO catalogs_table (securable_ptr_id, metadata_location, table_uuid) VALUES (%s, %s, %s)",
                    [(row.id, "", _uuid()) for row in rows],
                )
            made += [row.id for row in rows]
    return made


def _uuid() -> Any:
    return uuid4() if connection.vendor == "postgresql" else uuid4().hex


def schema(actor: Actor, name: str) -> Securable:
    row = schemas.create_schema(actor, Ident(METALAKE, CATALOG, name), None, {}).row
    return Securable.objects.get(pk=row.pk)


def analyze() -> None:
    """Fresh statistics, as the databases' own housekeeping would have."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield some
