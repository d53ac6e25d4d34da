"""Secrets of catalogs at rest: sealed for one place, opened for the provider alone, kept by a mask."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from catalogs import keyring, vault
from catalogs.lookup import nearest
from catalogs.models import Catalog, CatalogSecrets
from catalogs.secrets import MASK
from catalogs.services import catalogs, connections, metalakes
from catalogs.services import provider_of as providers
from catalogs.services import purge as purging
from catalogs.services.alterations import Alteration
from metalake.errors import Invalid, NotFound, ProviderUnavailable
from metalake.lineage import Address
from metalake.models import Securable
from metalake.outbox import NotHere
from outside import tasks, worker_calls
from providers.base import Provider
from providers.iceberg.provider import IcebergProvider
from tests.catalogs.callers import Caller

pytestmark = pytest.mark.django_db

SECRETS = {"s3.secret-access-key": "hunter2", "jdbc-url": "pg://sales:hunter3@db/flights"}
PLAIN = {"s3.region": "eu-west-1", "team": "flights"}


@pytest.fixture(autouse=True)
def ring(tmp_path: Path, settings: Any) -> Path:
    settings.METALAKE_SECRET_KEYS_FILE = tmp_path / "ring"
    return tmp_path / "ring"


@pytest.fixture
def actor(admin: Caller) -> Actor:
    return actor_of(User.objects.get(username="admin"))


@pytest.fixture
def flights(actor: Actor) -> Catalog:
    return create(actor, "flights", SECRETS | PLAIN)


def create(actor: Actor, name: str, properties: dict[str, str]) -> Catalog:
    return catalogs.create_catalog(actor, "demo", name, "relational", "lakehouse-iceberg", None, properties)


def alter(actor: Actor, name: str, changes: Mapping[str, str | None]) -> Catalog:
    return catalogs.alter_catalog(actor, "demo", name, Alteration(properties=tuple(changes.items())))


def of(provider: Provider, *keys: str) -> list[str | None]:
    return [provider.properties.get(key) for key in keys]


def replace_key(ring: Path) -> None:
    """Another ring, in which the id of the old one's key means another key."""
    ring.write_text(f"{keyring.MasterKey(keyring.newest().id, b'x' * 32)}\n")
    keyring._known.clear()


def rows() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT properties FROM metalake_securable")
        properties = cursor.fetchall()
        cursor.execute("SELECT data_key, sealed FROM catalogs_catalogsecrets")
        return json.dumps([properties, cursor.fetchall()], default=str)


# At rest


def test_the_store_holds_masks_and_seals_alone(flights: Catalog) -> None:
    row = Catalog.objects.get(pk=flights.pk)
    assert {key: row.properties[key] for key in (*SECRETS, *PLAIN)} == dict.fromkeys(SECRETS, MASK) | PLAIN
    assert set(CatalogSecrets.objects.get().sealed) == set(SECRETS)
    assert "hunter" not in rows()


def test_a_catalog_without_secrets_needs_neither_row_nor_ring(admin: Caller, ring: Path) -> None:
    assert not ring.exists()
    assert not CatalogSecrets.objects.exists()
    alter(actor_of(User.objects.get(username="admin")), "lake", {"team": "flights"})
    assert not ring.exists()


def test_equal_secrets_are_sealed_differently(flights: Catalog, actor: Actor) -> None:
    create(actor, "airports", SECRETS)
    one, other = CatalogSecrets.objects.order_by("pk")
    assert one.data_key != other.data_key
    assert not set(one.sealed.values()) & set(other.sealed.values())


def test_the_provider_gets_what_was_registered(flights: Catalog) -> None:
    row = Catalog.objects.get(pk=flights.pk)
    found = nearest(Address(metalake="demo", catalog="flights"))
    assert found
    for provider in (providers.provider_of(row), providers.provider_at(found)):
        assert isinstance(provider, IcebergProvider)
        assert provider.properties.items() >= (SECRETS | PLAIN).items()
        assert MASK not in provider.properties.values()


def test_opening_costs_no_statement_where_there_is_no_secret(flights: Catalog) -> None:
    found, lake = nearest(Address(metalake="demo", catalog="flights")), Catalog.objects.get(name="lake")
    assert found
    with CaptureQueriesContext(connection) as asked:
        providers.provider_of(lake)
    assert len(asked) == 0
    with CaptureQueriesContext(connection) as asked:
        providers.provider_at(found)
    assert len(asked) == 1


