"""Namespaces on the wire: levels in, levels out."""

from __future__ import annotations

import pytest

from authz.callers.identity import actor_of
from authz.models import User
from catalogs.models import Schema
from catalogs.services import catalogs
from metalake.kinds import Kind
from tests.demo import give
from tests.iceberg_rest.world import Caller, segment


def test_create_makes_missing_parents(owner: Caller) -> None:
    answer = owner.post("namespaces", {"namespace": ["a", "b", "c"], "properties": {"k": "v"}})
    assert (answer.status, answer.json) == (200, {"namespace": ["a", "b", "c"], "properties": {"k": "v"}})
    assert owner.children() == [["a"]]
    assert owner.children("a") == [["a", "b"]]
    assert owner.children("a%1Fb") == [["a", "b", "c"]]
    assert chosen_properties(owner, "a", "b") == {}
    assert chosen_properties(owner, "a", "b", "c") == {"k": "v"}


def chosen_properties(owner: Caller, *levels: str) -> dict[str, str]:
    """Without the folder that every namespace has."""
    loaded = owner.get(f"namespaces/{segment(*levels)}").json
    assert loaded["namespace"] == list(levels)
    del loaded["properties"]["location"]
    return loaded["properties"]


def test_create_twice(owner: Caller) -> None:
    owner.make_namespace("a", "b")
    for levels in (["a"], ["a", "b"]):
        error = owner.post("namespaces", {"namespace": levels}).error
        assert error == (409, "AlreadyExistsException", f"Namespace already exists: {'.'.join(levels)}")


def test_load_and_exists(owner: Caller) -> None:
    owner.make_namespace("a")
    assert owner.head("namespaces/a").status == 204
    missing = owner.head("namespaces/b%1Fc")
    assert (missing.status, missing.content) == (404, b"")
    assert owner.get("namespaces/b%1Fc").error == (404, "NoSuchNamespaceException", "Namespace does not exist: b.c")


def test_an_empty_parent_is_no_parent(owner: Caller) -> None:
    owner.make_namespace("a")
    assert owner.get("namespaces?parent=").json["namespaces"] == [["a"]]


def test_a_missing_parent(owner: Caller) -> None:
    assert owner.get("namespaces?parent=x").error == (404, "NoSuchNamespaceException", "Namespace does not exist: x")


def test_a_parent_that_is_encoded_twice(owner: Caller) -> None:
    """PyIceberg encodes each level, and its HTTP library the whole again; Java encodes once."""
    owner.make_namespace("a sp", "100%", "x")
    assert owner.children("a%20sp%1F100%25") == [["a sp", "100%", "x"]]
    assert owner.children("a%2520sp%1F100%2525") == [["a sp", "100%", "x"]]
    assert owner.children("a%2520sp%251F100%2525") == [["a sp", "100%", "x"]]


def test_a_name_that_looks_encoded_is_read_as_it_is_first(owner: Caller) -> None:
    owner.make_namespace("%41", "literal")
    owner.make_namespace("A", "decoded")
    assert owner.children("%2541") == [["%41", "literal"]]
    assert owner.children("A") == [["A", "decoded"]]


def test_update_properties(owner: Caller) -> None:
    owner.make_namespace("a", properties={"keep": "1", "drop": "2", "change": "3"})
    answer = owner.post(
        "namespaces/a/properties", {"removals": ["drop", "gone", "drop"], "updates": {"change": "4", "new": "5"}}
    )
    assert answer.status == 200
    assert answer.json["removed"] == ["drop"]
    assert answer.json["missing"] == ["gone"]
    assert sorted(answer.json["updated"]) == ["change", "new"]
    assert chosen_properties(owner, "a") == {"keep": "1", "change": "4", "new": "5"}


def test_a_namespace_says_where_its_tables_go(owner: Caller) -> None:
    """As Trino asks before it makes a table; a place that the catalog's owner chose is told as it was chosen."""
    owner.make_namespace("a", "b")
    folder = owner.get("namespaces/a%1Fb").json["properties"]["location"]
    made = owner.make_table("a%1Fb", "flights")
    assert made["metadata"]["location"].startswith(f"{folder}/flights-")
    chosen = f"{folder.removesuffix('/a/b')}/of-sales"
    update = {"removals": [], "updates": {"location": chosen}}
    assert owner.post("namespaces/a%1Fb/properties", update).status == 200
    assert owner.get("namespaces/a%1Fb").json["properties"]["location"] == chosen


def test_update_properties_that_contradict_themselves(owner: Caller) -> None:
    owner.make_namespace("a", properties={"k": "1"})
    status, type_, message = owner.post("namespaces/a/properties", {"removals": ["k"], "updates": {"k": "2"}}).error
    assert (status, type_) == (422, "UnprocessableEntityException")
    assert "k" in message
    assert chosen_properties(owner, "a") == {"k": "1"}


