"""What was found by a name is written to only while it has that name: each write after a wait for another (PostgreSQL).

The object is renamed, moved, dropped or made anew, or the right to it is lost, while the write waits for its row.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from django.db import connection

from authz import operations
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.locks import Lock
from authz.models import Grant, Member, User
from authz.services import grants, owners, people, roles
from authz.services.grant_entries import Ask
from catalogs.models import Catalog, Schema, Table
from catalogs.services import catalogs, commits, metalakes, schemas, tables, writes
from catalogs.services.alterations import Alteration
from catalogs.table_stores import TableDraft
from metalake.errors import Forbidden, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Metalake, Securable
from tests.catalogs.callers import Caller
from tests.catalogs.meeting import met
from tests.demo import give

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="not offered: a write begins when the other has ended"),
]

COLUMNS = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
SET = [{"action": "set-properties", "updates": {"by": "mia"}}]
Write = Callable[[Actor], object]


def at(schema: str | None = None, leaf: str | None = None) -> Address:
    return Address(metalake="demo", catalog="lake", schema=schema, leaf=leaf)


def make_table(actor: Actor, schema: str, name: str) -> None:
    tables.create_table(actor, at(schema, name), TableDraft(COLUMNS, None, None, {}))


@pytest.fixture
def owner(mia: Caller) -> Actor:
    """Of the metalake and all in it but X: that schema, with a table `t`, is Mia's; Y is none of her business."""
    made = actor_of(User.objects.get(username="admin"))
    for name in ("X", "Y"):
        schemas.create_schema(made, at(name), None, {})
    give("mia", Kind.CATALOG, "lake", "use_catalog", "use_schema")
    make_table(made, "X", "t")
    owners.set_owner(made, "demo", Kind.SCHEMA, "lake.X", "mia", "user")
    return made


@pytest.fixture
def mia_(owner: Actor) -> Actor:
    return actor_of(User.objects.get(username="mia"))


def move_t(owner: Actor) -> None:
    tables.rename_table(owner, at("X", "t"), at("Y", "t"))


def make_t_anew(owner: Actor) -> None:
    """Another table has the name that `t` had."""
    tables.rename_table(owner, at("X", "t"), at("Y", "t"))
    make_table(owner, "X", "t")


TO_A_TABLE: dict[str, Write] = {
    "drop": lambda actor: tables.drop_table(actor, at("X", "t")),
    "purge": lambda actor: tables.drop_table(actor, at("X", "t"), purge=True),
    "rename": lambda actor: tables.rename_table(actor, at("X", "t"), at("X", "u")),
    "commit": lambda actor: commits.commit_table(actor, at("X", "t"), [], SET),
}


@pytest.mark.parametrize("write", TO_A_TABLE.values(), ids=TO_A_TABLE)
def test_a_table_that_was_moved_away_is_missing(owner: Actor, mia_: Actor, write: Write) -> None:
    before = Table.objects.values("pk", "metadata_location").get()
    answer = met(lambda: move_t(owner), lambda: write(mia_))
    assert isinstance(answer, NotFound), answer
    row = Securable.objects.get(kind=Kind.TABLE)
    assert (row.name, row.parent and row.parent.name) == ("t", "Y")
    assert Table.objects.values("pk", "metadata_location").get() == before


def test_of_a_table_made_anew_the_new_one_is_dropped(owner: Actor, mia_: Actor) -> None:
    old = Table.objects.get()
    assert met(lambda: make_t_anew(owner), lambda: TO_A_TABLE["purge"](mia_)) is None
    assert list(Table.objects.values_list("pk", "metadata_location")) == [(old.pk, old.metadata_location)]


def test_of_a_table_made_anew_the_new_one_is_locked(owner: Actor, mia_: Actor) -> None:
    """The row that the write waited for is the old one's: to lock the new one, all begins again."""

    def is_lockable(write: writes.Write) -> bool:
        with closing(connection.copy()) as another, another.cursor() as cursor:
            cursor.execute("SELECT FROM metalake_securable WHERE id = %s FOR KEY SHARE SKIP LOCKED", [write.located.id])
            return cursor.fetchone() is not None

    target = writes.Target(at("X", "t"), operations.DROP_TABLE, Lock.MOVES)
    assert met(lambda: make_t_anew(owner), lambda: writes.write_to(mia_, target, is_lockable)) is False


# Catalogs and metalakes


@pytest.fixture
def lake_of_mia(owner: Actor) -> Actor:
    owners.set_owner(owner, "demo", Kind.CATALOG, "lake", "mia", "user")
    return actor_of(User.objects.get(username="mia"))


def rename_lake(owner: Actor) -> None:
    catalogs.alter_catalog(owner, "demo", "lake", Alteration(new_name="sea"))


