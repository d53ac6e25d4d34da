"""The state of a view's metadata after creation and after commits, as Iceberg's own builder makes it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson
import pytest
from pyiceberg.view.metadata import ViewMetadata

from formats.iceberg.forbidden_properties import check_properties
from formats.iceberg.requirements import check_view_requirements
from formats.iceberg.views.builder import ACTIONS, apply_view_updates, new_view_metadata, run_by_invokers
from formats.iceberg.views.translate import from_iceberg_view
from formats.native.view_definition import LARGEST_SQL, MOST_REPRESENTATIONS
from metalake.errors import Conflict, Invalid, TooLarge
from tests.cases import each
from tests.formats.iceberg.table_samples import NOW, OTHER_UUID, UUID, Json, column, schema
from tests.formats.iceberg.views.view_samples import (
    LATER,
    OTHER_SCHEMA,
    SCHEMA,
    SPARK_CREATE,
    add_schema,
    add_version,
    commit,
    ids,
    logged,
    make_current,
    put,
    query,
    replaced,
    version,
    view,
)

SPARK, TRINO = query("select * from ns.tbl"), query("select * from ns.tbl", "trino")
LOSS = (
    "Cannot replace view due to loss of view dialects (replace.drop-dialect.allowed=false):\n"
    "Previous dialects: [trino, spark]\nNew dialects: [trino]"
)


def refused(act: Any, *args: Any, **more: Any) -> str:
    with pytest.raises(Invalid) as caught:
        act(*args, **more)
    return caught.value.message


# Creation


def test_a_new_view_has_schema_0_and_version_1_whatever_the_client_numbered() -> None:
    made = view(SPARK, **{"version-id": 23, "schema-id": 5})
    assert [each["schema-id"] for each in made["schemas"]] == [0]
    assert made["schemas"][0]["fields"] == SCHEMA["fields"], "field ids stay"
    assert (ids(made), made["current-version-id"], made["versions"][0]["schema-id"]) == ([1], 1, 0)
    assert logged(made) == [(1, NOW)]
    assert made["format-version"] == 1 and made["view-uuid"] == UUID
    ViewMetadata.model_validate(made)


def test_what_spark_sends_makes_a_view_that_holds_all_of_it() -> None:
    before = deepcopy(SPARK_CREATE)
    made = new_view_metadata(
        view_uuid=UUID,
        location="s3://lake/v1/",
        schema=SPARK_CREATE["schema"],
        version=SPARK_CREATE["view-version"],
        properties=SPARK_CREATE["properties"],
        now_ms=NOW,
    )
    assert before == SPARK_CREATE
    assert made["location"] == "s3://lake/v1"
    assert made["versions"] == [SPARK_CREATE["view-version"]]
    assert made["schemas"] == [SPARK_CREATE["schema"]]
    assert made["properties"] == SPARK_CREATE["properties"]
    assert logged(made) == [(1, 1795246747755)]
    ViewMetadata.model_validate_json(orjson.dumps(made))


def test_a_version_without_time_and_summary_gets_them() -> None:
    made = view(SPARK, **{"timestamp-ms": None, "summary": None, "default-catalog": None})
    assert made["versions"][0]["timestamp-ms"] == NOW and made["versions"][0]["summary"] == {}
    assert "default-catalog" not in made["versions"][0]


@each(
    "fields, place",
    [
        ({"default-namespace": None}, "default-namespace of view-version is required"),
        ({"default-namespace": "ns"}, "default-namespace of view-version must be a list"),
        ({"default-namespace": [1]}, "default-namespace of view-version must be a string"),
        ({"default-catalog": 1}, "default-catalog of view-version must be a string"),
        ({"representations": None}, "representations of view-version is required"),
        ({"representations": []}, "representations: a view has at least one"),
        ({"representations": [{"type": "graph"}]}, "type of representations[0] must be 'sql', not 'graph'"),
        ({"representations": [{"sql": "x", "dialect": "d"}]}, "type of representations[0] is required"),
        ({"representations": [query(), "sql"]}, "representations of view-version[1] must be an object"),
        ({"representations": [query(dialect=None)]}, "dialect of representations[0] is required"),
        ({"representations": [query(dialect=" ")]}, "representations[0].dialect"),
        ({"representations": [query(sql=7)]}, "sql of representations[0] must be a string"),
        ({"representations": [query(" \n\t")]}, "representations[0].sql: must not be blank"),
        ({"timestamp-ms": -1}, "timestamp-ms of view-version"),
        ({"version-id": "1"}, "version-id of view-version"),
        ({"summary": {"a": 1}}, "summary of view-version[a] must be a string"),
    ],
)
def test_a_wrong_version_is_refused_with_its_place(fields: Json, place: str) -> None:
    assert place in refused(view, **fields)
    assert place in refused(commit, view(), {"action": "add-view-version", "view-version": version(**fields)})


def test_one_query_for_each_dialect_whatever_its_case_in_the_words_of_the_reference() -> None:
    twice = [query("a", "Trino"), query("b", "TRINO")]
    words = "Invalid view version: Cannot add multiple queries for dialect trino"
    assert refused(view, *twice) == words
    assert refused(commit, view(), add_version(*twice)) == words


def test_limits_of_queries() -> None:
    many = [query(dialect=f"d{number}") for number in range(MOST_REPRESENTATIONS + 1)]
    assert len(view(*many[1:])["versions"][0]["representations"]) == MOST_REPRESENTATIONS
    assert "at most 32" in refused(view, *many)
    assert view(query("x" * LARGEST_SQL))
    with pytest.raises(TooLarge, match=r"representations\[1\].sql: has 1048577 bytes"):
        view(TRINO, query("x" * (LARGEST_SQL + 1)))


def test_unknown_fields_are_stored_unread() -> None:
    made = view(query(hint="fast"), **{"storage-table": {"namespace": ["n"], "name": "st"}, "future": [1]})
    stored = made["versions"][0]
    assert stored["representations"] == [query(hint="fast")]
    assert stored["storage-table"] == {"namespace": ["n"], "name": "st"} and stored["future"] == [1]
    after = commit(made | {"x": 1}, put(a="b"))
    assert after["versions"] == made["versions"] and after["x"] == 1


@pytest.mark.parametrize(
    ("schema_", "words"),
    [
        (schema(column(1, "a"), column(1, "b")), "column id 1"),
        (schema(column(1, "a"), column(2, "a")), "multiple columns named a"),
        (schema(column(1, "a", "varchar(3)")), "Unknown or malformed type"),
        ({"type": "list"}, "type of the schema"),
        ([], "schema must be an object"),
    ],
)
def test_a_wrong_schema_is_refused(schema_: Any, words: str) -> None:
    create = {"view_uuid": UUID, "location": "s3://lake/v", "version": version(), "properties": {}, "now_ms": NOW}
    assert words in refused(new_view_metadata, schema=schema_, **create)
    assert words in refused(commit, view(), add_schema(schema_))


def test_columns_may_have_the_types_of_the_newest_tables_and_there_may_be_none() -> None:
    newest = schema(column(1, "at", "timestamptz_ns"), column(2, "v", "variant"))
    assert apply_view_updates(view(), [add_schema(newest)], now_ms=NOW)["schemas"][1] == {**newest, "schema-id": 1}
    assert apply_view_updates(view(), [add_schema(schema())], now_ms=NOW)["schemas"][1]["fields"] == []


# Versions


def test_a_replacement_is_the_next_version_with_its_own_time() -> None:
    base = view(SPARK)
    after = replaced(base, query("select 2"), **{"version-id": 99})
    assert (ids(after), after["current-version-id"]) == ([1, 2], 2)
    assert logged(after) == [(1, NOW), (2, LATER)]
    assert after["versions"][0] is base["versions"][0], "unchanged parts are shared"


def test_versions_of_one_id_are_numbered_one_after_the_other() -> None:
    queries = [query("select count(*) from ns.tbl"), query("select count(*) as count from ns.tbl")]
    after = commit(view(SPARK), *(add_version(each, **{"version-id": 1}) for each in queries), make_current(3))
    assert ids(after) == [1, 2, 3]
    assert logged(after)[-1] == (3, NOW)


def test_an_equal_version_is_reused_whatever_its_id_and_time() -> None:
    base = replaced(view(SPARK), query("select 2"))
    assert commit(base, add_version(SPARK, **{"version-id": 9, "timestamp-ms": 1})) is base
    again = commit(base, add_version(SPARK, **{"version-id": 9, "timestamp-ms": 1}), make_current(), now=LATER + 5)
    assert (ids(again), again["current-version-id"]) == ([1, 2], 1)
    assert logged(again) == [(1, NOW), (2, LATER), (1, LATER + 5)], "it is current again from now on"


@pytest.mark.parametrize(
    "other",
    [
        {"summary": {"engine-name": "other"}},
        {"default-catalog": "prod"},
        {"default-namespace": ["ns", "below"]},
        {"representations": [query("SELECT * from ns.tbl")]},
        {"representations": [SPARK, TRINO]},
        {"storage-table": {"namespace": ["n"], "name": "st"}},
    ],
)
def test_a_version_that_differs_in_one_thing_is_another_version(other: Json) -> None:
    assert ids(commit(view(SPARK), add_version(SPARK, **other))) == [1, 2]


def test_empty_and_missing_fields_are_equal() -> None:
    base = view(SPARK, **{"default-namespace": [], "summary": {}})
    bare = deepcopy(base)
    del bare["versions"][0]["summary"], bare["versions"][0]["default-namespace"]
    for metadata in (base, bare):
        update = add_version(SPARK, **{"default-namespace": [], "summary": None})
        assert apply_view_updates(metadata, [update], now_ms=NOW) is metadata


def test_an_older_version_is_made_current_again_with_the_time_of_now() -> None:
    base = replaced(view(SPARK), query("select 2"))
    after = commit(base, make_current(1), now=LATER + 7)
    assert logged(after) == [(1, NOW), (2, LATER), (1, LATER + 7)]
    assert commit(after, make_current(1)) is after


def test_minus_1_is_the_schema_and_the_version_of_this_request() -> None:
    after = commit(view(TRINO), add_schema(OTHER_SCHEMA), add_version(TRINO, **{"schema-id": -1}), make_current())
    assert [each["schema-id"] for each in after["schemas"]] == [0, 1]
    assert after["versions"][1]["schema-id"] == 1 and after["current-version-id"] == 2


def test_minus_1_is_also_what_another_request_added_meanwhile() -> None:
    same = [add_schema(OTHER_SCHEMA), add_version(TRINO, **{"schema-id": -1}), make_current()]
    once = commit(view(TRINO), *same)
    assert commit(once, *same) is once


def test_concurrent_replacements_are_both_applied() -> None:
    """Both were prepared on the same base, as version 2; only the view's uuid is required (compatibility kit)."""
    base = view(TRINO, properties={"replace.drop-dialect.allowed": "true"})
    spark, trino = query("select count(some_id) from ns.tbl"), query("select count(id) from ns.tbl", "trino")
    one = commit(base, add_schema(OTHER_SCHEMA), add_version(spark, **{"schema-id": -1}), make_current())
    two = commit(one, add_version(trino, **{"schema-id": 0}), make_current())
    assert [(each["version-id"], each["schema-id"], each["representations"]) for each in two["versions"]] == [
        (1, 0, [TRINO]),
        (2, 1, [spark]),
        (3, 0, [trino]),
    ]
    assert two["current-version-id"] == 3


