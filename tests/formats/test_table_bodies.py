"""The native bodies for tables: what the reference client sends is read, and what is wrong is refused by place."""

from __future__ import annotations

import copy
import json
from typing import Any, get_args

import pytest
from gravitino.api.rel.column import Column
from gravitino.api.rel.expressions.distributions.distributions import Distributions
from gravitino.api.rel.expressions.function_expression import FunctionExpression
from gravitino.api.rel.expressions.literals.literals import Literals
from gravitino.api.rel.expressions.named_reference import NamedReference
from gravitino.api.rel.expressions.sorts.sort_orders import SortOrders
from gravitino.api.rel.expressions.transforms.transforms import Transforms
from gravitino.api.rel.indexes.index import Index as ClientIndex
from gravitino.api.rel.indexes.indexes import Indexes
from gravitino.api.rel.partitions.partitions import Partitions
from gravitino.api.rel.table_change import TableChange
from gravitino.api.rel.types.types import Types
from gravitino.dto.requests.table_create_request import TableCreateRequest
from gravitino.dto.requests.table_updates_request import TableUpdatesRequest as ClientUpdates
from gravitino.dto.util.dto_converters import DTOConverters
from hypothesis import given
from hypothesis import strategies as st

from formats.native import tables as wire
from metalake.errors import Invalid
from metalake.wire import read
from tests.cases import each
from tests.catalogs.native import call, field, literal, table
from tests.profiles import weighing

POSITION = TableChange.ColumnPosition
BOUNDS = Partitions.range("p1", Literals.integer_literal(10), Literals.NULL, {"a": "b"})
LISTED = Partitions.list("p2", [[Literals.string_literal("x")], [Literals.string_literal("y")]], {})

CLIENT_PARTITIONING = [
    (Transforms.identity("id"), {"strategy": "identity", "fieldName": ["id"]}),
    (Transforms.year("at"), {"strategy": "year", "fieldName": ["at"]}),
    (Transforms.month("at"), {"strategy": "month", "fieldName": ["at"]}),
    (Transforms.day("at"), {"strategy": "day", "fieldName": ["at"]}),
    (Transforms.hour("at"), {"strategy": "hour", "fieldName": ["at"]}),
    (Transforms.bucket(4, ["id"], ["at"]), {"strategy": "bucket", "numBuckets": 4, "fieldNames": [["id"], ["at"]]}),
    (Transforms.truncate(3, "id"), {"strategy": "truncate", "width": 3, "fieldName": ["id"]}),
    (
        Transforms.list(field_names=[["id"]], assignments=[LISTED]),
        {
            "strategy": "list",
            "fieldNames": [["id"]],
            "assignments": [
                {
                    "type": "list",
                    "name": "p2",
                    "lists": [[literal("x", "string")], [literal("y", "string")]],
                    "properties": {},
                }
            ],
        },
    ),
    (
        Transforms.range(["id"], [BOUNDS]),
        {
            "strategy": "range",
            "fieldName": ["id"],
            "assignments": [
                {
                    "type": "range",
                    "name": "p1",
                    "upper": literal("10"),
                    "lower": literal("NULL", "null"),
                    "properties": {"a": "b"},
                }
            ],
        },
    ),
    (
        Transforms.apply("zorder", [NamedReference.field(["id"]), Literals.string_literal("x")]),
        {"strategy": "function", "funcName": "zorder", "funcArgs": [field("id"), literal("x", "string")]},
    ),
]

