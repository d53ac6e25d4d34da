"""Sort orders: validate, add and set the default. Order 0 is always unsorted.

Source of the rules: Iceberg spec, "Sorting"; messages as in the reference implementation where it has one.
"""

from __future__ import annotations

from collections.abc import Iterable

from formats.iceberg.draft import Draft
from formats.iceberg.parsing import Json, get_int, get_object, get_objects, get_text, has
from formats.iceberg.schemas import NESTED, SchemaIndex, current_schema_index
from formats.iceberg.transform_rules import check_applies, check_transform
from metalake.errors import Invalid

UNSORTED: Json = {"order-id": 0, "fields": []}
FIRST_ORDER_ID = 1


def read_fields(order: Json) -> list[Json]:
    """A client's sort fields, validated, but not against a schema yet. Raises Invalid."""
    if has(order, "order-id"):
        get_int(order, "order-id")
    fields = get_objects(order, "fields", "the sort order")
    for field in fields:
        get_int(field, "source-id", "a sort field", minimum=0)
        check_transform(get_text(field, "transform", "a sort field"))
        if get_text(field, "direction", "a sort field") not in ("asc", "desc"):
            raise Invalid("direction of a sort field must be 'asc' or 'desc'")
        if get_text(field, "null-order", "a sort field") not in ("nulls-first", "nulls-last"):
            raise Invalid("null-order of a sort field must be 'nulls-first' or 'nulls-last'")
    return fields


def check_sources(fields: Iterable[Json], index: SchemaIndex) -> None:
    """Raises Invalid for a field whose source column is missing or of a type that cannot be sorted by."""
    for field in fields:
        column = index.columns.get(field.get("source-id", -1))
        if column is None:
            raise Invalid(f"Cannot find source column for sort field: {field['transform']}({field.get('source-id')})")
        if column.kind in NESTED:
            raise Invalid(f"Cannot sort by non-primitive source field: {column.name}")
        check_applies(field["transform"], column)


def add_sort_order(draft: Draft, update: Json) -> None:
    """Add a sort order, or reuse an equal one. The requested id is only a hint."""
    order = get_object(update, "sort-order")
    fields = read_fields(order)
    check_sources(fields, current_schema_index(draft))

    known, wanted = draft.known("order", _shape), _shape({"fields": fields})
    if (equal := known.first(wanted)) is not None:
        draft.remember_reused("order", equal)
        return
    order_id = max(FIRST_ORDER_ID, known.next_id) if fields else UNSORTED["order-id"]
    draft.add("sort-orders", {**order, "order-id": order_id, "fields": fields})
    known.add(wanted, order_id)
    draft.remember_added("order", order_id)


def set_default_sort_order(draft: Draft, update: Json) -> None:
    """Set the default sort order; -1 means the one last added by this request."""
    draft.make_current("order", get_int(update, "sort-order-id"), "default-sort-order-id", "default sort order")


def _shape(order: Json) -> str:
    """A comparison key: equal for orders that sort the same way."""
    fields = order["fields"]
    return repr([(each.get("source-id"), each["transform"], each["direction"], each["null-order"]) for each in fields])
