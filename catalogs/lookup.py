"""Address -> lineage, in one statement. Asks no permission, but its misses do not reveal hidden objects."""

from __future__ import annotations

from functools import cache

from django.db import connection

from authz import policy
from authz.actor import Actor
from catalogs.models import Tabular
from metalake.errors import NotFound
from metalake.hierarchy import HierarchicalSchema, encode_segment, split_logical
from metalake.kinds import CONTAINERS, KINDS, Kind
from metalake.lineage import Address, Located, Node, SchemaName, logical, missing

NO_OWNER = -1  # an id that no account has

# If the metalake is missing, another one is read, which `nearest` drops, so that a miss takes as long as a hidden one.
_DEEPEST = """
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
           CASE up.kind WHEN 'catalog' THEN up.properties END
    FROM up
    ORDER BY up.height DESC
"""


@cache
def _statement(deepest: str) -> str:
    """The statement on one line, since Django scans the text of each statement."""
    pointers = " ".join(
        f"WHEN '{model.row_kind}' "  # noqa: S608
        f"THEN (SELECT metadata_location FROM {model._meta.db_table} WHERE securable_ptr_id = up.id)"
        for model in Tabular.__subclasses__()
    )
    return " ".join(_UP.format(deepest=deepest, pointers=pointers).split())


def nearest(address: Address) -> Located | None:
    """The object, or the deepest existing container on the way to it; None if the metalake does not exist.

    A table's nearest container is its schema itself, a schema's its catalog.
    """
    nested, flat = schema_keys(address.schema)
    schema = [_folded(nested), nested, _folded(flat), flat]
    leaf = [KINDS[address.leaf_kind].slot, _folded(address.leaf), address.leaf]
    located = _fetch(_DEEPEST, [address.catalog, *schema, *leaf, address.metalake])
    return located if located and located.metalake.name == address.metalake else None


def find(actor: Actor, address: Address) -> Located:
    """The object, whether the actor may see it or not.

    Raises NotFound for the first missing object on the way; if an object above that is hidden, for the hidden one.
    """
    located = nearest(address)
    if located is None or not is_whole(address, located):
        raise miss(actor, address, located)
    return located


def is_whole(address: Address, located: Located) -> bool:
    """Whether `located` is the object of the address, not a container on the way to it."""
    return KINDS[located.kind].depth >= address.depth


def miss(actor: Actor, address: Address, nearest: Located | None) -> NotFound:
    """The NotFound for an address that leads only as far as `nearest`.

    Asks all that is asked for a hidden object, of the store too, so that a missing one takes as long.
    """
    kind = _missing_kind(address, nearest)
    absent = Located(nodes=(*(nearest.nodes if nearest else ()), *_absent(kind, address)))
    policy.check_as_hidden(actor, absent)
    if kind == Kind.SCHEMA and address.leaf is not None:
        policy.check_as_hidden(actor, Located(nodes=(*absent.nodes, *_absent(address.leaf_kind, address))))
    unseen = policy.unseen(actor, absent)
    return unseen if unseen.kind != kind else missing(kind, _names_down_to(kind, address))


def _absent(kind: Kind, address: Address) -> list[Node]:
    """What is missing, without a name and of an owner whom nobody is; a schema with all its levels."""
    levels = 1
    if kind == Kind.SCHEMA and address.schema is not None:
        levels = len(split_logical(address.schema) if isinstance(address.schema, str) else address.schema)
    return [Node(0, kind, "", NO_OWNER, None)] * levels


def by_id(securable_id: int) -> Located | None:
    return _fetch("%s", [securable_id])


def _fetch(deepest: str, parameters: list) -> Located | None:
    with connection.cursor() as cursor:
        cursor.execute(_statement(deepest), parameters)
        rows = cursor.fetchall()
    if not rows:
        return None
    is_in_catalog = len(rows) > 1 and rows[1][1] == Kind.CATALOG
    own, properties = (rows[1][5], rows[1][7]) if is_in_catalog else ("  ", None)
    catalog_type, _, provider = own[2:].partition(" ")
    return Located(
        nodes=tuple(Node(*row[:5]) for row in rows),
        disabled=next((row[1] for row in rows if row[5] is not None and row[5][0] == "0"), None),
        nested=own[1] == "1",
        catalog_type=catalog_type or None,
        provider=provider or None,
        properties=properties,
        metadata_location=rows[-1][6],
    )


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


def _missing_kind(address: Address, nearest: Located | None) -> Kind:
    """The kind of the first missing object of the address."""
    known = KINDS[nearest.kind].depth if nearest else 0
    return CONTAINERS[known] if known < len(CONTAINERS) else address.leaf_kind


def _names_down_to(kind: Kind, address: Address) -> list[str]:
    """The names of the address down to the object of this kind."""
    if kind == Kind.METALAKE:
        return [address.metalake]
    names = [address.catalog or ""]
    if kind != Kind.CATALOG:
        names.append(logical(address.schema or ""))
    if kind not in CONTAINERS:
        names.append(address.leaf or "")
    return names
