"""Fills large stores in bulk, without the services, for programs that measure the services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any
from uuid import uuid4

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group as GuardianGroup
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.utils import timezone

from authz import snapshot
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import Group, Member, Role, User
from catalogs.models import Catalog
from catalogs.services import catalogs, metalakes, schemas
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Securable, new_id
from metalake.privileges import Privilege

METALAKE, CATALOG = "bench", "lake"
POINTERS = {Kind.TABLE: ("catalogs_table", "table_uuid"), Kind.VIEW: ("views_mgmt_view", "uuid")}  # with their columns

Rule = tuple[Role, Privilege, int, str]
"""A grant: role, privilege, object id and effect."""


def first_catalog() -> Actor:
    """An owner with a metalake and a nested catalog."""
    owner = User.objects.create_superuser("admin", "bench-password-1")
    metalakes.create_metalake(actor_of(owner), METALAKE, None, {})
    catalogs.create_catalog(actor_of(owner), METALAKE, CATALOG, "relational", "lakehouse-iceberg", None, {})
    return actor_of(owner)


def member(name: str) -> User:
    """Another user of the metalake, who holds nothing yet."""
    return members([name])[0]


def members(names: Iterable[str]) -> list[User]:
    """Users of the metalake who hold nothing yet and sign in with tokens alone."""
    metalake = _metalake()
    users = User.objects.bulk_create([User(username=name, password=make_password(None)) for name in names])
    Member.objects.bulk_create([Member(metalake_id=metalake.pk, user=user, creator="bench") for user in users])
    return users


def group(name: str, users: Iterable[User], roles: Iterable[Role]) -> Group:
    made = Group.objects.create(metalake_id=_metalake().pk, name=name, creator="bench")
    made.users.set(users)
    made.roles.set(roles)
    return made


def role(name: str, *holders: User) -> Role:
    made = roles([name])[0]
    hold((holder, made) for holder in holders)
    return made


def roles(names: Iterable[str]) -> list[Role]:
    metalake, owner = _metalake(), User.objects.get(username="admin")
    made: list[Role] = []
    with transaction.atomic(), connection.cursor() as cursor:
        for some in batches(names, 5000):
            rows = _securables(metalake, some, Kind.ROLE, owner)
            groups = [GuardianGroup(name=f"{metalake.pk}:{name}") for name in some]
            GuardianGroup.objects.bulk_create(groups)
            pairs = list(zip(rows, groups, strict=True))
            cursor.executemany(
                "INSERT INTO authz_role (securable_ptr_id, group_id) VALUES (%s, %s)",
                [(row.id, group.pk) for row, group in pairs],
            )
            made += [Role(id=row.id, securable_ptr=row, name=row.name, group=group) for row, group in pairs]
    return made


def hold(pairs: Iterable[tuple[User, Role]]) -> None:
    """Users hold roles directly."""
    through = User.groups.through
    for some in batches(pairs, 5000):
        through.objects.bulk_create([through(user_id=user.pk, group_id=role.group_id) for user, role in some])
    snapshot.forget()


def grant(to: Role, privilege: Privilege, ids: Iterable[int], effect: str = "allow") -> None:
    """The same privilege on many objects."""
    grant_all((to, privilege, pk, effect) for pk in ids)


def reader_of_outside_tables() -> User:
    """A member who may list and load the tables of all catalogs but the first one."""
    analyst = member("analyst")
    readers = role("readers", analyst)
    for catalog in Catalog.objects.exclude(name="lake"):
        for privilege in (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE):
            grant(readers, privilege, [catalog.pk])
    return analyst


def grant_all(rules: Iterable[Rule]) -> None:
    """Write grants in bulk, and drop the snapshot so that it is read again."""
    securables = ContentType.objects.get_for_model(Securable)
    ids = dict(Permission.objects.filter(content_type=securables).values_list("codename", "pk"))
    now = timezone.now()
    with transaction.atomic(), connection.cursor() as cursor:
        for some in batches(rules, 20_000):
            cursor.executemany(
                "INSERT INTO authz_grant (group_id, permission_id, content_object_id, effect, grantor, granted_at) "
                "VALUES (%s, %s, %s, %s, 'bench', %s)",
                [(to.group_id, ids[privilege.value], pk, effect, now) for to, privilege, pk, effect in some],
            )
    snapshot.forget()


def make_catalogs(names: Iterable[str]) -> list[int]:
    """More catalogs of the metalake, in bulk; their ids."""
    with transaction.atomic(), connection.cursor() as cursor:
        rows = _securables(_metalake(), names, Kind.CATALOG, User.objects.get(username="admin"))
        cursor.executemany(
            "INSERT INTO catalogs_catalog (securable_ptr_id, type, provider, enabled, nested, folds_case) "
            "VALUES (%s, 'relational', 'lakehouse-iceberg', %s, %s, %s)",
            [(row.id, True, True, False) for row in rows],
        )
    return [row.id for row in rows]


def children(parent: Securable, names: Iterable[str], kind: Kind, owner: User) -> list[int]:
    """Schemas, tables or views below one parent, in bulk; their ids."""
    made: list[int] = []
    catalog_id = parent.lineage_ids[1]
    path = parent.schema.physical_name + "\x01" if parent.kind == Kind.SCHEMA else ""
    with transaction.atomic(), connection.cursor() as cursor:
        for some in batches(names, 5000):
            rows = _securables(parent, some, kind, owner)
            if kind == Kind.SCHEMA:
                cursor.executemany(
                    "INSERT INTO catalogs_schema (securable_ptr_id, catalog_id, physical_name) VALUES (%s, %s, %s)",
                    [(row.id, catalog_id, path + row.name) for row in rows],
                )
            else:
                table, uuid = POINTERS[kind]
                cursor.executemany(
                    f"INSERT INTO {table} (securable_ptr_id, metadata_location, {uuid}) VALUES (%s, %s, %s)",
                    [(row.id, "", _uuid()) for row in rows],
                )
            made += [row.id for row in rows]
    return made


def fill(parent: Securable, count: int) -> None:
    """Add `count` tables, from table1000 on, to each schema of a catalog: two statements, a million rows a minute."""
    first = new_id()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %s), "
            "s AS (SELECT *, %s + %s * (ROW_NUMBER() OVER (ORDER BY id) - 1) AS base FROM metalake_securable "
            "WHERE parent_id = %s AND kind = 'schema') "
            "INSERT INTO metalake_securable (id, kind, slot, name, parent_id, lineage, owner_user_id, properties, "
            "version, spec_version, creator, create_time) "
            "SELECT s.base + n.i, 'table', 'tabular', 'table' || (1000 + n.i), s.id, "
            "s.lineage || '/' || (s.base + n.i), s.owner_user_id, '{}', 1, '1.0', 'bench', s.create_time "
            "FROM s CROSS JOIN n",
            [count - 1, first, count, parent.pk],
        )
        fresh_uuid = "gen_random_uuid()" if connection.vendor == "postgresql" else "lower(hex(randomblob(16)))"
        cursor.execute(
            "INSERT INTO catalogs_table (securable_ptr_id, metadata_location, table_uuid) "
            f"SELECT id, '', {fresh_uuid} FROM metalake_securable WHERE id >= %s AND kind = 'table'",
            [first],
        )


def _securables(parent: Securable, names: Iterable[str], kind: Kind, owner: User) -> list[Securable]:
    """The rows that all kinds share."""
    return Securable.objects.bulk_create(
        Securable.made(kind, name, parent, owner_user_id=owner.pk, creator="bench") for name in names
    )


def _metalake() -> Securable:
    return Securable.objects.get(name=METALAKE, kind=Kind.METALAKE)


def _uuid() -> Any:
    return uuid4() if connection.vendor == "postgresql" else uuid4().hex


def schema(actor: Actor, name: str) -> Securable:
    row = schemas.create_schema(actor, Address(metalake=METALAKE, catalog=CATALOG, schema=name), None, {}).row
    return Securable.objects.get(pk=row.pk)


def analyze() -> None:
    """Update the database's statistics, as its own maintenance would."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield some
