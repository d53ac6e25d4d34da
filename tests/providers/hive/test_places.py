"""Where databases, tables and partitions of a metastore may lie; no call is made."""

from __future__ import annotations

import re
from typing import Any

import pytest

from formats.native.partitions import IdentityPartition
from formats.native.tables import CreateTableRequest
from metalake.errors import Invalid
from providers.hive.provider import HiveProvider
from providers.remote_objects import Remote
from tests.cases import each
from tests.providers.behaviours import set_property

OWN = "hdfs://nn:8020/user/hive/warehouse/flights.db"
COLUMNS = [{"name": "carrier", "type": "string"}, {"name": "year", "type": "integer"}]
YEAR = {"type": "literal", "dataType": "integer", "value": "2013"}
# Never taken, whatever the catalog names.
NEVER = [
    "file:///etc/hive", "file:///var/lib/metalake/warehouse/7", "delays", "s3://lake/../x", "s3://me:secret@lake/x",
    "s3://lake/x?token=abc", "hdfs://169.254.169.254/x", "hdfs://2852039166/x", "hdfs://metadata.google.internal/x",
    "abfss://lake@169.254.169.254/x", "http://169.254.169.254/x",
]  # fmt: skip


@pytest.fixture(autouse=True)
def folders(settings: Any) -> None:
    settings.METALAKE_HOME = "/var/lib/metalake"
    settings.METALAKE_FILE_LOCATIONS = ["/srv/lake"]


def catalog(**properties: str) -> HiveProvider:
    named = {name.replace("_", "-"): value for name, value in properties.items()}
    return HiveProvider(1, {"metastore.uris": "thrift://127.0.0.1", **named})


def database(location: str = OWN) -> Remote:
    return Remote("flights", {"comment": None, "location": location, "parameters": {}})


def asked(**properties: str) -> CreateTableRequest:
    given = {name.replace("_", "-"): value for name, value in properties.items()}
    by = [{"strategy": "identity", "fieldName": ["year"]}]
    whole = {"name": "delays", "columns": COLUMNS, "partitioning": by, "properties": given}
    return CreateTableRequest.model_validate(whole)


def places(provider: HiveProvider, location: str) -> dict[str, str]:
    """Where things go that name this location, each made as somebody else would; what refuses it is left out."""
    table = provider.tables.draft(database(), asked(table_type="EXTERNAL_TABLE")).definition | {
        "location": f"{OWN}/delays"
    }
    partition = {"type": "identity", "fieldNames": [["year"]], "values": [YEAR], "properties": {"location": location}}
    makers = {
        "schema": lambda: provider.schemas.draft(None, {"location": location}),
        "table": lambda: provider.tables.draft(database(), asked(location=location)).definition,
        "moved table": lambda: provider.tables.altered(table, [set_property("location", location)]),
        "partition": lambda: provider.partitions.draft(table, IdentityPartition.model_validate(partition)),
    }
    found = {}
    for what, make in makers.items():
        try:
            found[what] = make()["location"]
        except Invalid as refusal:
            assert "Location" in refusal.message
    return found


def to_lie_at(place: str) -> dict[str, str]:
    return {"@type": "setProperty", "property": "location", "value": place}


EVERYTHING = {"schema", "table", "moved table", "partition"}


@pytest.mark.parametrize("location", ["s3://elsewhere/delays", "hdfs://other/delays", "file:///srv/lake/delays"])
def test_where_no_place_is_named_the_metastore_decides(location: str) -> None:
    assert places(catalog(), location) == {}
    within = f"{OWN}/delays/year=2013"
    assert places(catalog(), within) == dict.fromkeys(EVERYTHING - {"schema"}, within)
    assert catalog().tables.draft(database(), asked()).definition["location"] is None
    assert catalog().schemas.draft(None, {})["location"] is None


@pytest.mark.parametrize("named", [{"warehouse": "s3://lake/tables"}, {"allowed_locations": "s3://lake/tables"}])
def test_where_places_are_named_nothing_lies_elsewhere(named: dict[str, str]) -> None:
    within = "s3://lake/tables/delays"
    assert places(catalog(**named), within) == dict.fromkeys(EVERYTHING, within)
    for elsewhere in ("s3://lake/tables2/delays", "s3://elsewhere/delays", "file:///srv/lake/delays"):
        assert places(catalog(**named), elsewhere) == {}
    below = f"{OWN}/delays"
    assert places(catalog(**named), below).keys() == {"table", "moved table", "partition"}
    assert catalog(**named).tables.draft(database(), asked()).definition["location"] is None