def test_create_or_replace_as_clients_send_it() -> None:
    """Location, properties, schema and version in one request; properties of before stay (compatibility kit)."""
    base = view(SPARK, properties={"prop1": "val1", "replace.drop-dialect.allowed": "true"})
    after = commit(
        base,
        {"action": "set-location", "location": "s3://lake/updated_tmp/ns/view"},
        put(replacedProp1="val1"),
        add_schema(OTHER_SCHEMA),
        add_version(query("select count(*) from ns.tbl", "trino"), **{"schema-id": -1, "default-catalog": "default"}),
        make_current(),
    )
    assert {"prop1": "val1", "replacedProp1": "val1"}.items() <= after["properties"].items()
    assert [(each["schema-id"], each["fields"]) for each in after["schemas"]] == [
        (0, SCHEMA["fields"]),
        (1, OTHER_SCHEMA["fields"]),
    ]
    assert [entry["version-id"] for entry in after["version-log"]] == [1, 2]
    assert after["versions"][1]["default-catalog"] == "default" and after["location"].endswith("updated_tmp/ns/view")


@pytest.mark.parametrize(
    "properties",
    [
        SPARK_CREATE["properties"],
        {"trino.run-as-owner": "ada", "comment": "c"},
        {"write.metadata.path": "s3://lake/m", "write.metadata.compression-codec": "gzip"},
        {"version.history.num-entries": "2", "replace.drop-dialect.allowed": "true"},
        {"trino_version": "476", "trino_query_id": "q", "presto_query_id": "q"},
    ],
)
def test_properties_that_engines_give_to_views_are_allowed(properties: dict[str, str]) -> None:
    check_properties(view(properties=properties)["properties"])


