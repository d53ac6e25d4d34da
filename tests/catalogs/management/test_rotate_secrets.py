"""`manage.py rotate_secrets`: every data key under a new master key, while others read and write."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from authz import snapshot
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from catalogs import keyring, vault
from catalogs.models import Catalog, CatalogSecrets
from catalogs.secrets import MASK
from catalogs.services import catalogs, metalakes
from catalogs.services.alterations import Alteration
from metalake.kinds import Kind
from metalake.models import Metalake

pytestmark = [pytest.mark.store, pytest.mark.django_db]

KEYS = ("s3.access-key-id", "s3.secret-access-key", "jdbc-password", "token")


@pytest.fixture(autouse=True)
def ring(tmp_path: Path, settings: Any) -> Path:
    settings.METALAKE_SECRET_KEYS_FILE = tmp_path / "ring"
    return tmp_path / "ring"


def populate(count: int) -> list[int]:
    """So many catalogs of four secrets each, made straight in the store; returns their ids."""
    owner = User.objects.create_superuser("admin", "correct horse battery")
    metalakes.create_metalake(actor_of(owner), "demo", None, {})
    for number in range(count):
        plant(owner, f"c{number:05}")
    return list(Catalog.objects.order_by("pk").values_list("pk", flat=True))


def plant(owner: User, name: str) -> None:
    row = Catalog(kind=Kind.CATALOG, name=name, type="relational", provider="lakehouse-iceberg", owner_user=owner)
    row.properties = dict.fromkeys(KEYS, MASK) | {"warehouse": f"s3://{name}/w", "nested-namespaces": "true"}
    row.place_under(Metalake.objects.get())
    row.save(force_insert=True)
    vault.seal(row.pk, secrets_of(name))


def secrets_of(name: str) -> dict[str, str]:
    return {key: f"{key} of {name}" for key in KEYS}


def check(catalog_id: int) -> None:
    opened = vault.properties_of(catalog_id)
    name = opened["warehouse"].split("/")[2]
    assert opened.items() >= secrets_of(name).items(), name


def rotate(*arguments: str) -> str:
    said = io.StringIO()
    call_command("rotate_secrets", *arguments, stdout=said)
    return said.getvalue()


def admin() -> Actor:
    return actor_of(User.objects.get(username="admin"))


def test_all_data_keys_come_under_the_new_master_key() -> None:
    ids = populate(25)
    (old,) = keyring.ids()
    before = dict(CatalogSecrets.objects.values_list("pk", "sealed"))
    said = rotate("--batch", "7")
    new = keyring.newest().id
    assert keyring.ids() == [new, old]
    assert vault.master_keys_in_use() == {new}
    assert f"25 of 25 data keys are under {new}." in said
    assert f"needs {old} any more" in said
    assert dict(CatalogSecrets.objects.values_list("pk", "sealed")) == before
    for catalog_id in ids:
        check(catalog_id)


def test_the_old_key_may_go_afterwards(ring: Path) -> None:
    (catalog_id,) = populate(1)
    rotate()
    newest = keyring.newest()
    ring.write_text(f"{newest}\n")
    keyring._known.clear()
    check(catalog_id)
    assert "any more" not in rotate("--newest")


def test_an_interrupted_rotation_goes_on() -> None:
    ids = populate(20)
    new = keyring.add().id
    next(iter(vault.rewrap(6)))
    assert CatalogSecrets.objects.filter(master_key=new).count() == 6
    for catalog_id in ids:
        check(catalog_id)
    said = rotate("--newest")
    assert keyring.ids()[0] == new
    assert len(keyring.ids()) == 2
    assert f"20 of 20 data keys are under {new}." in said


def test_nothing_to_rotate_makes_no_ring(ring: Path) -> None:
    assert "nothing to rotate" in rotate()
    assert not ring.exists()


def test_a_data_key_that_does_not_open_holds_up_no_other() -> None:
    ids = populate(10)
    CatalogSecrets.objects.filter(pk=ids[2]).update(master_key="lost")
    CatalogSecrets.objects.filter(pk=ids[5]).update(data_key="AAAA")
    with pytest.raises(CommandError, match="2 data keys did not open") as failed:
        rotate("--batch", "3")
    assert "c00002" in str(failed.value)
    assert "c00005" in str(failed.value)
    assert CatalogSecrets.objects.filter(master_key=keyring.newest().id).count() == 8


def test_a_missing_ring_stops_it(ring: Path) -> None:
    populate(1)
    ring.unlink()
    with pytest.raises(CommandError, match="missing"):
        rotate()
    with pytest.raises(CommandError, match="above 0"):
        rotate("--batch", "0")


@pytest.mark.django_db(transaction=True)
def test_secrets_that_change_meanwhile_stay_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alteration between the reading and the writing of a row must not get its former data key back."""
    snapshot.forget()
    (catalog_id,) = populate(1)
    wrap, failures = vault._wrap, list[Exception]()

    def alter() -> None:
        try:
            changes = (("token", "fresh"),)
            catalogs.alter_catalog(admin(), "demo", "c00000", Alteration(properties=changes))
        except Exception as failure:  # must reach the test
            failures.append(failure)
        finally:
            connection.close()

    altering = threading.Thread(target=alter)

    def altered_in_between(*arguments: Any) -> str:
        monkeypatch.setattr(vault, "_wrap", wrap)
        altering.start()
        altering.join(0.5)  # it waits, or would be done by now
        return wrap(*arguments)

    keyring.add()
    monkeypatch.setattr(vault, "_wrap", altered_in_between)
    list(vault.rewrap(10))
    altering.join()
    assert not failures, failures
    opened = vault.properties_of(catalog_id)
    assert opened["token"] == "fresh"
    assert opened["jdbc-password"] == "jdbc-password of c00000"


def test_a_process_that_knows_the_old_ring_seals_by_the_new_key() -> None:
    populate(1)
    rotate()
    new = keyring.newest().id
    keyring._known.clear()
    plant(User.objects.get(), "airports")
    assert vault.master_keys_in_use() == {new}


@pytest.mark.django_db(transaction=True)
def test_no_read_fails_while_keys_rotate() -> None:
    """Three rotations under two readers, one of which forgets the ring as a process that just started would."""
    snapshot.forget()
    ids = populate(120)
    ended = threading.Event()
    reads, failures = [0, 0], list[BaseException]()

    def read(reader: int) -> None:
        try:
            for catalog_id in endlessly(ids, ended):
                if reader:
                    keyring._known.clear()
                check(catalog_id)
                reads[reader] += 1
        except BaseException as failure:  # an assertion, too, must reach the test
            failures.append(failure)
        finally:
            connection.close()

    readers = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(3):
        rotate("--batch", "5")
    ended.set()
    for reader in readers:
        reader.join()
    assert not failures, failures
    assert all(count > 20 for count in reads), reads
    assert vault.master_keys_in_use() == {keyring.newest().id}


def endlessly(ids: list[int], ended: threading.Event) -> Iterator[int]:
    while True:
        for catalog_id in ids:
            if ended.is_set():
                return
            yield catalog_id