@each("location", NEVER)
def test_places_that_are_never_taken(location: str) -> None:
    for provider in (catalog(), catalog(warehouse="s3://lake/tables")):
        assert places(provider, location) == {}


@pytest.mark.parametrize("location", ["s3://lake/tables", "s3://lake/tables/hr.db/staff", OWN, f"{OWN}/secret"])
def test_a_managed_table_lies_in_a_folder_of_its_own(location: str) -> None:
    """Whoever drops it has the metastore delete that."""
    provider = catalog(warehouse="s3://lake/tables")
    with pytest.raises(Invalid, match="lies in its schema's folder; leave the location out, or make an EXTERNAL"):
        provider.tables.draft(database(), asked(location=location, table_type="managed_table"))
    assert provider.tables.draft(database(), asked(location=location)).definition["table_type"] == "EXTERNAL_TABLE"
    own = provider.tables.draft(database(), asked(location=f"{OWN}/delays", table_type="MANAGED_TABLE")).definition
    assert (own["table_type"], own["location"]) == ("MANAGED_TABLE", f"{OWN}/delays")
    with pytest.raises(Invalid, match=r"a metastore deletes the folder|not under a location"):
        provider.tables.altered(own, [set_property("location", location)])


@pytest.mark.parametrize("location", ["s3://lake/tables", OWN, f"{OWN}/delays", f"{OWN}/secret"])
def test_a_partition_of_a_managed_table_lies_below_it(location: str) -> None:
    provider = catalog(warehouse="s3://lake/tables", allowed_locations=OWN)
    table = provider.tables.draft(database(), asked()).definition | {"location": f"{OWN}/delays"}
    wanted = {"type": "identity", "fieldNames": [["year"]], "values": [YEAR], "properties": {"location": location}}
    with pytest.raises(Invalid, match=f"a partition of a managed table lies below {OWN}/delays"):
        provider.partitions.draft(table, IdentityPartition.model_validate(wanted))
    wanted["properties"] = {"location": f"{OWN}/delays/of-2013"}
    assert provider.partitions.draft(table, IdentityPartition.model_validate(wanted))["location"]


def test_what_lies_elsewhere_already_stays_and_is_shown() -> None:
    provider = catalog(warehouse="s3://lake/tables")
    table = provider.tables.draft(database(), asked()).definition | {"location": "file:///etc/hive"}
    assert provider.tables.altered(table, [set_property("owner_team", "ops")])["location"] == "file:///etc/hive"
    assert provider.tables.show(table)["properties"]["location"] == "file:///etc/hive"
    assert provider.schemas.altered(database("file:///etc/hive").definition, [])["location"]


@pytest.mark.parametrize(
    "place",
    [
        "file:///var/lib/metalake/warehouse/7",
        "file:///var/lib/metalake/static/x",
        "file:///etc",
        "hdfs://169.254.169.254/x",
    ],
)
def test_what_a_metastore_says_of_a_place_does_not_open_the_server(settings: Any, place: str) -> None:
    settings.METALAKE_FILE_LOCATIONS = ["/srv/lake", "/var/lib"]
    for provider in (catalog(), catalog(warehouse="s3://lake/tables")):
        assert place not in provider.pointers.files(place).allowed
        with pytest.raises(Invalid):
            provider.places.allowed_place(f"{place}/delays", place)
    assert catalog().pointers.files("file:///srv/lake/hr").allowed == ["file:///srv/lake/hr"]
    named = catalog(warehouse="file:///var/lib/metalake/warehouse/7")
    assert named.pointers.files("file:///var/lib/metalake/warehouse/7/t").allowed


@pytest.mark.parametrize("own", ["/user/hive/warehouse", "ofs://service/volume", "dbfs:/lake", "s3a://lake//x"])
def test_a_place_that_nobody_could_name_keeps_no_table_from_a_place_that_is_named(own: str) -> None:
    provider = catalog(warehouse="s3://lake/tables")
    made = provider.tables.draft(database(own), asked(location="s3://lake/tables/delays", table_type="EXTERNAL_TABLE"))
    assert made.definition["location"] == "s3://lake/tables/delays"
    pointer = "s3://lake/tables/delays/metadata/0.metadata.json"
    assert provider.pointers.files(own).allowed_place(pointer) == pointer