CLIENT_CHANGES = [
    (TableChange.rename("b"), {"@type": "rename", "newName": "b"}),
    (TableChange.rename("b", "s"), {"@type": "rename", "newName": "b", "newSchemaName": "s"}),
    (TableChange.update_comment("c"), {"@type": "updateComment", "newComment": "c"}),
    (TableChange.set_property("k", "v"), {"@type": "setProperty", "property": "k", "value": "v"}),
    (TableChange.remove_property("k"), {"@type": "removeProperty", "property": "k"}),
    (
        TableChange.add_column(["a", "b"], Types.LongType.get(), "c", POSITION.after("x"), False, False,
                               Literals.long_literal(7)),
        {"@type": "addColumn", "fieldName": ["a", "b"], "type": "long", "comment": "c", "position": {"after": "x"},
         "nullable": False, "autoIncrement": False, "defaultValue": literal("7", "long")},
    ),
    (
        TableChange.add_column(["a"], Types.LongType.get(), None, POSITION.first()),
        {"@type": "addColumn", "fieldName": ["a"], "type": "long", "position": "first", "nullable": True,
         "autoIncrement": False},
    ),
    (TableChange.delete_column(["a"], True), {"@type": "deleteColumn", "fieldName": ["a"], "ifExists": True}),
    (
        TableChange.rename_column(["a", "b"], "c"),
        {"@type": "renameColumn", "oldFieldName": ["a", "b"], "newFieldName": "c"},
    ),
    (
        TableChange.update_column_type(["a"], Types.DecimalType.of(9, 2)),
        {"@type": "updateColumnType", "fieldName": ["a"], "newType": "decimal(9,2)"},
    ),
    (
        TableChange.update_column_comment(["a"], "c"),
        {"@type": "updateColumnComment", "fieldName": ["a"], "newComment": "c"},
    ),
    (
        TableChange.update_column_position(["a"], POSITION.default_pos()),
        {"@type": "updateColumnPosition", "fieldName": ["a"], "newPosition": "default"},
    ),
    (
        TableChange.update_column_nullability(["a"], True),
        {"@type": "updateColumnNullability", "fieldName": ["a"], "nullable": True},
    ),
    (
        TableChange.update_column_auto_increment(["a"], True),
        {"@type": "updateColumnAutoIncrement", "fieldName": ["a"], "autoIncrement": True},
    ),
    (
        TableChange.update_column_default_value(["a"], Literals.string_literal("x")),
        {"@type": "updateColumnDefaultValue", "fieldName": ["a"], "newDefaultValue": literal("x", "string")},
    ),
    (
        TableChange.add_index(ClientIndex.IndexType.PRIMARY_KEY, "pk", [["id"]]),
        {"@type": "addTableIndex", "index": {"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"]],
                                             "properties": {}}},
    ),
    (TableChange.delete_index("pk", False), {"@type": "deleteTableIndex", "name": "pk", "ifExists": False}),
]  # fmt: skip


def refusal(model: type, body: object) -> str:
    with pytest.raises(Invalid) as caught:
        read(model, body)
    return caught.value.message


def sent(**parts: Any) -> Any:
    """The body that the reference client sends to create a table."""
    columns = [
        Column.of("id", Types.LongType.get(), nullable=False),
        Column.of("at", Types.TimestampType.with_time_zone(6)),
    ]
    request = TableCreateRequest(
        "orders",
        DTOConverters.to_dtos(columns),
        **{name: DTOConverters.to_dtos(part) if isinstance(part, list) else part for name, part in parts.items()},
    )
    return json.loads(request.to_json())


@each("transform, form", CLIENT_PARTITIONING)
def test_partitioning_of_the_client_is_read_and_written_back(transform, form):
    request = read(wire.CreateTableRequest, sent(_partitioning=[transform]))
    assert request.to_wire()["partitioning"] == [form]


def test_a_create_of_the_client_is_read_whole():
    orders = [
        SortOrders.descending(NamedReference.field(["id"])),
        SortOrders.ascending(
            FunctionExpression.of("bucket", Literals.integer_literal(4), NamedReference.field(["id"]))
        ),
    ]
    request = read(
        wire.CreateTableRequest,
        sent(
            _comment="all of them",
            _sort_orders=orders,
            _distribution=DTOConverters.to_dto(Distributions.HASH),
            _indexes=[Indexes.primary("pk", [["id"]])],
            _properties={"a": "b"},
        ),
    )
    assert [order.to_wire() for order in request.sort_orders] == [
        {"sortTerm": field("id"), "direction": "desc", "nullOrdering": "nulls_last"},
        {"sortTerm": call("bucket", literal("4"), field("id")), "direction": "asc", "nullOrdering": "nulls_first"},
    ]
    assert request.distribution.to_wire() == {"strategy": "hash", "number": 0, "funcArgs": []}
    assert (request.indexes[0].index_type, request.indexes[0].field_names) == ("PRIMARY_KEY", [["id"]])
    assert (request.comment, request.properties) == ("all of them", {"a": "b"})