@each(
    "updates, words",
    [
        ([make_current(23)], "Cannot set current version to unknown version: 23"),
        ([make_current()], "Cannot set last added view version: no view version has been added"),
        ([make_current(None)], "view-version-id is required"),
        ([add_version(**{"schema-id": 23})], "Cannot add version with unknown schema: 23"),
        ([add_version(**{"schema-id": -1})], "Cannot set last added schema: no schema has been added"),
        ([add_version(**{"schema-id": None})], "schema-id of view-version is required"),
        ([{"action": "assign-uuid", "uuid": OTHER_UUID}], "Cannot reassign uuid"),
        ([{"action": "upgrade-format-version", "format-version": 23}], "Unsupported format version: 23"),
        ([{"action": "upgrade-format-version", "format-version": 0}], "Cannot downgrade v1 view to v0"),
        ([{"action": "set-location", "location": ""}], "location must not be empty"),
        ([{"action": "set-location"}], "location is required"),
        ([{"action": "remove-snapshots"}], "Unknown action"),
        ([{"action": "set-properties", "updates": {"a": 1}}], "updates[a] must be a string"),
        ([{"action": "remove-properties", "removals": "a"}], "removals must be a list"),
        (["add-schema"], "an update must be an object"),
    ],
)
def test_a_wrong_update_is_named(updates: list[Any], words: str) -> None:
    message = refused(commit, view(), put(a="b"), *updates)
    assert words in message and "updates[1]" in message