TO_A_CATALOG: dict[str, Write] = {
    "drop": lambda actor: catalogs.drop_catalog(actor, "demo", "lake", True),
    "disable": lambda actor: catalogs.set_catalog_enabled(actor, "demo", "lake", False),
    "alter": lambda actor: catalogs.alter_catalog(actor, "demo", "lake", Alteration(comment="c", sets_comment=True)),
    "create a schema": lambda actor: schemas.create_schema(actor, at("Z"), None, {}),
    "grant": lambda actor: grants.grant_privileges(
        actor, "demo", "r", Kind.CATALOG, "lake", [("use_catalog", "allow")]
    ),
    "own": lambda actor: owners.set_owner(actor, "demo", Kind.CATALOG, "lake", "admin", "user"),
}


@pytest.mark.parametrize("write", TO_A_CATALOG.values(), ids=TO_A_CATALOG)
def test_a_catalog_that_was_renamed_is_missing(owner: Actor, lake_of_mia: Actor, write: Write) -> None:
    roles.create_role(owner, "demo", "r")
    answer = met(lambda: rename_lake(owner), lambda: write(lake_of_mia))
    assert isinstance(answer, NotFound) or answer is False, answer
    row = Catalog.objects.get(name="sea")
    assert (row.enabled, row.comment, row.owner_user_id) == (True, None, lake_of_mia.id)
    assert not Schema.objects.filter(name="Z").exists()
    assert not Grant.objects.filter(group__role__name="r").exists()


TO_A_METALAKE: dict[str, Write] = {
    "drop": lambda actor: metalakes.drop_metalake(actor, "demo", True),
    "disable": lambda actor: metalakes.set_metalake_enabled(actor, "demo", False),
    "alter": lambda actor: metalakes.alter_metalake(actor, "demo", Alteration(comment="c", sets_comment=True)),
    "create a catalog": lambda actor: catalogs.create_catalog(
        actor, "demo", "two", "relational", "lakehouse-iceberg", None, {}
    ),
    "add a user": lambda actor: people.add_user(actor, "demo", "new"),
    "create a role": lambda actor: roles.create_role(actor, "demo", "new"),
}


@pytest.mark.parametrize("write", TO_A_METALAKE.values(), ids=TO_A_METALAKE)
def test_a_metalake_that_was_renamed_is_missing(owner: Actor, write: Write) -> None:
    answer = met(lambda: metalakes.alter_metalake(owner, "demo", Alteration(new_name="dome")), lambda: write(owner))
    assert isinstance(answer, NotFound) or answer is False, answer
    row = Metalake.objects.get(name="dome")
    assert (row.enabled, row.comment, row.children.filter(name__in=("two", "new")).count()) == (True, None, 0)
    assert Member.objects.filter(metalake=row).count() == 2


# Rights that were lost while it waited


@pytest.mark.parametrize("write", TO_A_TABLE.values(), ids=TO_A_TABLE)
def test_who_lost_the_schema_meanwhile_is_refused(owner: Actor, mia_: Actor, write: Write) -> None:
    def lose() -> None:
        commits.commit_table(owner, at("X", "t"), [], SET)  # what is waited for
        owners.set_owner(owner, "demo", Kind.SCHEMA, "lake.X", "admin", "user")

    answer = met(lose, lambda: write(mia_))
    assert isinstance(answer, NotFound | Forbidden), answer
    assert Securable.objects.filter(kind=Kind.TABLE, name="t").exists()


# Grants and owners of a table

TO_RIGHTS: dict[str, Write] = {
    "grant": lambda actor: grants.grant_privileges(
        actor, "demo", "r", Kind.TABLE, "lake.X.t", [("select_table", "allow")]
    ),
    "deny": lambda actor: grants.grant_privileges(
        actor, "demo", "r", Kind.TABLE, "lake.X.t", [("select_table", "deny")]
    ),
    "override": lambda actor: grants.override_role(
        actor, "demo", "r", [Ask(Kind.TABLE, "lake.X.t", [("select_table", "allow")])]
    ),
    "own": lambda actor: owners.set_owner(actor, "demo", Kind.TABLE, "lake.X.t", "mia", "user"),
}


@pytest.mark.parametrize("write", TO_RIGHTS.values(), ids=TO_RIGHTS)
def test_rights_are_not_given_on_a_table_that_was_moved_away(owner: Actor, mia_: Actor, write: Write) -> None:
    roles.create_role(owner, "demo", "r")
    roles.assign_roles(owner, "demo", "user", "mia", ["r"])
    grants.grant_privileges(owner, "demo", "r", Kind.METALAKE, "demo", [("manage_grants", "allow")])
    move = met(lambda: move_t(owner), lambda: write(mia_))
    assert isinstance(move, NotFound), move
    table = Securable.objects.get(kind=Kind.TABLE)
    assert table.owner_user_id == owner.id
    assert not Grant.objects.filter(content_object=table).exists()
