"""One outside system is one catalog's: a second way to it would be a way around what the first one denies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from authz.services import owners, people
from catalogs.models import Catalog
from catalogs.services import catalogs, metalakes
from catalogs.services.alterations import Alteration
from metalake.errors import Conflict, Forbidden, Invalid, ProviderUnavailable
from metalake.kinds import Kind
from providers.glue.client import GlueClient
from providers.glue.provider import GlueProvider
from providers.hive.provider import HiveProvider
from tests.catalogs.callers import Caller
from tests.demo import give
from tests.glue import Glue
from tests.providers.world import World

pytestmark = pytest.mark.django_db(transaction=True)

KEYS = {"aws-access-key-id": "AKIAIOSFODNN7EXAMPLE", "aws-secret-access-key": "sesame"}
ROLE = "arn:aws:iam::210987654321:role/reader"


@pytest.fixture
def owner(actor: Actor) -> Actor:
    """Of `demo` and of `deep`, which is in a world of its own."""
    return actor


@pytest.fixture
def mia_there(owner: Actor, mia: Caller) -> Actor:
    """A member of `demo` and the owner of `other`, who may create catalogs in both."""
    account = User.objects.get(username="mia")
    give("mia", Kind.METALAKE, "demo", "create_catalog")
    metalakes.create_metalake(owner, "other", None, {})
    people.add_user(owner, "other", "mia")
    owners.set_owner(owner, "other", Kind.METALAKE, "other", "mia", "user")
    return actor_of(account)


def create(actor: Actor, metalake: str, name: str, provider: str, **properties: str) -> Catalog:
    named = {key.replace("_", "-"): value for key, value in properties.items()}
    return catalogs.create_catalog(actor, metalake, name, "relational", provider, None, named)


def hive(actor: Actor, metalake: str, name: str, uris: str, **more: str) -> Catalog:
    return create(actor, metalake, name, "hive", **{"metastore.uris": uris}, **more)


def alter(actor: Actor, metalake: str, name: str, **properties: str) -> Catalog:
    named = tuple((key.replace("_", "-"), value) for key, value in properties.items())
    return catalogs.alter_catalog(actor, metalake, name, Alteration(properties=named))


# The attack, on the wire


def test_the_same_system_is_not_taken_by_another_metalake(
    mia_there: Actor, mia: Caller, world: World, admin: Caller
) -> None:
    body = {"name": "mine", "type": "relational", "provider": "memory", "properties": {"world": str(world.path)}}
    refusals = [mia.post(f"metalakes/{metalake}/catalogs", body) for metalake in ("demo", "other")]
    for refused in refusals:
        assert (refused.status, refused.body["type"]) == (403, "ForbiddenException")
        assert "METALAKE_SHARED_SYSTEMS" in refused.message
        assert not any(name in refused.message for name in ("deep", "admin", "demo", str(world.path)))
    assert len({refused.message for refused in refusals}) == 1
    assert not Catalog.objects.filter(name="mine").exists()
    # Its owner may, in the same metalake, and not in another.
    assert admin.post("metalakes/demo/catalogs", body).status == 200


def test_a_catalog_is_not_altered_to_lead_there(mia_there: Actor, world: World) -> None:
    create(mia_there, "other", "mine", "memory", world=f"{world.path}-mine")
    with pytest.raises(Forbidden):
        alter(mia_there, "other", "mine", world=str(world.path))
    assert alter(mia_there, "other", "mine", world=f"{world.path}-elsewhere", team="x").systems is not None
    assert Catalog.objects.get(name="mine").systems == [f"memory://{world.path}-elsewhere"]


def test_the_operator_may_let_metalakes_share_a_system(mia_there: Actor, world: World, settings: Any) -> None:
    settings.METALAKE_SHARED_SYSTEMS = (f"memory://{world.path}",)
    create(mia_there, "other", "mine", "memory", world=str(world.path))
    with pytest.raises(Forbidden):  # in one metalake it stays its owner's
        create(mia_there, "demo", "mine", "memory", world=str(world.path))


def test_a_catalog_that_is_gone_holds_no_system(owner: Actor, mia_there: Actor, world: World) -> None:
    catalogs.drop_catalog(owner, "demo", "deep", force=True)
    create(mia_there, "other", "mine", "memory", world=str(world.path))


def test_a_deny_on_a_catalog_is_not_shed_by_registering_its_system_anew(mia_there: Actor, world: World) -> None:
    mine = {"world": f"{world.path}-mine"}
    create(mia_there, "demo", "mine", "memory", **mine)
    give("mia", Kind.CATALOG, "mine", "deny select_table")
    with pytest.raises(Forbidden, match="Dropping catalog mine would shed a DENY that mia may not lift"):
        catalogs.drop_catalog(mia_there, "demo", "mine", force=True)
    with pytest.raises(Forbidden, match="the system of catalog mine once more would shed a DENY"):
        create(mia_there, "demo", "twice", "memory", **mine)
    with pytest.raises(Forbidden, match="Leading catalog mine elsewhere would shed a DENY"):
        alter(mia_there, "demo", "mine", world=f"{world.path}-elsewhere")
    give("mia", Kind.METALAKE, "demo", "manage_grants")
    assert create(mia_there, "demo", "twice", "memory", **mine)
    assert catalogs.drop_catalog(mia_there, "demo", "mine", force=True)


# A store of today


@pytest.mark.store
def test_pairs_of_before_stay_and_rows_of_before_are_looked_up(owner: Actor, mia_there: Actor, world: World) -> None:
    create(mia_there, "other", "mine", "memory", world=f"{world.path}-mine")
    Catalog.objects.filter(name="mine").update(properties={"world": str(world.path)})
    Catalog.objects.update(systems=None)
    assert alter(mia_there, "other", "mine", team="sales").properties["team"] == "sales"
    assert Catalog.objects.get(name="mine").systems == [f"memory://{world.path}"]
    Catalog.objects.update(systems=None)
    with pytest.raises(Forbidden):
        create(mia_there, "other", "more", "memory", world=str(world.path))
    assert Catalog.objects.get(name="deep").systems == [f"memory://{world.path}"]


# What tells systems apart


@pytest.mark.parametrize("uris", ["thrift://localhost:19083", "thrift://127.0.0.2:19083", "thrift://[::1]:19083"])
def test_a_metastore_is_one_by_whatever_address(owner: Actor, mia_there: Actor, uris: str) -> None:
    hive(owner, "demo", "metastore", "thrift://127.0.0.1:19083")
    for others in (uris, f"thrift://127.0.0.1:19084,{uris}"):
        with pytest.raises(Forbidden):
            hive(mia_there, "other", "mine", others)
    hive(mia_there, "other", "mine", "thrift://127.0.0.1:19084")
    with pytest.raises(Forbidden):
        alter(mia_there, "other", "mine", **{"metastore.uris": uris})


def test_a_name_that_the_operator_gives_stands_for_its_addresses_and_for_no_other(
    owner: Actor, mia_there: Actor, settings: Any
) -> None:
    hive(owner, "demo", "shared", "thrift://127.0.0.1:19083")
    hive(owner, "demo", "kept", "thrift://127.0.0.1:19085")
    settings.METALAKE_SHARED_SYSTEMS = ("thrift://localhost:19083",)
    with pytest.raises(Forbidden):
        hive(mia_there, "other", "both", "thrift://127.0.0.1:19083,thrift://127.0.0.1:19085")
    hive(mia_there, "other", "mine", "thrift://127.0.0.1:19083")


def glue(**properties: str) -> GlueProvider:
    return GlueProvider(1, {"aws-region": "eu-central-1"} | {k.replace("_", "-"): v for k, v in properties.items()})


def test_a_glue_catalog_is_its_account_and_region(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.METALAKE_OWN_IDENTITY = ("glue://server/eu-central-1",)
    monkeypatch.setattr(GlueClient, "account", lambda self: "123456789012")
    account = "glue://123456789012/eu-central-1"
    assert glue(aws_glue_catalog_id="123456789012").system() == [account]
    assert glue(aws_role_arn=ROLE).system() == ["glue://210987654321/eu-central-1"]
    assert account in glue(**KEYS).system()
    assert {account, "glue://server/eu-central-1"} == set(glue().system())
    assert not set(glue(**KEYS).system()) & set(glue(**KEYS | {"aws_region": "us-east-1"}).system())
    assert "AKIA" not in "".join(glue(**KEYS).system())


def test_where_sts_does_not_answer_keys_and_endpoint_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_: GlueClient) -> str:
        raise ProviderUnavailable("STS does not answer.", kind="catalog")

    monkeypatch.setattr(GlueClient, "account", silent)
    mine, other = glue(**KEYS), glue(**KEYS | {"aws-access-key-id": "AKIAI44QH8DHBEXAMPLE"})
    assert mine.system() == mine.system_names() == glue(**KEYS).system() != other.system()
    elsewhere = glue(**KEYS, aws_glue_endpoint="https://glue.example:4566")
    assert set(elsewhere.system()).isdisjoint(mine.system())


def test_the_account_is_asked_of_sts(glue_server: Any) -> None:
    given = {"aws-glue-endpoint": glue_server.endpoint, "aws-sts-endpoint": glue_server.endpoint}
    assert f"glue://{glue_server.account}/eu-central-1" in glue(**KEYS | given).system()


# Races


def test_of_two_registrations_one_wins(owner: Actor, mia_there: Actor, world: World) -> None:
    """Both have looked and seen nobody when the first one writes."""
    gate, outcomes = threading.Barrier(2, timeout=30), []
    real = catalogs.systems.look_up

    def looked(*asked: Any) -> Any:
        found = real(*asked)
        gate.wait()
        return found

    def register(actor: Actor, metalake: str, name: str) -> None:
        try:
            create(actor.refreshed(), metalake, name, "memory", world=f"{world.path}-new")
            outcomes.append("made")
        except Forbidden:
            outcomes.append("refused")
        finally:
            connections.close_all()

    metalakes.create_metalake(owner, "third", None, {})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(catalogs.systems, "look_up", looked)
        both = [
            threading.Thread(target=register, args=asked)
            for asked in ((owner, "third", "one"), (mia_there, "other", "two"))
        ]
        for each in both:
            each.start()
        for each in both:
            each.join(60)
    assert sorted(outcomes) == ["made", "refused"]


@pytest.mark.store
def test_settings_that_change_between_looking_and_writing(owner: Actor, world: World) -> None:
    real = catalogs.systems.look_up_again

    def looked(*asked: Any) -> Any:
        found = real(*asked)
        Catalog.objects.filter(name="deep").update(properties={"world": f"{world.path}-meanwhile"})
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(catalogs.systems, "look_up_again", looked)
        with pytest.raises(Conflict, match="altered meanwhile"):
            alter(owner, "demo", "deep", team="sales")


# One owner, one system, two views of it


@pytest.fixture
def lake(owner: Actor, monkeypatch: pytest.MonkeyPatch, glue: Glue) -> Iterator[dict[str, str]]:
    """A Glue catalog of Iceberg tables, with a warehouse."""
    monkeypatch.setattr(GlueClient, "account", lambda self: "123456789012")
    glue.create_bucket("lake")
    given = {"aws-region": "eu-central-1", "warehouse": "s3://lake/tables", "s3.endpoint": glue.endpoint, **KEYS}
    create(owner, "demo", "tables", "glue", **given, table_type_filter="iceberg")
    yield given


def test_disjoint_filters_share_a_warehouse(owner: Actor, lake: dict[str, str]) -> None:
    create(owner, "demo", "hives", "glue", **lake, table_format_filter="hive")
    create(owner, "demo", "deltas", "glue", **lake, table_type_filter="delta")
    for wider in ({"table-type-filter": "delta,hive"}, {"table-type-filter": "all"}, {"table-type-filter": "parquet"}):
        with pytest.raises(Invalid, match="overlaps"):
            alter(owner, "demo", "deltas", **wider)
    assert alter(owner, "demo", "deltas", team="sales").properties["team"] == "sales"


@pytest.mark.parametrize("shown", ["all", "iceberg", "hive,iceberg", ""])
def test_filters_that_meet_do_not(owner: Actor, lake: dict[str, str], shown: str) -> None:
    with pytest.raises(Invalid, match="overlaps"):
        create(owner, "demo", "more", "glue", **lake, table_type_filter=shown)


def test_neither_do_systems_or_owners_that_differ(owner: Actor, mia_there: Actor, lake: dict[str, str]) -> None:
    elsewhere = lake | {"aws-glue-catalog-id": "210987654321"}
    with pytest.raises(Invalid, match="overlaps"):
        create(owner, "demo", "more", "glue", **elsewhere, table_type_filter="hive")
    with pytest.raises((Invalid, Forbidden)):
        create(mia_there, "demo", "more", "glue", **lake, table_type_filter="hive")


def test_hive_metastores_have_no_filter_that_is_disjoint() -> None:
    assert HiveProvider(1, {"metastore.uris": "thrift://h:1", "list-all-tables": "false"}).only_formats is None