def test_every_action_of_the_specification_is_there() -> None:
    assert set(ACTIONS) == {
        "assign-uuid", "upgrade-format-version", "add-schema", "set-location", "set-properties", "remove-properties",
        "add-view-version", "set-current-view-version",
    }  # fmt: skip


def test_updates_that_change_nothing_give_the_base_itself() -> None:
    base = view(properties={"a": "b"})
    nothing = [
        {"action": "assign-uuid", "uuid": UUID.upper()},
        {"action": "upgrade-format-version", "format-version": 1},
        add_schema({**SCHEMA, "schema-id": 40}),
        {"action": "set-location", "location": "s3://lake/v/"},
        put(a="b"),
        {"action": "remove-properties", "removals": ["missing"]},
        add_version(),
        make_current(1),
    ]
    assert commit(base, *nothing) is base
    assert commit(base) is base


def test_properties_and_location_leave_versions_and_log_alone() -> None:
    base = view(properties={"a": "b", "c": "d"})
    before = deepcopy(base)
    after = commit(
        base,
        put(key1="val1", uuid="mine"),
        {"action": "remove-properties", "removals": ["a", "missing"]},
        {"action": "set-location", "location": "s3://lake/elsewhere/"},
    )
    assert base == before
    assert after["properties"] == {"c": "d", "key1": "val1", "uuid": "mine"}
    assert after["location"] == "s3://lake/elsewhere"
    assert after["versions"] == base["versions"] and after["version-log"] == base["version-log"]


def test_another_writer_may_have_stored_equal_schemas_twice() -> None:
    base = view(SPARK)
    base = base | {"schemas": [*base["schemas"], base["schemas"][0] | {"schema-id": 3}]}
    after = commit(base, add_version(TRINO, SPARK, **{"schema-id": 3}), add_schema(SCHEMA), add_schema(OTHER_SCHEMA))
    assert [each["schema-id"] for each in after["schemas"]] == [0, 3, 4]
    assert after["versions"][1]["schema-id"] == 3


@pytest.mark.parametrize("name", ["TRINO.Run-As-Owner", "trino.Run-as-owner", "tr\u0131no.run-as-owner"])
def test_trinos_word_for_whose_rights_count_has_one_spelling(name: str) -> None:
    def owned(owner: str) -> Json:
        return {"action": "set-properties", "updates": {name: owner}}

    says = f"properties.{name}: this spelling is reserved; Trino's is trino.run-as-owner"
    assert says in refused(view, properties={name: "ada"})
    assert says in refused(commit, view(), owned("ada"))
    stored = view() | {"properties": {name: "ada"}}  # by an earlier version, or by another writer
    assert says in refused(commit, stored, owned("root"))
    assert commit(stored, put(a="b"))["properties"] == {name: "ada", "a": "b"}
    assert commit(stored, {"action": "remove-properties", "removals": [name]})["properties"] == {}
    assert run_by_invokers(stored, now_ms=LATER)["properties"] == {}
    assert from_iceberg_view(stored).is_definer


def test_schemas_are_numbered_from_0_and_used_again() -> None:
    others = [schema(column(1, name), **{"schema-id": 9}) for name in "xyx"]
    after = commit(view(), *(add_schema(each) for each in others))
    assert [each["schema-id"] for each in after["schemas"]] == [0, 1, 2]


# Dialects


