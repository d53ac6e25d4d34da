"""The statement that reads an object's lineage by its names or its id, optionally with the caller."""

from __future__ import annotations

from functools import cache

from authz.callers.joined_lookup import Form
from catalogs.models import Tabular
from metalake.hierarchy import HierarchicalSchema, encode_segment, split_logical
from metalake.kinds import KINDS
from metalake.lineage import Address, SchemaName

COLUMNS = 8  # the ones catalogs.lookup reads; the caller's follow
BY_ID = "%s"

# If the metalake is missing, another one is read, and dropped by `nearest`: a miss takes as long as a hidden object.
BY_NAMES = """
    SELECT COALESCE((
        SELECT COALESCE(t.id, s.securable_ptr_id, c.id, m.id) FROM metalake_securable m
        LEFT JOIN metalake_securable c ON c.parent_id = m.id AND c.slot = 'catalog' AND c.name = %s
        LEFT JOIN catalogs_catalog cc ON cc.securable_ptr_id = c.id
        LEFT JOIN catalogs_schema s ON s.catalog_id = c.id
             AND s.physical_name = CASE WHEN cc.nested THEN CASE WHEN cc.folds_case THEN %s ELSE %s END
                                        WHEN cc.folds_case THEN %s ELSE %s END
        LEFT JOIN metalake_securable t
             ON t.parent_id = s.securable_ptr_id AND t.slot = %s
             AND t.name = CASE WHEN cc.folds_case THEN %s ELSE %s END
        WHERE m.parent_id IS NULL AND m.slot = 'metalake' AND m.name = %s
    ), (SELECT securable_ptr_id FROM metalake_metalake LIMIT 1))
"""
# Each kind's own columns are read by key: with joins, PostgreSQL would read whole tables. They come as one text
# ("1" or "0" for enabled, for nested, then type and provider), since PostgreSQL plans each sub-select once a request.
_UP = """
    WITH RECURSIVE up(id, parent_id, kind, name, owner_user_id, owner_group_id, properties, height) AS (
        SELECT id, parent_id, kind, name, owner_user_id, owner_group_id, properties, 0
        FROM metalake_securable WHERE id = ({deepest})
        UNION ALL
        SELECT p.id, p.parent_id, p.kind, p.name, p.owner_user_id, p.owner_group_id, p.properties, up.height + 1
        FROM metalake_securable p JOIN up ON p.id = up.parent_id
    )
    SELECT up.id, up.kind, up.name, up.owner_user_id, up.owner_group_id,
           CASE up.kind
                WHEN 'metalake' THEN (SELECT CASE WHEN enabled THEN '1' ELSE '0' END
                                      FROM metalake_metalake WHERE securable_ptr_id = up.id)
                WHEN 'catalog' THEN (SELECT CASE WHEN enabled THEN '1' ELSE '0' END
                                            || CASE WHEN nested THEN '1' ELSE '0' END || type || ' ' || provider
                                     FROM catalogs_catalog WHERE securable_ptr_id = up.id) END,
           CASE up.kind {pointers} END,
           CASE WHEN up.kind = 'catalog' OR up.height = 0 THEN up.properties END
           {who}
    FROM up {callers}
    ORDER BY up.height DESC
"""


@cache
def statement(deepest: str, caller: Form | None = None) -> str:
    """The statement on one line, since Django scans the text of each statement.

    It returns a row for each object of the lineage, the metalake first. With a `caller`, whose parameter comes last,
    each row also identifies the caller; an unknown caller gets no rows.
    """
    pointers = " ".join(
        f"WHEN '{model.row_kind}' "  # noqa: S608
        f"THEN (SELECT metadata_location FROM {model._meta.db_table} WHERE securable_ptr_id = up.id)"
        for model in Tabular.__subclasses__()
    )
    who = f", {caller.columns}" if caller else ""
    callers = f"CROSS JOIN {caller.tables} WHERE {caller.condition}" if caller else ""
    return " ".join(_UP.format(deepest=deepest, pointers=pointers, who=who, callers=callers).split())


def parameters_of(address: Address) -> list[str | None]:
    """The parameters of BY_NAMES."""
    nested, flat = schema_keys(address.schema)
    schema = [_folded(nested), nested, _folded(flat), flat]
    leaf = [KINDS[address.leaf_kind].slot, _folded(address.leaf), address.leaf]
    return [address.catalog, *schema, *leaf, address.metalake]


def schema_keys(name: SchemaName | None) -> tuple[str | None, str | None]:
    """The physical names that this name would have in a nested and in a flat catalog."""
    if name is None:
        return None, None
    levels = split_logical(name) if isinstance(name, str) else list(name)
    nested = HierarchicalSchema(tuple(levels)).physical
    if isinstance(name, str):
        return nested, encode_segment(name)
    return nested, encode_segment(levels[0]) if len(levels) == 1 else None


def _folded(key: str | None) -> str | None:
    """The key in lower case, for catalogs that fold case."""
    return None if key is None else key.lower()