def test_empty_and_long_secrets_and_any_character(actor: Actor) -> None:
    odd = {
        "empty-secret": "",
        "long-secret": "x" * 60_000,
        "odd-secret": 'ключ\n"\\\u2028🗝',
        "сек.secret-Schlüssel": "ß",
    }
    made = create(actor, "odd", odd)
    assert vault.properties_of(made.pk).items() >= odd.items()


# Altering


def test_a_mask_keeps_a_secret_by_its_form_too(flights: Catalog, actor: Actor) -> None:
    altered = alter(actor, "flights", dict.fromkeys(SECRETS, MASK) | {"team": "airports"})
    assert altered.properties["jdbc-url"] == MASK
    assert vault.properties_of(flights.pk).items() >= (SECRETS | {"team": "airports"}).items()


def test_nothing_but_masks_changes_nothing(flights: Catalog, actor: Actor) -> None:
    before = CatalogSecrets.objects.values().get()
    assert alter(actor, "flights", dict.fromkeys(SECRETS, MASK)).version == flights.version
    assert CatalogSecrets.objects.values().get() == before


def test_a_new_value_takes_the_place_of_the_old(flights: Catalog, actor: Actor) -> None:
    altered = alter(actor, "flights", {"s3.secret-access-key": "hunter4"})
    assert altered.version == flights.version + 1
    assert altered.properties["s3.secret-access-key"] == MASK
    assert vault.properties_of(flights.pk).items() >= (SECRETS | {"s3.secret-access-key": "hunter4"}).items()
    assert "hunter" not in rows()


def test_a_property_may_become_a_secret_and_cease_to_be_one(flights: Catalog, actor: Actor) -> None:
    alter(actor, "flights", {"jdbc-url": "pg://db/flights", "team": "https://u:hunter5@wiki/flights"})
    row = Catalog.objects.get(pk=flights.pk)
    assert (row.properties["jdbc-url"], row.properties["team"]) == ("pg://db/flights", MASK)
    assert set(CatalogSecrets.objects.get().sealed) == {"s3.secret-access-key", "team"}


def test_a_removed_secret_is_gone(flights: Catalog, actor: Actor) -> None:
    alter(actor, "flights", {"jdbc-url": None})
    assert set(CatalogSecrets.objects.get().sealed) == {"s3.secret-access-key"}
    alter(actor, "flights", {"s3.secret-access-key": None})
    assert not CatalogSecrets.objects.exists()
    assert not SECRETS.keys() & vault.properties_of(flights.pk).keys()


def test_every_change_of_secrets_draws_a_new_data_key(flights: Catalog, actor: Actor) -> None:
    before = CatalogSecrets.objects.get()
    alter(actor, "flights", {"s3.secret-access-key": "hunter4"})
    after = CatalogSecrets.objects.get()
    assert after.data_key != before.data_key
    assert after.sealed["jdbc-url"] != before.sealed["jdbc-url"]


@pytest.mark.store
@pytest.mark.parametrize("key", ["s3.session-token", "note", "team"])
def test_a_mask_for_what_is_no_secret_yet_is_refused(flights: Catalog, actor: Actor, key: str) -> None:
    before = rows()
    with pytest.raises(Invalid, match=f"'{key}'.*send its value"):
        alter(actor, "flights", {key: MASK, "region": "eu"})
    with pytest.raises(Invalid, match=f"'{key}'.*send its value"):
        create(actor, "airports", {key: MASK})
    with pytest.raises(Invalid, match=f"'{key}'.*send its value"):
        connections.test_connection(actor, "demo", "airports", "relational", "lakehouse-iceberg", {key: MASK})
    assert rows() == before


def test_the_last_word_on_a_property_counts(flights: Catalog, actor: Actor) -> None:
    key = "s3.secret-access-key"
    changes = ((key, "hunter4"), (key, MASK))
    catalogs.alter_catalog(actor, "demo", "flights", Alteration(properties=changes))
    assert vault.properties_of(flights.pk)[key] == "hunter4"
    with pytest.raises(Invalid, match="send its value"):
        catalogs.alter_catalog(actor, "demo", "flights", Alteration(properties=((key, None), (key, MASK))))
    assert vault.properties_of(flights.pk)[key] == "hunter4"


def test_a_refused_alteration_leaves_the_secrets(flights: Catalog, actor: Actor) -> None:
    before = rows()
    with pytest.raises(Invalid):
        alter(actor, "flights", {"s3.secret-access-key": "hunter4", "allowed-locations": "file:///etc"})
    assert rows() == before


