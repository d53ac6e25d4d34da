"""Partition specs: validate them, number their fields, add, set as default and remove them.

Source of the rules: Iceberg spec, "Partitioning" and "Partition Evolution"; messages as in the reference
implementation where it has one.
"""

from __future__ import annotations

from collections.abc import Iterable

from formats.iceberg.draft import Draft
from formats.iceberg.parsing import INT_MAX, Json, as_whole, get_int, get_ints, get_object, get_objects, get_text, has
from formats.iceberg.schemas import NESTED, SchemaIndex, current_schema_index
from formats.iceberg.transform_rules import VOID, check_applies, check_transform
from metalake.errors import Invalid

FIRST_FIELD_ID = 1000
NO_FIELD_ID = FIRST_FIELD_ID - 1
UNPARTITIONED: Json = {"spec-id": 0, "fields": []}


def read_fields(spec: Json) -> list[Json]:
    """A client's partition fields, checked for form but not yet against a schema. `field-id` may be missing from all
    of them (an unbound spec), but not from some."""
    if has(spec, "spec-id"):
        get_int(spec, "spec-id")
    fields = get_objects(spec, "fields", "the partition spec")
    names: set[str] = set()
    for field in fields:
        name = get_text(field, "name", "a partition field")
        where = f"partition field {name}"
        if not name:
            raise Invalid("Cannot use empty or null partition name")
        if name in names:
            raise Invalid(f"Cannot use partition name more than once: {name}")
        names.add(name)
        get_int(field, "source-id", where, minimum=0)
        check_transform(get_text(field, "transform", where))
        if has(field, "field-id"):
            get_int(field, "field-id", where, minimum=0)
    numbered = [field["field-id"] for field in fields if has(field, "field-id")]
    if len(numbered) not in (0, len(fields)):
        raise Invalid("field-id must be given for all partition fields or for none")
    if len(set(numbered)) != len(numbered):
        raise Invalid("field-id must differ between the fields of a partition spec")
    return fields


def check_names(fields: Iterable[Json], index: SchemaIndex) -> None:
    """Raises Invalid for a partition field named like a column other than its source, unless the source was dropped."""
    for field in fields:
        name, source_id = str(field.get("name")), field.get("source-id")
        if isinstance(source_id, int) and source_id in index.columns and index.ids.get(name, source_id) != source_id:
            raise Invalid(f"Cannot create identity partition sourced from different field in schema: {name}")


def check_sources(fields: Iterable[Json], index: SchemaIndex) -> None:
    """Raises Invalid for a field whose column is missing or of a wrong kind. Void fields are always valid: dropped
    columns leave them behind."""
    for field in fields:
        if field["transform"] == VOID:
            continue
        column = index.columns.get(field.get("source-id", -1))
        if column is None:
            raise Invalid(f"Cannot find source column for partition field: {_describe(field)}")
        if column.kind in NESTED:
            raise Invalid(f"Cannot partition by non-primitive source field: {column.name}")
        check_applies(field["transform"], column)
        for ancestor in index.ancestors(column):
            if ancestor.kind != "struct":
                raise Invalid(f"Invalid partition field parent: {ancestor.kind} {ancestor.name}")


def number_from_start(fields: list[Json]) -> list[Json]:
    """Fields numbered 1000, 1001, ... as in new tables and all v1 specs."""
    return [{**field, "field-id": FIRST_FIELD_ID + position} for position, field in enumerate(fields)]


def last_field_id(specs: Iterable[Json]) -> int:
    """The highest field id in use, 999 if there is none."""
    return max((field.get("field-id", NO_FIELD_ID) for spec in specs for field in spec["fields"]), default=NO_FIELD_ID)


def add_spec(draft: Draft, update: Json) -> None:
    """Add a partition spec, or reuse an equal one. The id in the body is only a hint."""
    spec = get_object(update, "spec")
    fields = read_fields(spec)
    index = current_schema_index(draft)
    check_names(fields, index)
    check_sources(fields, index)

    known, shape = draft.known("spec", _shape), _shape({"fields": fields})
    if (equal := known.first(shape)) is not None:
        draft.remember_reused("spec", equal)
        return
    spec_id, numbered = known.next_id, _number(draft, fields)
    draft.add("partition-specs", {**spec, "spec-id": spec_id, "fields": numbered})
    known.add(shape, spec_id)
    _field_ids(draft).update(_ids_in(numbered))
    highest = max((field["field-id"] for field in numbered), default=NO_FIELD_ID)
    draft.put("last-partition-id", max(draft.metadata["last-partition-id"], highest))
    draft.remember_added("spec", spec_id)


def set_default_spec(draft: Draft, update: Json) -> None:
    """Set the default spec, which new data is written with; -1 is the one last added by this request."""
    draft.make_current("spec", get_int(update, "spec-id"), "default-spec-id", "default partition spec")


def remove_partition_specs(draft: Draft, update: Json) -> None:
    """Remove specs that are no longer needed; unknown ids are ignored."""
    draft.remove("spec", get_ints(update, "spec-ids"), "default-spec-id", "default partition spec")


def _shape(spec: Json) -> str:
    """A string that equivalent specs share."""
    return repr([(field.get("source-id"), field["transform"], field["name"]) for field in spec["fields"]])


def _field_ids(draft: Draft) -> dict[tuple[int, str], int]:
    """The ids of all partition fields by source and transform."""
    if draft.field_ids is None:
        draft.field_ids = {}
        for spec in draft.by_id("partition-specs").values():
            draft.field_ids.update(_ids_in(spec["fields"]))
    return draft.field_ids


def _ids_in(fields: Iterable[Json]) -> dict[tuple[int, str], int]:
    return {
        (each.get("source-id", -1), each["transform"]): each["field-id"] for each in fields if has(each, "field-id")
    }


def _number(draft: Draft, fields: list[Json]) -> list[Json]:
    numbered = all(has(field, "field-id") for field in fields)
    if draft.format_version == 1:
        sequential = number_from_start(fields)
        if numbered and sequential != fields:
            raise Invalid("Spec does not use sequential IDs that are required in v1")
        return sequential
    if numbered:
        return fields
    known = _field_ids(draft)
    last = draft.metadata["last-partition-id"]
    result = []
    used: set[int] = set()
    for field in fields:
        field_id = known.get((field["source-id"], field["transform"]))
        if field_id is None or field_id in used:
            last = field_id = as_whole(last + 1, "the next partition field id", 0, INT_MAX)
        used.add(field_id)
        result.append({**field, "field-id": field_id})
    return result


def _describe(field: Json) -> str:
    return f"{field.get('field-id')}: {field['name']}: {field['transform']}({field.get('source-id')})"
