"""A place is a bucket in a storage, and belongs to a catalog to which the storage answered."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import Catalog, LocationClaim, ReservedPlace, Schema
from catalogs.services import catalogs, claims, schemas, storage_identity
from catalogs.services.alterations import Alteration
from metalake.errors import Invalid, ProviderUnavailable
from metalake.kinds import Kind
from metalake.lineage import Address
from providers.network.storage import storages_named
from tests.catalogs.callers import Caller
from tests.catalogs.test_hanging_storage import Silence, silence  # noqa: F401 (fixture)
from tests.demo import add_member, give
from tests.glue import Glue
from tests.iceberg_rest.world import COLUMNS
from tests.iceberg_rest.world import Caller as Engine

pytestmark = [pytest.mark.store, pytest.mark.django_db(transaction=True)]

KEYS = {"s3.access-key-id": "AKIA", "s3.secret-access-key": "sesame"}
BUCKET = "s3://lake"


@pytest.fixture
def actor(admin: Caller, glue: Glue) -> Actor:
    glue.create_bucket("lake")
    return actor_of(User.objects.get(username="admin"))


@pytest.fixture
def taker(actor: Actor) -> Actor:
    add_member("mia")
    give("mia", Kind.METALAKE, "demo", "create_catalog")
    return actor_of(User.objects.get(username="mia"))


def create(actor: Actor, name: str, endpoint: str, place: str = f"{BUCKET}/tables", **more: str) -> Catalog:
    given = {"s3.endpoint": endpoint, "warehouse": place, **KEYS, **more}
    return catalogs.create_catalog(actor, "demo", name, "relational", "lakehouse-iceberg", None, given)


def test_a_storage_that_does_not_answer_takes_nothing_and_tells_nothing(actor: Actor, taker: Actor, glue: Glue) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
    glue.create_bucket("gone")
    create(actor, "big", glue.endpoint, "s3://gone/tables")
    glue.client("s3").delete_bucket(Bucket="gone")
    refusals = []
    for place in ("tables", "nothing"):
        with pytest.raises(ProviderUnavailable, match="Nothing listens at") as refused:
            create(taker, "hers", dead, f"s3://gone/{place}")
        with pytest.raises(ProviderUnavailable, match="There is no s3://gone") as missed:
            create(taker, "hers", glue.endpoint, f"s3://gone/{place}")
        refusals.append({failure.value.message.replace(place, "x") for failure in (refused, missed)})
    wider = Alteration(properties=(("allowed-locations", "s3://gone/more"),))
    with pytest.raises(ProviderUnavailable, match="There is no s3://gone"):
        catalogs.alter_catalog(actor, "demo", "big", wider)
    assert refusals[0] == refusals[1]
    assert not Catalog.objects.filter(name="hers").exists()


def test_a_bucket_of_another_storage_is_another_place(
    actor: Actor,
    taker: Actor,
    glue: Glue,
    silence: Silence,  # noqa: F811
) -> None:
    silence.is_silent = False
    hers = create(taker, "hers", silence.url)
    hers_too = Schema.made(
        Kind.SCHEMA, "s", hers, in_catalog=hers, physical_name="s", owner_user_id=taker.id, creator="mia"
    )
    hers_too.save(force_insert=True)
    place = f"{BUCKET}/tables/own/t-1"
    LocationClaim.objects.create(securable_id=hers_too.pk, location=place)
    left = {"of_metalake": hers.parent_id, "of_catalog": hers.pk, "storages": hers.storages}
    for kind, location in (("table", place), ("catalog", f"{BUCKET}/tables")):
        ReservedPlace.objects.create(kind=kind, location=location, full_name="hers", **left)
    big = create(actor, "big", glue.endpoint)
    schemas.create_schema(actor, Address(metalake="demo", catalog="big", schema="own"), None, {})
    engine = Engine("admin", catalog="big")
    made = engine.post("namespaces/own/tables", {"name": "t", "schema": COLUMNS, "location": place})
    assert made.status == 200, made.content
    assert claims.of_others([place], [], big.pk) == [place], "its own claim alone"
    assert claims.claim_around(place, big.pk) == place
    assert LocationClaim.objects.filter(location=place).count() == 2


@pytest.mark.parametrize("other", ["http://localhost:{}", "http://LOCALHOST:{}/"])
def test_no_spelling_of_a_storage_slips_past(actor: Actor, taker: Actor, glue: Glue, other: str) -> None:
    create(actor, "big", glue.endpoint)
    with pytest.raises(Invalid, match="overlaps"):
        create(taker, "hers", other.format(glue.endpoint.rpartition(":")[2]), f"{BUCKET}/tables/below")
    Catalog.objects.update(storages=None)  # as one of before
    with pytest.raises(Invalid, match="overlaps"):
        create(taker, "hers", glue.endpoint, BUCKET)


def test_no_catalog_is_altered_to_another_storage_onto_what_is_anothers(
    actor: Actor,
    taker: Actor,
    glue: Glue,
    silence: Silence,  # noqa: F811
) -> None:
    create(actor, "big", glue.endpoint)
    silence.is_silent = False
    create(taker, "hers", silence.url)
    with pytest.raises(Invalid, match="overlaps"):
        catalogs.alter_catalog(taker, "demo", "hers", Alteration(properties=(("s3.endpoint", glue.endpoint),)))
    silence.is_silent = True
    altered = catalogs.alter_catalog(taker, "demo", "hers", Alteration(properties=(("team", "sales"),)))
    assert altered.properties["team"] == "sales", "what has answered is not asked again"


def test_which_storages_may_be_one() -> None:
    minio = {"s3.endpoint": "http://minio.lan:9000"}
    regional = [f"https://s3{part}.amazonaws.com" for part in ("", ".eu-west-1", "-us-west-2", ".dualstack.us-east-1")]
    assert not any(word.startswith("s3:") for url in regional for word in storages_named({"s3.endpoint": url}))
    assert storages_named({"gcs.service.host": "https://storage.googleapis.com"}) == []
    for bucket_in_name in ("https://mine.s3.amazonaws.com", "https://s3.amazonaws.com.mine.lan"):
        assert storages_named({"s3.endpoint": bucket_in_name}) != [], bucket_in_name
    words: dict[str, Any] = {"aws": [], "minio": storages_named(minio), "unknown": None}
    words["by ip"] = ["s3://10.0.0.5:9000", *words["minio"]]
    together = {("aws", "aws"), ("minio", "by ip"), ("unknown", "aws"), ("unknown", "minio")}
    for one in words:
        for other in words:
            met = {(one, other), (other, one)} & together or one == other or "unknown" in (one, other)
            assert storage_identity.may_be_same("s3://b/x", words[one], words[other]) is bool(met), (one, other)
    assert storage_identity.may_be_same("file:///x", words["minio"], words["aws"]), (
        "a folder of this machine is in no storage"
    )