@pytest.mark.store
def test_a_trial_uses_the_secrets_and_keeps_nothing(
    flights: Catalog, actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[list[str | None]] = []
    keys = ("s3.secret-access-key", "jdbc-url", "team")
    monkeypatch.setattr(IcebergProvider, "test_connection", lambda self: tried.append(of(self, *keys)))
    before = rows()
    changes = (("jdbc-url", "pg://db/x"), ("s3.secret-access-key", MASK))
    for alteration in (Alteration(), Alteration(comment="x", sets_comment=True), Alteration(properties=changes)):
        connections.test_altered_connection(actor, "demo", "flights", alteration)
    assert tried == [
        [*SECRETS.values(), "flights"],
        [*SECRETS.values(), "flights"],
        ["hunter2", "pg://db/x", "flights"],
    ]
    assert rows() == before


def test_a_location_that_is_masked_still_belongs_to_its_catalog(actor: Actor, settings: Any) -> None:
    place = f"file://{settings.METALAKE_HOME}/warehouse/places/token=7"
    made = create(actor, "flights", {"warehouse": place})
    assert made.properties["warehouse"] == MASK
    with pytest.raises(Invalid, match="overlaps"):
        create(actor, "airports", {"warehouse": f"{place}/below"})
    assert alter(actor, "flights", {"team": "flights"}).properties["warehouse"] == MASK
    with pytest.raises(Invalid, match="cannot change"):
        alter(actor, "flights", {"warehouse": f"file://{settings.METALAKE_HOME}/warehouse/places/elsewhere"})


# What went wrong


def unopened(catalog: Catalog) -> str:
    """What is said when its provider is asked for; registering and listing others goes on."""
    with pytest.raises(ProviderUnavailable) as refused:
        providers.provider_of(Catalog.objects.get(pk=catalog.pk))
    assert refused.value.__cause__ is None
    assert not refused.value.retryable
    assert "hunter" not in refused.value.message
    return refused.value.message


def test_a_row_that_is_copied_to_another_catalog_does_not_open(flights: Catalog, actor: Actor) -> None:
    airports = create(actor, "airports", SECRETS)
    fields = CatalogSecrets.objects.filter(pk=flights.pk).values("master_key", "data_key", "sealed").get()
    CatalogSecrets.objects.filter(pk=airports.pk).update(**fields)
    assert "airports were sealed for another catalog" in unopened(airports)
    CatalogSecrets.objects.filter(pk=airports.pk).delete()
    CatalogSecrets.objects.filter(pk=flights.pk).update(catalog_id=airports.pk)
    assert "airports were sealed for another catalog" in unopened(airports)


def test_a_value_that_is_copied_to_another_property_or_catalog_does_not_open(flights: Catalog, actor: Actor) -> None:
    kept = CatalogSecrets.objects.get()
    kept.sealed["jdbc-url"] = kept.sealed["s3.secret-access-key"]
    kept.save()
    assert "'jdbc-url' of catalog flights was sealed for another place" in unopened(flights)
    airports = create(actor, "airports", SECRETS)
    other = CatalogSecrets.objects.get(pk=airports.pk)
    other.sealed["jdbc-url"] = kept.sealed["s3.secret-access-key"]
    other.save()
    assert "'jdbc-url' of catalog airports was sealed for another place" in unopened(airports)


@pytest.mark.parametrize("broken", ["", "AAAA", "no base64!", "A" * 200])
def test_a_broken_seal_says_which(flights: Catalog, broken: str) -> None:
    kept = CatalogSecrets.objects.get()
    CatalogSecrets.objects.update(sealed=kept.sealed | {"jdbc-url": broken})
    assert "'jdbc-url'" in unopened(flights)
    CatalogSecrets.objects.update(data_key=broken[:128], sealed=kept.sealed)
    assert "Set all of them anew" in unopened(flights)
    CatalogSecrets.objects.update(data_key=kept.data_key, sealed={"s3.secret-access-key": ""})
    assert "'jdbc-url' of catalog flights is not in the store" in unopened(flights)
    CatalogSecrets.objects.all().delete()
    assert "is not in the store; set it anew" in unopened(flights)


def test_a_broken_secret_alone_can_be_set_anew(flights: Catalog, actor: Actor) -> None:
    kept = CatalogSecrets.objects.get()
    CatalogSecrets.objects.update(sealed=kept.sealed | {"jdbc-url": "AAAA"})
    with pytest.raises(ProviderUnavailable, match="jdbc-url"):
        alter(actor, "flights", {"team": "airports"})
    alter(actor, "flights", {"jdbc-url": SECRETS["jdbc-url"]})
    assert vault.properties_of(flights.pk).items() >= (SECRETS | PLAIN).items()


def test_a_lost_master_key_is_named_and_all_secrets_can_be_set_anew(flights: Catalog, actor: Actor, ring: Path) -> None:
    lost = keyring.newest()
    ring.write_text(f"{keyring.MasterKey('another', b'x' * 32)}\n")
    keyring._known.clear()
    message = unopened(flights)
    assert f"master key {lost.id}" in message
    assert "METALAKE_SECRET_KEYS_FILE" in message
    assert "set all secrets of the catalog anew" in message
    with pytest.raises(ProviderUnavailable, match=lost.id):
        alter(actor, "flights", {"jdbc-url": "pg://a:b@c/d"})
    assert create(actor, "airports", {"s3.secret-access-key": "fine"})
    alter(actor, "flights", {"jdbc-url": "pg://a:b@c/d", "s3.secret-access-key": "anew"})
    assert vault.properties_of(flights.pk)["s3.secret-access-key"] == "anew"


def test_another_key_of_the_same_id_opens_nothing(flights: Catalog, ring: Path) -> None:
    replace_key(ring)
    assert f"another master key called {keyring.newest().id}" in unopened(flights)


def test_a_missing_ring_is_not_replaced_by_one_that_opens_nothing(flights: Catalog, actor: Actor, ring: Path) -> None:
    lost = keyring.newest().id
    ring.unlink()
    with pytest.raises(ProviderUnavailable, match=f"missing.*{lost}.*Put the file back"):
        create(actor, "airports", SECRETS)
    assert not ring.exists()
    assert not Catalog.objects.filter(name="airports").exists()


def test_who_may_not_open_sees_and_drops_all_the_same(flights: Catalog, actor: Actor, ring: Path) -> None:
    replace_key(ring)
    assert catalogs.load_catalog(actor, "demo", "flights").properties["jdbc-url"] == MASK
    assert len(catalogs.list_catalogs(actor, "demo")) == 2
    assert catalogs.drop_catalog(actor, "demo", "flights", force=True)


# Gone


def test_secrets_go_with_their_catalog_and_their_metalake(flights: Catalog, actor: Actor) -> None:
    create(actor, "airports", SECRETS)
    catalogs.drop_catalog(actor, "demo", "flights", force=True)
    assert CatalogSecrets.objects.get().catalog.name == "airports"
    metalakes.drop_metalake(actor, "demo", force=True)
    assert not CatalogSecrets.objects.exists()
    assert not Securable.objects.exists()
    with pytest.raises(NotFound):
        vault.properties_of(flights.pk)


def test_the_ring_lies_in_no_catalog(actor: Actor, settings: Any, tmp_path: Path, ring: Path) -> None:
    settings.METALAKE_FILE_LOCATIONS = (str(tmp_path), str(tmp_path.parent))
    alias = tmp_path.parent / f"{tmp_path.name}-alias"
    alias.symlink_to(tmp_path)
    for place in (ring, tmp_path, tmp_path.parent, alias, alias / "ring"):
        for properties in ({"warehouse": f"file://{place}"}, {"allowed-locations": f"file://{place}"}):
            with pytest.raises(Invalid, match="own data"):
                create(actor, "thief", properties)
    assert create(actor, "flights", {"warehouse": f"file://{tmp_path}/beside"})


def test_a_worker_with_another_ring_leaves_the_work_to_others(
    flights: Catalog, ring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not vault.lacks_key_of(flights.pk)
    assert not list(vault.compare())
    ring.rename(ring.with_name("away"))
    monkeypatch.setattr(keyring, "_known", {})
    assert "is missing" in vault.lacks_key_of(flights.pk)
    keyring.make()
    monkeypatch.setattr(keyring, "_known", {})
    assert "lacks the master key" in vault.lacks_key_of(flights.pk)
    assert [difference.work for difference in vault.compare()] == ["calls to outside catalogs"]
    answered: list[Any] = []
    asked: list[int] = []
    lacks = vault.lacks_key_of

    def look(catalog_id: int) -> str:
        asked.append(catalog_id)
        return lacks(catalog_id)

    monkeypatch.setattr(vault, "lacks_key_of", look)
    monkeypatch.setattr(worker_calls, "reply", lambda key, answer: answered.append(answer))
    monkeypatch.setattr(tasks.remote_call, "apply", partial(tasks.remote_call.apply, throw=False))  # as in a worker
    tasks.remote_call.apply(args=[flights.pk, {"id": 1}, "read", {}, "asked", "key"])
    assert asked == [flights.pk] * tasks.PASSES, "it went back for another worker a few times"
    assert len(answered) == 1, "who asked hears in the end"
    purge = {"catalog_id": flights.pk, "metadata_location": "s3://a/b", "table_uuid": str(uuid4())}
    with pytest.raises(NotHere, match="lacks the master key"):
        purging.purge_table(purge)
