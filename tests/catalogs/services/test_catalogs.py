"""What the services of metalakes, catalogs and schemas promise beyond their doors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import Grant, User
from catalogs import vault
from catalogs.models import Catalog, Schema
from catalogs.services import catalogs, metalakes, nesting, schemas, tables
from catalogs.services.alterations import Alteration
from catalogs.table_stores import TableDraft
from metalake.errors import Invalid, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address
from metalake.models import Metalake, Securable
from providers.iceberg.provider import IcebergProvider
from tests.catalogs.callers import Caller
from tests.catalogs.races import COLUMNS
from tests.demo import give

pytestmark = [pytest.mark.store, pytest.mark.django_db]

ICEBERG = ("relational", "lakehouse-iceberg")


@pytest.fixture
def actor(admin: Caller) -> Actor:
    return actor_of(User.objects.get(username="admin"))


def create(actor: Actor, name: str, **properties: str) -> Catalog:
    named = {key.replace("_", "-"): value for key, value in properties.items()}
    return catalogs.create_catalog(actor, "demo", name, *ICEBERG, None, named)


def alter(actor: Actor, name: str, **properties: str | None) -> Catalog:
    named = tuple((key.replace("_", "-"), value) for key, value in properties.items())
    return catalogs.alter_catalog(actor, "demo", name, Alteration(properties=named))


# Locations


def test_catalogs_do_not_overlap(actor: Actor, settings: Any) -> None:
    place = f"file://{settings.METALAKE_HOME}/warehouse/places"
    create(actor, "one", warehouse=f"{place}/one")
    for overlapping in (f"{place}/one", f"{place}/one/below", f"{place}", f"FILE:{place[7:]}/one/"):
        with pytest.raises(Invalid, match="overlaps"):
            create(actor, "two", warehouse=overlapping)
        with pytest.raises(Invalid, match="overlaps"):
            alter(actor, "lake", allowed_locations=overlapping)
    create(actor, "two", warehouse=f"{place}/one-more")


def test_no_catalog_meets_another_by_a_link(actor: Actor, settings: Any, tmp_path: Path) -> None:
    settings.METALAKE_FILE_LOCATIONS = (str(tmp_path),)
    place = f"file://{tmp_path}"
    create(actor, "theirs", warehouse=f"{place}/theirs")
    (tmp_path / "theirs" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "deep").symlink_to(tmp_path / "theirs" / "below")
    for leading in ("link", "link/below", "link/new", "deep", "deep/new"):
        with pytest.raises(Invalid, match="overlaps"):
            create(actor, "mine", warehouse=f"{place}/{leading}")
        with pytest.raises(Invalid, match="overlaps"):
            alter(actor, "lake", allowed_locations=f"{place}/{leading}")
    create(actor, "linked", warehouse=f"{place}/other")
    (tmp_path / "other").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Invalid, match="overlaps"):
        create(actor, "mine", warehouse=f"{place}/elsewhere")


def test_what_a_dropped_catalog_left_is_met_by_a_link(actor: Actor, mia: Caller, settings: Any, tmp_path: Path) -> None:
    settings.METALAKE_FILE_LOCATIONS = (str(tmp_path),)
    create(actor, "theirs", warehouse=f"file://{tmp_path}/theirs")
    schemas.create_schema(actor, Address(metalake="demo", catalog="theirs", schema=("fin",)), None, {})
    catalogs.drop_catalog(actor, "demo", "theirs", force=True)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    give("mia", Kind.METALAKE, "demo", "create_catalog")
    with pytest.raises(Invalid, match="is reserved"):
        create(actor_of(User.objects.get(username="mia")), "mine", warehouse=f"file://{tmp_path}/link")


def test_what_a_catalog_left_that_was_named_by_a_link_is_met_where_it_lies(
    actor: Actor, mia: Caller, settings: Any, tmp_path: Path
) -> None:
    settings.METALAKE_FILE_LOCATIONS = (str(tmp_path),)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    create(actor, "theirs", warehouse=f"file://{tmp_path}/link")
    schemas.create_schema(actor, Address(metalake="demo", catalog="theirs", schema=("fin",)), None, {})
    catalogs.drop_catalog(actor, "demo", "theirs", force=True)
    give("mia", Kind.METALAKE, "demo", "create_catalog")
    with pytest.raises(Invalid, match="is reserved"):
        create(actor_of(User.objects.get(username="mia")), "mine", warehouse=f"file://{tmp_path}/theirs")


def test_a_place_that_is_no_longer_allowed_is_no_matter_of_other_catalogs(
    actor: Actor, settings: Any, tmp_path: Path
) -> None:
    settings.METALAKE_FILE_LOCATIONS = (str(tmp_path),)
    create(actor, "theirs", warehouse=f"file://{tmp_path}/theirs")
    settings.METALAKE_FILE_LOCATIONS = ()
    create(actor, "mine")
    with pytest.raises(Invalid) as refused:
        create(actor, "another", warehouse=f"file://{tmp_path}/another")
    assert "theirs" not in refused.value.message
    settings.METALAKE_FILE_LOCATIONS = (str(tmp_path),)
    with pytest.raises(Invalid, match="overlaps"):
        create(actor, "another", warehouse=f"file://{tmp_path}/theirs/below")


def test_no_catalog_lies_in_the_servers_own_data(actor: Actor, settings: Any) -> None:
    home = settings.METALAKE_HOME
    own = ("static", "static/x", "secret_key", "secrets.keys", "metalake.sqlite3-wal")
    for place in (home, home.parent, *(home / name for name in own)):
        with pytest.raises(Invalid, match=r"own data|not allowed there|home folder"):
            create(actor, "one", warehouse=f"file://{place}")


def test_the_warehouse_of_the_server_may_lie_where_all_nodes_reach_it(
    actor: Actor, settings: Any, tmp_path: Path
) -> None:
    """Those that are there keep theirs, and to catalogs of other systems the folder is as closed as the home."""
    before = create(actor, "before").properties["warehouse"]
    settings.METALAKE_WAREHOUSE = f"file://{tmp_path}"
    after = create(actor, "after")
    assert after.properties["warehouse"] == f"file://{tmp_path}/{after.pk}"
    schemas.create_schema(actor, Address(metalake="demo", catalog="after", schema=("fin",)), None, {})
    tables.create_table(
        actor, Address(metalake="demo", catalog="after", schema=("fin",), leaf="t"), TableDraft(COLUMNS, None, None, {})
    )
    assert list(tmp_path.rglob("*.metadata.json"))
    assert catalogs.load_catalog(actor, "demo", "before").properties["warehouse"] == before
    outside = IcebergProvider(after.pk, {"warehouse": f"file://{settings.METALAKE_HOME}/warehouse/x"})
    assert not outside.is_open_place(f"file://{tmp_path}/other")
    assert str(tmp_path) not in outside.outside_roots


# Nested or flat


def test_a_catalog_stays_nested_when_the_property_goes(actor: Actor) -> None:
    schemas.create_schema(actor, Address(metalake="demo", catalog="lake", schema="A"), None, {})
    assert alter(actor, "lake", nested_namespaces=None).properties["nested-namespaces"] == "true"
    assert Catalog.objects.get(name="lake").nested
    schemas.create_schema(actor, Address(metalake="demo", catalog="lake", schema="A:B"), None, {})


def test_a_nested_catalog_that_holds_nested_schemas_cannot_become_flat(actor: Actor) -> None:
    schemas.create_schema(actor, Address(metalake="demo", catalog="lake", schema="A:B"), None, {})
    with pytest.raises(Invalid, match="cannot become flat"):
        alter(actor, "lake", nested_namespaces="false")
    schemas.drop_schema(actor, Address(metalake="demo", catalog="lake", schema="A:B"))
    assert not alter(actor, "lake", nested_namespaces="false").nested


def test_a_flat_catalog_that_holds_the_separator_cannot_become_nested(actor: Actor, settings: Any) -> None:
    settings.METALAKE_SEPARATOR_POLICY = "unrestricted"
    create(actor, "flat", nested_namespaces="false")
    for name in ("a:b", "plain"):
        schemas.create_schema(actor, Address(metalake="demo", catalog="flat", schema=name), None, {})
    with pytest.raises(Invalid, match="a:b") as refused:
        alter(actor, "flat", nested_namespaces="true")
    assert "plain" not in refused.value.message
    assert "ename" not in refused.value.message  # there is no renaming a schema
    schemas.drop_schema(actor, Address(metalake="demo", catalog="flat", schema="a:b"))
    assert alter(actor, "flat", nested_namespaces="true").nested
    assert schemas.load_schema(actor, Address(metalake="demo", catalog="flat", schema="plain")).path.segments == (
        "plain",
    )


def test_the_separator_may_change_while_no_name_holds_the_new_one(actor: Actor, settings: Any) -> None:
    settings.METALAKE_SEPARATOR_POLICY = "unrestricted"
    create(actor, "flat", nested_namespaces="false")
    schemas.create_schema(actor, Address(metalake="demo", catalog="lake", schema="a:b"), None, {})
    schemas.create_schema(actor, Address(metalake="demo", catalog="flat", schema="a_b"), None, {})
    for mark in ":|_":
        settings.METALAKE_SCHEMA_SEPARATOR = mark
        nesting.check_separator_of_names()
    settings.METALAKE_SCHEMA_SEPARATOR = ":"
    schemas.create_schema(actor, Address(metalake="demo", catalog="lake", schema="a:b_c"), None, {})
    settings.METALAKE_SCHEMA_SEPARATOR = "_"
    with pytest.raises(Invalid, match=r"'_'.* lake\.b_c"):
        nesting.check_separator_of_names()


# Secrets


def test_a_mask_sent_back_keeps_the_secret_and_is_never_stored(actor: Actor) -> None:
    made = create(actor, "one", **{"s3.secret-access-key": "s3cret"})
    alter(actor, "one", **{"s3.secret-access-key": "******", "team": "data"})
    kept = vault.properties_of(made.id)
    assert (kept["s3.secret-access-key"], kept["team"]) == ("s3cret", "data")
    for nothing in ("s3.session-token", "note", "team"):
        with pytest.raises(Invalid, match="stands for a secret"):
            alter(actor, "one", **{nothing: "******"})
    assert vault.properties_of(made.id) == kept


# Changing


def test_an_empty_name_is_refused(actor: Actor) -> None:
    with pytest.raises(Invalid):
        metalakes.alter_metalake(actor, "demo", Alteration(new_name=""))
    with pytest.raises(Invalid):
        catalogs.alter_catalog(actor, "demo", "lake", Alteration(new_name=""))


@pytest.mark.parametrize("model", [Metalake, Catalog, Schema])
def test_what_goes_away_between_two_statements_is_a_miss(
    actor: Actor, model: type[Securable], monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas.create_schema(actor, Address(metalake="demo", catalog="lake", schema="A"), None, {})
    loads = {
        Metalake: lambda: metalakes.load_metalake(actor, "demo"),
        Catalog: lambda: catalogs.load_catalog(actor, "demo", "lake"),
        Schema: lambda: schemas.load_schema(actor, Address(metalake="demo", catalog="lake", schema="A")),
    }
    monkeypatch.setattr(model.objects, "get_queryset", lambda: QuerySet(model).none())
    with pytest.raises(NotFound):
        loads[model]()


# Dropping


def filled(actor: Actor, levels: int) -> None:
    for number in range(levels):
        schemas.create_schema(actor, Address(metalake="demo", catalog="lake", schema=f"A:B{number}:C"), None, {})
    give("admin", Kind.SCHEMA, "lake.A", "use_schema", "create_table" if levels > 2 else "create_schema")


def statements_of_a_drop(actor: Actor) -> int:
    with CaptureQueriesContext(connection) as captured:
        catalogs.drop_catalog(actor, "demo", "lake", force=True)
    return len(captured)


def test_a_forced_drop_takes_everything_below_in_a_fixed_number_of_statements(actor: Actor) -> None:
    filled(actor, 2)
    few = statements_of_a_drop(actor)
    assert not Schema.objects.exists() and not Grant.objects.exists()
    assert not Securable.objects.filter(kind__in=("catalog", "schema")).exists()
    create(actor, "lake")
    filled(actor, 12)
    assert statements_of_a_drop(actor) == few


def test_a_drop_spares_what_only_looks_like_below(actor: Actor) -> None:
    """Ids that begin with the digits of the dropped one's."""
    for name in ("A", "B"):
        schemas.create_schema(actor, Address(metalake="demo", catalog="lake", schema=name), None, {})
    dropped, spared = (Schema.objects.get(name=name) for name in "AB")
    Securable.objects.filter(pk=spared.pk).update(lineage=f"{dropped.lineage}0")
    schemas.drop_schema(actor, Address(metalake="demo", catalog="lake", schema="A"))
    assert list(Schema.objects.values_list("name", flat=True)) == ["B"]


def test_a_dropped_metalake_leaves_nothing(actor: Actor) -> None:
    filled(actor, 1)
    metalakes.drop_metalake(actor, "demo", force=True)
    assert not Securable.objects.exists()


def test_the_provider_names_its_places_whatever_is_allowed(settings: Any) -> None:
    settings.METALAKE_FILE_LOCATIONS = ()
    provider = IcebergProvider(1, {"warehouse": "file:/elsewhere/", "allowed-locations": "s3a://b/x, s3://b/y/"})
    assert provider.locations() == ["file:///elsewhere", "s3://b/x", "s3://b/y"]
    with pytest.raises(Invalid):
        provider.check_locations()
