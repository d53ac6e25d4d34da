"""What was kept in plain before secrets were sealed, and the way back."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from catalogs import vault
from catalogs.models import Catalog, CatalogSecrets
from catalogs.secrets import MASK
from metalake.kinds import Kind
from tests.catalogs.callers import Caller

pytestmark = [pytest.mark.store, pytest.mark.django_db]

migration = import_module("catalogs.migrations.0003_secrets")
more = import_module("catalogs.migrations.0008_more_secrets")


@pytest.fixture(autouse=True)
def ring(tmp_path: Path, settings: Any) -> Path:
    settings.METALAKE_SECRET_KEYS_FILE = tmp_path / "ring"
    return tmp_path / "ring"


def plain(name: str, provider: str = "lakehouse-iceberg", **properties: str) -> Catalog:
    """A catalog as it was kept before."""
    lake = Catalog.objects.get(name="lake")
    row = Catalog(kind=Kind.CATALOG, name=name, type="relational", provider=provider, owner_user=lake.owner_user)
    row.properties = {key.replace("_", "-"): value for key, value in properties.items()}
    row.place_under(lake.parent)
    row.save(force_insert=True)
    return row


def test_what_is_in_plain_is_sealed_and_unsealed(admin: Caller) -> None:
    rows = [plain(f"c{number}", password=f"hunter{number}", jdbc_url="pg://u:p@h/d", team="x") for number in range(3)]
    rows.append(plain("gone", provider="no-such-provider", token="hunter4", note=MASK))
    before = {row.pk: row.properties for row in rows}
    migration.seal(apps, None)
    for row in rows:
        row.refresh_from_db()
        assert row.version == 1
        assert vault.properties_of(row.pk) == before[row.pk]
    assert rows[0].properties == {"password": MASK, "jdbc-url": MASK, "team": "x"}
    assert rows[3].properties == {"token": MASK, "note": MASK}
    assert not CatalogSecrets.objects.filter(catalog__name="lake").exists()
    migration.unseal(apps, None)
    for row in rows:
        row.refresh_from_db()
        assert row.properties == before[row.pk]


def test_a_store_without_secrets_gets_no_ring(admin: Caller, ring: Path) -> None:
    plain("public", team="x")
    migration.seal(apps, None)
    assert not ring.exists()
    assert not CatalogSecrets.objects.exists()


def test_secrets_by_words_that_came_later_join_the_others(admin: Caller) -> None:
    """As a store of before has them: sealed what was a secret then, in plain what is one now."""
    both = plain("both", password="hunter", team="x")
    migration.seal(apps, None)
    both.refresh_from_db()
    both.properties |= {"alert-webhook": "https://hooks.example/T1", "client.assertion": "eyJ"}
    both.save()
    alone = plain("alone", webhook="https://hooks.example/T2")
    untouched = plain("untouched", password=MASK)
    more.seal(apps, None)
    for row in (both, alone, untouched):
        row.refresh_from_db()
    assert both.properties == {"password": MASK, "team": "x", "alert-webhook": MASK, "client.assertion": MASK}
    assert alone.properties == {"webhook": MASK}
    opened = {"password": "hunter", "team": "x", "alert-webhook": "https://hooks.example/T1", "client.assertion": "eyJ"}
    assert vault.properties_of(both.pk) == opened
    assert vault.properties_of(alone.pk) == {"webhook": "https://hooks.example/T2"}
    assert untouched.properties == {"password": MASK} and not CatalogSecrets.objects.filter(pk=untouched.pk).exists()
    rows = list(CatalogSecrets.objects.order_by("pk").values_list())
    more.seal(apps, None)
    assert list(CatalogSecrets.objects.order_by("pk").values_list()) == rows


def test_names_that_are_secret_by_the_words_of_today_are_sealed(admin: Caller) -> None:
    both = plain("both", password="hunter", team="x")
    migration.seal(apps, None)
    both.refresh_from_db()
    given = {"bearer": "b", "auth.header": "h", "ssh_key": "s", "pem": "p", "cert.key": "c", "hmac": "m", "uri": "a/b"}
    both.properties |= given
    both.save()
    [step] = import_module("catalogs.migrations.0014_more_words").Migration.operations
    step.code(apps, None)
    both.refresh_from_db()
    masked = dict.fromkeys(given, MASK) | {"uri": "a/b"}
    assert both.properties == {"password": MASK, "team": "x", **masked}
    assert vault.properties_of(both.pk) == {"password": "hunter", "team": "x", **given}
    for masks in (both.properties, {**both.properties, "team": "y"}):
        updates = [{"@type": "setProperty", "property": key, "value": value} for key, value in masks.items()]
        shown = admin.put("metalakes/demo/catalogs/both", *updates)["catalog"]["properties"]
        assert {key: shown[key] for key in given} == masked
    assert vault.properties_of(both.pk)["ssh_key"] == "s"


def test_a_lost_master_key_does_not_keep_the_server_from_starting(admin: Caller) -> None:
    row = plain("both", password="hunter")
    migration.seal(apps, None)
    row.refresh_from_db()
    row.properties |= {"webhook": "https://hooks.example/T1"}
    row.save()
    CatalogSecrets.objects.filter(pk=row.pk).update(master_key="lost")
    more.seal(apps, None)
    row.refresh_from_db()
    assert row.properties == {"password": MASK, "webhook": "https://hooks.example/T1"}