# Iceberg tables, whose files are ours to read and write


def test_an_iceberg_table_goes_below_its_database_or_the_warehouse() -> None:
    def place(provider: HiveProvider, own: str, location: str | None = None) -> str:
        found = provider.pointers.place(database(own), "delays", location)
        return found if location else re.sub("delays-[0-9a-f]{32}$", "delays", found)

    lake = catalog(warehouse="s3://lake/tables/", allowed_locations="s3://lake/more")
    assert catalog().pointers.place(database(), "delays", None) != catalog().pointers.place(database(), "delays", None)
    assert place(catalog(), OWN) == f"{OWN}/delays"
    assert place(lake, "s3://lake/more/flights") == "s3://lake/more/flights/delays"
    assert place(lake, OWN) == "s3://lake/tables/flights.db/delays"
    assert place(lake, "dbfs:/user/flights") == "s3://lake/tables/flights.db/delays"
    assert place(lake, OWN, f"{OWN}/own") == f"{OWN}/own"
    for provider in (catalog(), lake):
        for wrong in ("s3://elsewhere/delays", "file:///srv/lake/delays", *NEVER):
            with pytest.raises(Invalid, match="Location"):
                place(provider, OWN, wrong)
    with pytest.raises(Invalid, match="local files are not allowed"):
        place(catalog(), "file:///etc/hive")
    with pytest.raises(Invalid, match="say where table delays goes"):
        place(catalog(), "")


@pytest.mark.parametrize(
    ("asked_for", "told"),
    [
        ("file:/srv/lake/x", "file:/srv/lake/x"),
        ("FILE:///srv/lake/x", "FILE:///srv/lake/x"),
        ("/srv/lake/x", "file:///srv/lake/x"),
        ("s3a://more/x", "s3a://more/x"),
    ],
)
def test_it_lies_where_it_was_asked_to_in_these_words(asked_for: str, told: str) -> None:
    provider = catalog(warehouse="file:///srv/lake", allowed_locations="s3://more")
    assert provider.pointers.place(database(), "delays", asked_for) == told
    made = provider.tables.draft(database(), asked(table_format="iceberg", location=asked_for))
    assert made.definition["location"] == told


def test_a_schema_that_is_said_to_lie_where_it_does_stays() -> None:
    provider, lies = catalog(), database("file:/srv/lake/flights.db").definition
    for place in ("file:/srv/lake/flights.db", "file:///srv/lake/flights.db/", "/srv/lake/flights.db"):
        assert provider.schemas.altered(lies, [to_lie_at(place)]) == lies
    for place in ("file:/srv/lake/others.db", "file:/srv/lake", "nowhere"):
        with pytest.raises(Invalid, match="decided at creation"):
            provider.schemas.altered(lies, [to_lie_at(place)])


def test_a_place_of_one_catalog_is_no_place_of_another() -> None:
    assert catalog(warehouse="s3a://lake/tables/").locations() == ["s3://lake/tables"]
    assert catalog().locations() == []
    for wrong in ("file:///etc", "file:///var/lib/metalake"):
        with pytest.raises(Invalid):
            catalog(warehouse=wrong).check_locations()


def test_the_ground_of_tables_of_the_first_database() -> None:
    """It lies where the folders of all others do, so what is put there by name has a dash, which those have not."""
    root = "hdfs://nn:8020/user/hive/warehouse"
    first = Remote("default", {"comment": None, "location": root, "parameters": {}})
    ground = catalog(allowed_locations=root).tables.ground(first)
    assert ground.holds(f"{root}/my-delays") and ground.holds(catalog().pointers.place(first, "delays", None))
    assert not ground.holds(f"{root}/flights.db/delays") and not ground.holds(f"{root}/delays")
    other = catalog(warehouse="s3://lake/tables").tables.ground(database())
    assert other.holds(f"{OWN}/delays") and other.holds("s3://lake/tables/flights.db/x")
    assert not other.holds("s3://lake/tables/hr.db/x") and not other.holds(OWN)
