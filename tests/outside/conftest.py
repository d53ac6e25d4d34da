"""Catalogs of outside systems, owned by `admin` of the metalake `demo`.

`deep` and `flat` are in memory. `hive` is in a metastore of this process's own: a catalog lists all databases.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import AuditEntry, User
from catalogs.services import catalogs
from metalake.kinds import Kind
from outside import steps
from providers import circuit_breaker, registry, remote
from providers.jdbc import mysql, postgresql
from providers.jdbc.provider import MySQLProvider, PostgreSQLProvider
from tests.catalogs.callers import Caller
from tests.catalogs.conftest import admin, mia, otto  # noqa: F401 (fixtures)
from tests.demo import give
from tests.faults import Faults
from tests.glue import Glue
from tests.hms import NEW, OLD, HiveMetastore, needs_hms, running_hms
from tests.mariadb import MariaDB, running_mariadb
from tests.outside.databases import Maria, Postgres
from tests.outside.deployment import deployed, deployment  # noqa: F401 (fixtures)
from tests.outside.outside import AwsGlue, Memory, MemoryWithViews, Metastore, Outside
from tests.outside.writes import Bench
from tests.parts import needs
from tests.providers.glue_catalogs import settings
from tests.providers.jdbc.test_provider import postgres_properties
from tests.providers.world import World
from tests.thrift_proxy import running_proxy


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world.json")


@pytest.fixture
def actor(admin: Caller, world: World, tmp_path: Path) -> Actor:  # noqa: F811
    """The owner of both catalogs; `flat` has a world of its own and lets schemas lie inside schemas here."""
    circuit_breaker.forget_all()
    made = actor_of(User.objects.get(username="admin"))
    catalogs.create_catalog(made, "demo", "deep", "relational", "memory", None, {"world": str(world.path)})
    flat = {"world": str(tmp_path / "flat.json"), "nested-namespaces": "true"}
    catalogs.create_catalog(made, "demo", "flat", "relational", "memory-flat", None, flat)
    return made


@pytest.fixture
def flat_world(tmp_path: Path) -> World:
    return World(tmp_path / "flat.json")


@pytest.fixture
def benches(
    actor: Actor,
    mia: Caller,  # noqa: F811
    world: World,
    flat_world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, Bench]:
    """Both catalogs for Mia, who may make schemas and tables in them; no call waits before it is tried again."""
    caller = _in_haste(monkeypatch)
    return {"deep": Bench("deep", Memory(world), caller), "flat": Bench("flat", Memory(flat_world), caller)}


@pytest.fixture
def views_bench(
    admin: Caller,  # noqa: F811
    mia: Caller,  # noqa: F811
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> Bench:
    """A catalog for Mia whose system, in memory, has views of its own."""
    circuit_breaker.forget_all()
    monkeypatch.setitem(registry.PROVIDERS, "memory-views", "tests.providers.viewing:ViewingProvider")
    outside = MemoryWithViews(world)
    return _registered("views", outside, {"world": str(world.path)}, _in_haste(monkeypatch))


def _in_haste(monkeypatch: pytest.MonkeyPatch) -> Actor:
    """Mia with her rights."""
    monkeypatch.setattr(steps, "READ_BACK", 0.01)
    monkeypatch.setattr(remote, "_pause", lambda failure, attempt: 0.0)
    give("mia", Kind.METALAKE, "demo", "use_catalog", "use_schema", "create_schema", "create_table", role="makers")
    return actor_of(User.objects.get(username="mia"))


@pytest.fixture(scope="session")
def own_hms() -> Iterator[HiveMetastore]:
    needs_hms(NEW)
    with running_hms() as hms:
        yield hms


@pytest.fixture(scope="session")
def own_old_hms() -> Iterator[HiveMetastore]:
    needs_hms(OLD)
    with running_hms(OLD) as hms:
        yield hms


@pytest.fixture
def hive_bench(
    admin: Caller,  # noqa: F811
    mia: Caller,  # noqa: F811
    own_hms: HiveMetastore,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Bench]:
    with _in_metastore(own_hms, monkeypatch) as bench:
        yield bench


@pytest.fixture
def old_hive_bench(
    admin: Caller,  # noqa: F811
    mia: Caller,  # noqa: F811
    own_old_hms: HiveMetastore,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Bench]:
    """In a metastore of version 2.3.9, where what is altered is locked first."""
    with _in_metastore(own_old_hms, monkeypatch) as bench:
        yield bench


@contextmanager
def _in_metastore(hms: HiveMetastore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    faults = Faults()
    with running_proxy(hms.port, faults) as port, hms.client() as client:
        outside = Metastore(hms, client, faults, port)
        yield _registered("hive", outside, outside.properties, _in_haste(monkeypatch))


@pytest.fixture
def glue_bench(
    admin: Caller,  # noqa: F811
    mia: Caller,  # noqa: F811
    glue: Glue,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Bench]:
    properties = settings(glue, nested_namespaces="true")
    outside = AwsGlue(glue, properties)
    yield _registered("glue", outside, properties, _in_haste(monkeypatch))
    del glue.next_fault  # the instance's own


@pytest.fixture
def postgres_bench(admin: Caller, mia: Caller, postgres_url: str, monkeypatch: Any) -> Bench:  # noqa: F811
    monkeypatch.setattr(postgresql, "LOCK_SECONDS", 1)
    properties = postgres_properties(postgres_url) | {"nested-namespaces": "true"}
    outside = Postgres(PostgreSQLProvider(1, properties), monkeypatch)
    outside.execute("DROP SCHEMA public")
    return _registered("pg", outside, properties, _in_haste(monkeypatch))


@pytest.fixture(scope="session")
def own_mariadb() -> Iterator[MariaDB]:
    needs("mariadb")
    with running_mariadb() as server:
        yield server


@pytest.fixture
def maria_bench(admin: Caller, mia: Caller, own_mariadb: MariaDB, monkeypatch: Any) -> Iterator[Bench]:  # noqa: F811
    """On a server of its own: a catalog lists all databases."""
    monkeypatch.setattr(mysql, "LOCK_SECONDS", 1)
    properties = own_mariadb.properties() | {"nested-namespaces": "true"}
    outside = Maria(MySQLProvider(1, properties), monkeypatch)
    yield _registered("maria", outside, properties, _in_haste(monkeypatch))
    outside.reset()
    outside.execute("DROP SCHEMA hr")


def _registered(name: str, outside: Outside, properties: dict[str, str], actor: Actor) -> Bench:
    owner = actor_of(User.objects.get(username="admin"))
    give("mia", Kind.METALAKE, "demo", "modify_table")  # for what others made
    catalogs.create_catalog(owner, "demo", name, "relational", outside.provider, None, properties)
    return Bench(name, outside, actor)


@pytest.fixture
def bench(benches: dict[str, Bench]) -> Bench:
    return benches["deep"]


@pytest.fixture
def clean_audit(benches: dict[str, Bench]) -> None:
    """Only what the test does is in it."""
    AuditEntry.objects.all().delete()