def test_a_replacement_has_every_dialect_of_the_version_before() -> None:
    base = view(TRINO, SPARK)
    only_trino = query("select 2", "TRINO")
    assert refused(replaced, base, only_trino) == LOSS
    assert ids(commit(base, add_version(only_trino))) == [1, 2], "as long as it is not made current"
    allowed = commit(base, put(replace_drop_x="")) | {"properties": {"replace.drop-dialect.allowed": "True"}}
    assert replaced(allowed, only_trino)["current-version-id"] == 2
    assert commit(base, add_version(only_trino), make_current(), may_drop_dialects=True)["current-version-id"] == 2


def test_the_permission_to_drop_dialects_may_come_in_the_same_request() -> None:
    allow = {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "true"}}
    after = commit(view(TRINO, SPARK), add_version(TRINO), make_current(), allow)
    assert after["current-version-id"] == 2


# History


def of_versions(count: int, **properties: str) -> Json:
    metadata = view(query("select 1"), properties=properties)
    for number in range(2, count + 1):
        metadata = replaced(metadata, query(f"select {number}"), now=NOW + number)
    return metadata


def test_history_holds_ten_versions() -> None:
    after = of_versions(12)
    assert ids(after) == list(range(3, 13))
    assert [version_id for version_id, _ in logged(after)] == list(range(3, 13))


def test_history_size_is_a_property_and_versions_of_the_request_stay() -> None:
    sized = {"version.history.num-entries": "2"}
    assert ids(of_versions(5, **sized)) == [4, 5]
    many = [add_version(query(f"select {number}")) for number in range(2, 6)]
    after = commit(view(query("select 1"), properties=sized), *many, make_current())
    assert ids(after) == [2, 3, 4, 5], "added by this request, the current one among them"


def test_a_request_may_add_more_versions_than_the_history_holds() -> None:
    fewer = {"action": "set-properties", "updates": {"version.history.num-entries": "2"}}
    many = [add_version(query(f"select {number}")) for number in range(20, 25)]
    assert ids(commit(of_versions(8), fewer, *many, make_current())) == [9, 10, 11, 12, 13]


def test_an_old_current_version_stays_and_the_log_ends_where_it_would_have_a_gap() -> None:
    sized = commit(of_versions(4), {"action": "set-properties", "updates": {"version.history.num-entries": "2"}})
    assert ids(sized) == [3, 4]
    old = commit(of_versions(4), make_current(1), now=NOW + 50)
    cut = commit(old, {"action": "set-properties", "updates": {"version.history.num-entries": "2"}})
    assert ids(cut) == [1, 4]
    assert logged(cut) == [(4, NOW + 4), (1, NOW + 50)], "what lies before versions 2 and 3 is gone with them"


@pytest.mark.parametrize(
    ("size", "words"), [("0", "must be positive but was 0"), ("-3", "was -3"), ("many", "must be a whole number")]
)
def test_a_wrong_history_size_is_refused(size: str, words: str) -> None:
    wrong = {"version.history.num-entries": size}
    assert words in refused(view, properties=wrong)
    assert words in refused(commit, view(), {"action": "set-properties", "updates": wrong})


def test_a_view_that_points_to_no_version_can_be_mended() -> None:
    broken = view() | {"current-version-id": 9}
    assert "no version 9" in refused(commit, broken, put(a="b"))
    assert commit(broken, make_current(1))["current-version-id"] == 1


def test_fields_that_older_writers_leave_out() -> None:
    bare = {key: value for key, value in view().items() if key not in ("schemas", "version-log", "properties")}
    after = commit(bare, put(a="b"), add_schema(SCHEMA))
    assert after["properties"] == {"a": "b"} and [each["schema-id"] for each in after["schemas"]] == [0]


# Requirements


def test_the_only_requirement_is_the_uuid() -> None:
    check_view_requirements([], view())
    check_view_requirements([{"type": "assert-view-uuid", "uuid": UUID.upper()}], view())
    with pytest.raises(Conflict) as stale:
        check_view_requirements([{"type": "assert-view-uuid", "uuid": OTHER_UUID}], view())
    assert stale.value.message == (f"Requirement failed: view UUID does not match: expected {UUID} != {OTHER_UUID}")


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        ({"type": "assert-create"}, "Unknown requirement of a view"),
        ({"type": "assert-table-uuid", "uuid": UUID}, "Unknown requirement of a view"),
        ({"type": "assert-view-uuid"}, "uuid is required"),
        ("assert-view-uuid", "a requirement must be an object"),
        ({}, "type is required"),
    ],
)
def test_a_wrong_requirement_is_named_before_anything_is_compared(requirement: Any, words: str) -> None:
    stale = {"type": "assert-view-uuid", "uuid": OTHER_UUID}
    message = refused(check_view_requirements, [stale, requirement], view())
    assert words in message and "requirements[1]" in message
