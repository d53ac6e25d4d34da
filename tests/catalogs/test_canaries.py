"""Fifty planted secrets, and fifty more in refused requests, are read nowhere: no reply, page, log, row or event."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin as django_admin
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils.module_loading import import_string

from authz import facts as history
from catalogs import keyring, vault
from catalogs.models import Catalog, CatalogSecrets
from metalake import listeners
from metalake.models import Securable
from metalake.outbox import drain
from providers import remote
from tests.catalogs.callers import Caller
from tests.catalogs.canaries import (
    PLANTED_IN,
    SURFACES,
    Canary,
    Heard,
    Listening,
    Planting,
    World,
    canaries,
    dump,
    leaks,
    surface,
)
from tests.demo import PASSWORD
from tests.iceberg_rest.test_errors import NEW_VIEW

pytestmark = pytest.mark.django_db

NATIVE = "/api/metalakes/demo/catalogs"
ICEBERG = "/iceberg/demo/v1"
CATALOGS = 5
LEVELS = {
    **dict.fromkeys(("", "django", "django.db.backends", "django.request", "django.security"), logging.DEBUG),
    **dict.fromkeys(("pyiceberg", "botocore", "urllib3"), logging.DEBUG),
    "django.template": logging.INFO,  # what a template lacks, with its traceback, thousands of times
}
OF_SOME = {"warehouse", "allowed-locations", "jdbc-url"}  # other providers take them for anybody's own properties
COLUMNS = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


@pytest.fixture
def listening() -> Iterator[Listening]:
    """To every logger at DEBUG, to every statement with its parameters, and to what listeners learn."""
    ear, root = Listening(), logging.getLogger()
    before_listeners, listeners.listeners = (
        listeners.listeners,
        (lambda notice: ear.heard.append(("listener", repr(notice))),),
    )
    before = {name: logging.getLogger(name).level for name in LEVELS}
    for name, level in LEVELS.items():
        logging.getLogger(name).setLevel(level)
    handlers, root.handlers = root.handlers, [ear]
    connection.force_debug_cursor = True
    yield ear
    listeners.listeners = before_listeners
    connection.force_debug_cursor = False
    root.handlers = handlers
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(params=PLANTED_IN.values(), ids=list(PLANTED_IN))
def world(
    request: Any, admin: Caller, mia: Caller, listening: Listening, settings: Any, tmp_path: Path, monkeypatch: Any
) -> World:
    planting: Planting = request.param
    monkeypatch.setattr(import_string(planting.of), "settings", planting.settings)
    monkeypatch.setattr(remote, "_pause", lambda failure, attempt: 0.0)  # nobody is there at the next attempt either
    settings.METALAKE_EVENT_LOG = str(tmp_path / "events")
    settings.METALAKE_OWN_IDENTITY = ("glue://server/eu-central-1", "http://127.0.0.1:1")
    settings.METALAKE_SECRET_KEYS_FILE = tmp_path / "ring"
    kept = canaries(1)
    planted = {f"flights{number}": kept[number::CATALOGS] for number in range(CATALOGS)}
    return World(planting, planted, canaries(2), settings.METALAKE_EVENT_LOG)


# Surfaces


@surface
def registering(world: World) -> Heard:
    for name, given in world.planted.items():
        yield f"create {name}", world.send("POST", NATIVE, world.registration(name, given))


@surface
def reading(world: World) -> Heard:
    yield "list", world.send("GET", NATIVE)
    yield "list with details", world.send("GET", f"{NATIVE}?details=true")
    for name in world.planted:
        yield f"load {name}", world.send("GET", f"{NATIVE}/{name}")
        yield f"load {name} as a stranger", world.send("GET", f"{NATIVE}/{name}", user="mia", status=404)


@surface
def altering(world: World) -> Heard:
    for number, (name, given) in enumerate(world.planted.items()):
        fresh = world.offered[number]
        updates = [
            {"@type": "setProperty", "property": given[0].key, "value": "******"},
            {"@type": "setProperty", "property": fresh.key, "value": fresh.value},
            {"@type": "updateComment", "newComment": "on time"},
        ]
        yield f"alter {name}", world.send("PUT", f"{NATIVE}/{name}", {"updates": updates}, status=world.fine)
        removal = [{"@type": "removeProperty", "property": given[-1].key}]
        yield f"remove from {name}", world.send("PUT", f"{NATIVE}/{name}", {"updates": removal})
        again = [{"@type": "setProperty", "property": given[-1].key, "value": given[-1].value}]
        yield f"set again on {name}", world.send("PUT", f"{NATIVE}/{name}", {"updates": again})


@surface
def trying(world: World) -> Heard:
    trial = world.registration("trial", world.offered)
    yield "try a new one", world.send("POST", f"{NATIVE}/testConnection", trial, status=None)
    for name in world.planted:
        updates = [{"@type": "setProperty", "property": one.key, "value": one.value} for one in world.offered[:9]]
        yield f"try {name}", world.send("POST", f"{NATIVE}/{name}/testConnection", status=world.fine)
        yield (
            f"try {name} altered",
            world.send("POST", f"{NATIVE}/{name}/testConnection", {"updates": updates}, status=world.fine),
        )


@surface
def refusals(world: World) -> Heard:
    url = next(one for one in world.offered if one.key.startswith("endpoint"))
    wrong: list[tuple[dict[str, Any], str]] = [
        (world.registration("flights0", world.offered), "admin"),
        (world.registration("sales", world.offered), "mia"),
        (world.registration("sales", world.offered, type="nothing"), "admin"),
        (world.registration("sales", world.offered, provider="nothing"), "admin"),
        (world.registration("sales", world.offered) | {"unknown": {"password": world.offered[0].value}}, "admin"),
    ]
    for extra in (
        {"in-use": "true"},
        {"nested-namespace": url.value},
        {"warehouse": url.value},
        {"warehouse": url.value.replace("https", "s3")},
        {"allowed-locations": url.value.replace("https", "s3")},
        {"note": "******"},
        {"jdbc-password": [url.value]},
        {"jdbc-url": url.value.replace("https", "jdbc:postgresql")},
        {"jdbc-url": f"jdbc:postgresql://127.0.0.1/sales?password={url.sung}"},
    ):
        if OF_SOME & {*extra} - {*world.planting.settings.declared()}:
            continue
        body = world.registration("sales", world.offered)
        wrong.append((body | {"properties": body["properties"] | extra}, "admin"))
    for number, (body, user) in enumerate(wrong):
        for path in (NATIVE, f"{NATIVE}/testConnection"):
            yield f"refusal {number}", world.send("POST", path, body, user=user, status=None)
        changes = [
            {"@type": "setProperty", "property": key, "value": value} for key, value in body["properties"].items()
        ]
        changes.append({"@type": "setProperty", "property": "in-use", "value": "true"})
        altered = world.send("PUT", f"{NATIVE}/flights0", {"updates": changes}, user=user, status=None)
        yield f"refused alteration {number}", altered
    yield "broken JSON", world.send("POST", NATIVE, f'{{"name": "{url.value}'.encode(), status=400)
    assert not Catalog.objects.filter(name="sales").exists()


@surface
def iceberg(world: World) -> Heard:
    for name in world.planted:
        yield f"config of {name}", world.send("GET", f"{ICEBERG}/config?warehouse={name}")
        schema = {"namespace": ["orders"], "properties": {"team": "flights"}}
        yield "namespace", world.send("POST", f"{ICEBERG}/{name}/namespaces", schema, status=world.fine)
        table = {"name": "sales", "schema": COLUMNS}
        yield "table", world.send("POST", f"{ICEBERG}/{name}/namespaces/orders/tables", table, status=world.fine)
        yield "load", world.send("GET", f"{ICEBERG}/{name}/namespaces/orders/tables/sales", status=world.fine)
        yield (
            "credentials",
            world.send("GET", f"{ICEBERG}/{name}/namespaces/orders/tables/sales/credentials", status=None),
        )
        yield "refusal", world.send("POST", f"{ICEBERG}/{name}/namespaces/orders/tables", table, status=world.refused)
        yield "native", world.send("GET", f"{NATIVE}/{name}/schemas/orders/tables/sales", status=world.fine)


@surface
def views(world: World) -> Heard:
    for name in list(world.planted)[:2]:
        yield "view", world.send("POST", f"{ICEBERG}/{name}/namespaces/orders/views", NEW_VIEW, status=world.fine)
        for path in (f"{ICEBERG}/{name}/namespaces/orders/views/v", f"{NATIVE}/{name}/schemas/orders/views/v"):
            yield "load", world.send("GET", path, status=world.fine)
        versions = f"{NATIVE}/{name}/schemas/orders/views/v/versions"
        yield "versions", world.send("GET", versions, status=world.fine)
        yield "check", world.send("POST", versions.replace("versions", "check"), status=None)
        yield "refusal", world.send("POST", f"{ICEBERG}/{name}/namespaces/orders/views", NEW_VIEW, status=world.refused)


@surface
def rights(world: World) -> Heard:
    access = "/api/metalakes/demo/access"
    yield "export", world.send("GET", f"{access}/export")
    for name in world.planted:
        asked = f"type=catalog&fullName={name}"
        yield "explain", world.send("GET", f"{access}/explain?user=mia&privilege=use_catalog&{asked}")
        yield "export of one", world.send("GET", f"{access}/export?{asked}")
        yield "who reaches", world.send("GET", f"{access}/objects/catalog/{name}", status=None)
        yield "owner", world.send("GET", f"/api/metalakes/demo/owners/catalog/{name}")
    for verb, *rest in (("access", "export", "demo"), ("verify_history",), ("rotate_secrets",)):
        said = io.StringIO()
        call_command(verb, *rest, stdout=said, stderr=said)
        yield f"manage.py {verb}", said.getvalue()


@surface
def pages(world: World) -> Heard:
    client = Client()
    assert client.login(username="admin", password=PASSWORD)
    paths = ["/", "/tree", "/metrics", "/configs", "/health/ready", "/api/schema"]
    for pk in Securable.objects.values_list("pk", flat=True):
        paths += [f"/objects/{pk}", f"/objects/{pk}/children"]
    for path in paths:
        for headers in ({}, {"HX-Request": "true"}):
            yield path, client.get(path, headers=headers).content.decode()


@surface
def operators(world: World) -> Heard:
    client = Client()
    assert client.login(username="admin", password=PASSWORD)
    with_rows = [model for model in django_admin.site._registry if model._default_manager.exists()]
    for model in with_rows:  # the page of an empty table says nothing of a catalog
        base = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        path = reverse(f"{base}_changelist")
        for query in ("", "?q=flights"):
            yield f"{path}{query}", client.get(f"{path}{query}").content.decode()
        rows = 6 if model in (Catalog, CatalogSecrets, Securable) else 2
        for pk in model._default_manager.order_by("-pk").values_list("pk", flat=True)[:rows]:
            path = reverse(f"{base}_change", args=[pk])
            yield path, client.get(path).content.decode()


@surface
def what_follows(world: World) -> Heard:
    history.seal()
    yield from dump()
    drain()
    yield "event log", Path(world.event_log).read_text()


@surface
def broken(world: World) -> Heard:
    """When secrets do not open, what is said of it."""
    CatalogSecrets.objects.filter(catalog__name="flights0").update(master_key="lost")
    kept = CatalogSecrets.objects.get(catalog__name="flights1")
    CatalogSecrets.objects.filter(pk=kept.pk).update(sealed=dict.fromkeys(kept.sealed, "AAAA"))
    CatalogSecrets.objects.filter(catalog__name="flights2").update(data_key=kept.data_key)
    for name in list(world.planted)[:3]:
        yield "try", world.send("POST", f"{NATIVE}/{name}/testConnection", status=502)
        schema, table = f"{ICEBERG}/{name}/namespaces/orders", {"name": "more", "schema": COLUMNS}
        yield "table", world.send("POST", f"{schema}/tables", table, status=503 if world.fine else None)
    yield from dump()


@surface
def dropping(world: World) -> Heard:
    for name in world.planted:
        yield "drop", world.send("DELETE", f"{NATIVE}/{name}?force=true")
    drain()
    yield from dump()


# The search


@pytest.mark.store(once=True)  # errors of a database quote rows, each in its own way
@pytest.mark.slow
def test_no_canary_is_heard(world: World, listening: Listening) -> None:
    watched, heard = world.watched, list[tuple[str, str]]()
    assert len(watched) == len({canary.sung for canary in watched}) == 100
    for name, show in SURFACES.items():
        heard += [(f"{name}: {where}", text) for where, text in show(world)]
        if name == "registering":
            check_that_all_are_kept(world)
    heard += listening.heard
    assert len(listening.heard) > 1000, "statements are not logged"
    assert sum(where.startswith("what_follows: table ") for where, _ in heard) > 50
    assert sum(where == "listener" for where, _ in heard) > 100
    found = leaks(heard, watched)
    assert not found, f"{len(found)} leaks, the first: {found[:5]}"


def check_that_all_are_kept(world: World) -> None:
    for name, given in world.planted.items():
        opened = vault.properties_of(Catalog.objects.get(name=name).pk)
        assert opened.items() >= {canary.key: canary.value for canary in given}.items()


def test_every_canary_would_be_heard_in_each_spelling() -> None:
    watched = canaries(1)
    for canary in watched:
        for text, spelling in canary.spellings().items():
            for said in (f"x{text}y", f"x{text.upper()}y"):
                assert spelling in {leak.spelling for leak in leaks([("", said)], [canary])}
    assert not leaks([("", "nothing but ****** and AKIA, https://sales@flights.example")], watched)


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_base64_is_heard_wherever_it_begins(before: str) -> None:
    import base64

    for canary in canaries(3):
        for after in ("", "z", "zy"):
            said = base64.b64encode(f"{before}{canary.sung}{after}".encode()).decode()
            assert leaks([("", said)], [canary]), (canary, before, after)


@pytest.mark.parametrize(  # masks are the same for all providers
    "world",
    [
        pytest.param(planting, id=name, marks=[] if name == "lakehouse-iceberg" else [pytest.mark.long])
        for name, planting in PLANTED_IN.items()
    ],
    indirect=True,
)
def test_a_surface_that_shows_secrets_is_caught(world: World, listening: Listening, monkeypatch: Any) -> None:
    """Without masks each surface of reading and the dump give themselves away."""
    for place in ("catalogs.services.catalogs", "catalogs.replies", "catalogs.secrets", "catalogs.admin"):
        monkeypatch.setattr(f"{place}.mask", lambda properties, declared=(): dict(properties))
    for name in ("registering", "reading", "iceberg", "pages", "operators", "what_follows"):
        heard = [(where, text) for where, text in SURFACES[name](world)]
        shown = {leak.key for leak in leaks(heard, world.watched)}
        assert bool(shown) == (name != "iceberg"), name
    assert leaks(listening.heard, world.watched)


@pytest.mark.store(once=True)
def test_a_ring_and_its_keys_are_heard_nowhere(world: World, listening: Listening) -> None:
    heard = [(name, text) for name in ("registering", "rights") for _, text in SURFACES[name](world)]
    masters = [
        Canary(key_id, str(keyring.key_of(key_id)), str(keyring.key_of(key_id))[-44:]) for key_id in keyring.ids()
    ]
    assert len(masters) == 2
    assert not leaks([*heard, *dump(), *listening.heard], masters)