@each("change, form", CLIENT_CHANGES)
def test_a_change_of_the_client_is_read_and_written_back(change, form):
    body = json.loads(ClientUpdates([DTOConverters.to_table_update_request(change)]).to_json())
    assert read(wire.TableUpdatesRequest, body).to_wire()["updates"] == [form]


def test_the_client_makes_every_kind_of_change_that_we_read():
    members = get_args(get_args(wire.TableUpdate.__value__)[0])
    kinds = {get_args(member.model_fields["action"].annotation)[0] for member in members}
    assert len(kinds) == 15
    assert kinds == {form["@type"] for _, form in CLIENT_CHANGES}


def test_words_are_read_in_any_case():
    request = read(
        wire.CreateTableRequest,
        table(
            partitioning=[{"strategy": "Identity", "fieldName": ["id"]}],
            distribution={"strategy": "RANGE", "number": -1},
            sortOrders=[{"sortTerm": {"type": "FIELD", "fieldName": ["id"]}, "direction": "DESC"}],
            indexes=[{"indexType": "primary_key", "fieldNames": [["id"]]}],
        ),
    )
    assert request.partitioning[0].strategy == "identity"
    assert request.distribution.strategy == "range"
    assert (request.sort_orders[0].direction, request.sort_orders[0].nulls) == ("desc", "nulls_last")
    assert request.indexes[0].index_type == "PRIMARY_KEY"


def test_nothing_but_name_and_columns_is_needed():
    body = dict.fromkeys(["comment", "properties", "partitioning", "distribution", "sortOrders", "indexes"])
    assert read(wire.CreateTableRequest, table(**body)) == read(wire.CreateTableRequest, table())


@each(
    "changes, message",
    [
        ({"colums": []}, "body: unknown field 'colums'"),
        ({"columns": None}, "columns: must be a list"),
        ({"columns": [{"name": "a", "type": "long"}, {"name": "b", "type": "decimal(50,0)"}]},
         "columns[1].type: the precision of a decimal is between 1 and 38, not 50"),
        ({"properties": {"a": 1}}, "properties.a: must be a string"),
        ({"partitioning": [{"strategy": "zap"}]}, "partitioning[0]: 'strategy' is 'zap', not one of 'identity'"),
        ({"partitioning": [{"fieldName": ["id"]}]}, "partitioning[0]: 'strategy' is required"),
        ({"partitioning": [{"strategy": "bucket", "numBuckets": 0, "fieldNames": [["id"]]}]},
         "partitioning[0].numBuckets: must be 1 or more"),
        ({"partitioning": [{"strategy": "bucket", "numBuckets": True, "fieldNames": [["id"]]}]},
         "partitioning[0].numBuckets: must be a whole number"),
        ({"partitioning": [{"strategy": "list", "fieldNames": [["id"]], "assignments": [{"type": "range"}]}]},
         "partitioning[0].assignments[0].type: must be 'list'"),
        ({"partitioning": [{"strategy": "identity", "fieldName": "id"}]},
         "partitioning[0].fieldName: must be a list"),
        ({"distribution": {"strategy": "hash"}}, "distribution.number: is required"),
        ({"distribution": {"strategy": "odd", "number": 1}}, "distribution.strategy: must be 'none', 'hash'"),
        ({"sortOrders": [{"direction": "asc"}]}, "sortOrders[0].sortTerm: is required"),
        ({"sortOrders": [{"sortTerm": field("id"), "nullOrdering": "last"}]}, "sortOrders[0].nullOrdering: must be"),
        ({"indexes": [{"indexType": "HEAP", "fieldNames": [["id"]]}]}, "indexes[0].indexType: must be"),
        ({"columns": [{"name": "a", "type": "long", "autoIncrement": True},
                      {"name": "b", "type": "long", "autoIncrement": True}]},
         "body: only one column can be auto-incremented, not 'a', 'b'"),
    ],
)  # fmt: skip
def test_a_wrong_create_is_refused_with_its_place(changes, message):
    assert refusal(wire.CreateTableRequest, table(**changes)).startswith(message)