def test_update_nothing(owner: Caller) -> None:
    owner.make_namespace("a")
    assert owner.post("namespaces/a/properties", {}).json == {"updated": [], "removed": [], "missing": []}


def test_drop(owner: Caller) -> None:
    owner.make_namespace("a", "b")
    error = owner.delete("namespaces/a").error
    assert error == (409, "NamespaceNotEmptyException", "Namespace a is not empty.")
    dropped = owner.delete("namespaces/a%1Fb")
    assert (dropped.status, dropped.content) == (204, b"")
    assert owner.delete("namespaces/a").status == 204
    assert owner.delete("namespaces/a").error[:2] == (404, "NoSuchNamespaceException")


def test_drop_with_a_table_inside(owner: Caller) -> None:
    owner.make_namespace("a")
    owner.make_table("a", "t")
    assert owner.delete("namespaces/a").error[:2] == (409, "NamespaceNotEmptyException")


@pytest.mark.parametrize("parameter", ["cascade=true", "cascade=false", "cascade", "Cascade=1"])
def test_cascade_is_refused(owner: Caller, parameter: str) -> None:
    owner.make_namespace("a")
    assert owner.delete(f"namespaces/a?{parameter}").error[:2] == (406, "UnsupportedOperationException")
    assert owner.head("namespaces/a").status == 204


def test_a_flat_catalog_has_one_level(owner: Caller) -> None:
    admin = actor_of(User.objects.get(username="admin"))
    properties = {"nested-namespaces": "false"}
    catalogs.create_catalog(admin, "demo", "flat", "relational", "lakehouse-iceberg", None, properties)
    owner.catalog = "flat"
    owner.make_namespace("a")
    assert owner.post("namespaces", {"namespace": ["a", "b"]}).error[:2] == (406, "UnsupportedOperationException")
    assert owner.children() == [["a"]]
    assert owner.children("a") == []  # an engine that walks down finds nothing rather than an error
    assert owner.get("namespaces?parent=b").error[:2] == (404, "NoSuchNamespaceException")
    assert owner.get("namespaces/a%1Fb").error[:2] == (404, "NoSuchNamespaceException")


def test_what_a_reader_may_not_change(owner: Caller, reader: Caller) -> None:
    owner.make_namespace("a")
    assert reader.get("namespaces/a").status == 200
    for answer in (
        reader.post("namespaces", {"namespace": ["b"]}),
        reader.post("namespaces", {"namespace": ["a"]}),  # refused before whether it exists
        reader.post("namespaces/a/properties", {"updates": {"k": "v"}}),
        reader.delete("namespaces/a"),
    ):
        assert answer.error[:2] == (403, "ForbiddenException")
    assert owner.children() == [["a"]]


def test_a_way_to_something_visible_is_a_name_and_no_more(owner: Caller, member: Caller) -> None:
    owner.make_namespace("a", "b", properties={})
    owner.post("namespaces/a/properties", {"updates": {"comment": "not for all", "team": "ops"}})
    owner.make_table("a", "t")
    owner.make_namespace("hidden")
    give(member.name, Kind.CATALOG, "lake", "use_catalog")
    give(member.name, Kind.SCHEMA, "lake.a:b", "use_schema")
    assert member.children() == [["a"]]
    assert member.children("a") == [["a", "b"]]
    assert member.head("namespaces/a").status == 204
    assert member.get("namespaces/a").json == {"namespace": ["a"], "properties": {}}
    assert member.tables("a") == member.get("namespaces/a/views").json["identifiers"] == []
    assert member.get("namespaces/a%1Fb").json["properties"].keys() == {"location"}
    assert member.get("namespaces/hidden").error[:2] == (404, "NoSuchNamespaceException")
    assert member.delete("namespaces/a").error[0] == 403


def test_secrets_are_masked_and_a_mask_sent_back_keeps_them(owner: Caller) -> None:
    made = owner.post("namespaces", {"namespace": ["a"], "properties": {"api-token": "hunter2", "note": "x"}})
    shown = {"api-token": "******", "note": "x"}
    assert made.json == {"namespace": ["a"], "properties": shown}
    assert chosen_properties(owner, "a") == shown
    assert owner.post("namespaces/a/properties", {"updates": shown | {"note": "y"}}).status == 200
    kept = {"api-token": "hunter2", "note": "y"}
    assert Schema.objects.get(name="a").properties == kept
    for key in ("note", "absent", "absent-token"):
        status, type_, message = owner.post("namespaces/a/properties", {"updates": {"k": "v", key: "******"}}).error
        assert (status, type_) == (400, "BadRequestException") and f"'{key}'" in message and "send its value" in message
    assert Schema.objects.get(name="a").properties == kept
    refused = owner.post("namespaces", {"namespace": ["b"], "properties": {"api-token": "******"}}).error
    assert refused[:2] == (400, "BadRequestException") and "send its value" in refused[2]
    assert not Schema.objects.filter(name="b").exists()
