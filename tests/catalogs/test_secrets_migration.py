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
from metalake.privileges import Kind
from tests.catalogs.callers import Caller

pytestmark = [pytest.mark.store, pytest.mark.django_db]

migration = import_module("catalogs.migrations.0003_secrets")


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