@each(
    "update, message",
    [
        ({"type": "rename"}, "updates[0]: '@type' is required"),
        ({"@type": "explode"}, "updates[0]: '@type' is 'explode', not one of 'rename'"),
        ({"@type": "Rename", "newName": "b"}, "updates[0]: '@type' is 'Rename', not one of 'rename'"),
        ({"@type": "rename", "name": "b"}, "updates[0].newName: is required"),
        ({"@type": "rename", "newName": "b", "force": True}, "updates[0]: unknown field 'force'"),
        ({"@type": "addColumn", "fieldName": [], "type": "long"}, "updates[0].fieldName: must have 1 or more items"),
        ({"@type": "addColumn", "fieldName": ["a", " "], "type": "long"}, "updates[0].fieldName[1]: must not be blank"),
        ({"@type": "addColumn", "fieldName": ["a"], "type": "long", "position": "last"},
         "updates[0].position: must be 'first' or 'default'"),
        ({"@type": "addColumn", "fieldName": ["a"], "type": "long", "position": {"before": "b"}},
         "updates[0].position.after: is required"),
        ({"@type": "updateColumnNullability", "fieldName": ["a"], "nullable": None},
         "updates[0].nullable: must be true or false"),
        ("rename", "updates[0]: must be an object"),
    ],
)  # fmt: skip
def test_a_wrong_update_is_refused_with_its_place(update, message):
    assert refusal(wire.TableUpdatesRequest, {"updates": [update]}).startswith(message)


def test_an_update_may_ask_for_nothing():
    assert read(wire.TableUpdatesRequest, {"updates": []}).updates == []


def test_a_comment_can_be_taken_away():
    body = {"updates": [{"@type": "updateComment", "newComment": None}]}
    assert read(wire.TableUpdatesRequest, body).updates[0].new_comment is None


def test_the_schemas_for_openapi_name_every_part():
    create = wire.CreateTableRequest.model_json_schema()
    assert create["required"] == ["name", "columns"]
    assert {"Column", "DataType", "FunctionArg", "Partitioning", "SortOrder", "Index"} <= set(create["$defs"])
    assert len(create["$defs"]["Partitioning"]["discriminator"]["mapping"]) == 10
    update = wire.TableUpdatesRequest.model_json_schema()["$defs"]["TableUpdate"]
    assert update["discriminator"]["propertyName"] == "@type"
    assert len(update["discriminator"]["mapping"]) == 15


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a JSON body."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def spoiled(body: Any, path: tuple[Any, ...], replacement: Any) -> Any:
    if not path:
        return replacement
    body = copy.deepcopy(body)
    parent = body
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = replacement
    return body


FULL_CREATE = table(
    comment="c",
    properties={"a": "b"},
    partitioning=[form for _, form in CLIENT_PARTITIONING],
    distribution={"strategy": "hash", "number": 0, "funcArgs": [field("id")]},
    sortOrders=[{"sortTerm": call("truncate", literal("4"), field("name")), "direction": "asc"}],
    indexes=[{"indexType": "UNIQUE_KEY", "name": "u", "fieldNames": [["id"]]}],
)
ALL_UPDATES = {"updates": [form for _, form in CLIENT_CHANGES]}
SPOILS: list[Any] = [None, True, 3, -1.5, "", "x", [], {}, [[]], [None], {"type": "list"}, {"x": 1}]


@weighing(4)
@given(st.data())
def test_a_spoiled_body_is_read_or_refused_in_our_words(data):
    model, body = data.draw(
        st.sampled_from([(wire.CreateTableRequest, FULL_CREATE), (wire.TableUpdatesRequest, ALL_UPDATES)])
    )
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(body)))
        body = spoiled(body, path, data.draw(st.sampled_from(SPOILS)))
    try:
        request = read(model, body)
    except Invalid as refused:
        assert refused.message
    else:
        assert read(model, request.to_wire()) == request
