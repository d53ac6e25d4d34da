"""Finding what may only exist in another system yet: it becomes a row when somebody who may see it asks."""

from __future__ import annotations

from django.utils import timezone

from authz import operations, policy
from authz.policy import Actor
from catalogs import lookup
from catalogs.lookup import nearest
from catalogs.services import chains
from metalake.errors import Invalid, NotFound, Unsupported
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Address, Located, Node
from outside import mirror, nesting
from outside.calls import is_external, load, provider_at_external


def find(actor: Actor, ident: Address) -> Located:
    """The object, as `lookup.find` has it; one that is missing here is looked for in its own system.

    That is asked only on behalf of somebody who could load the object if it were there. Not for use in a transaction.
    """
    found = nearest(ident)
    if found is not None and lookup.is_whole(ident, found):
        return found
    if found is None or found.disabled or not is_external(found) or not _meet(actor, found, ident):
        raise lookup.miss(actor, ident, found)
    return lookup.find(actor, ident)


def meet_schema(actor: Actor, ident: Address) -> Located:
    """The schema of an address, looked for in its own system if it is not here. Raises NotFound."""
    return find(actor, ident.of_schema())


def _meet(actor: Actor, found: Located, ident: Address) -> bool:
    """Whether the next thing on the way to the object is there after all."""
    if found.kind == Kind.CATALOG and ident.schema is not None:
        if not _meet_schema(actor, found, ident):
            return False
        schema = nearest(ident)
        return ident.leaf is None or (schema is not None and _meet(actor, schema, ident))
    if found.kind == Kind.SCHEMA and ident.leaf is not None:
        return _meet_table(actor, found, ident.leaf)
    return found.kind not in (Kind.CATALOG, Kind.SCHEMA)


def _meet_schema(actor: Actor, catalog: Located, ident: Address) -> bool:
    try:
        path = chains.path_in(catalog, ident.schema or "")
    except (Invalid, Unsupported):
        return False
    if not policy.permits(actor, operations.LOAD_SCHEMA, _as_if(catalog, Kind.SCHEMA, path)):
        return False
    provider = provider_at_external(catalog)
    try:
        places = nesting.spellings(provider, path)
    except (Invalid, Unsupported):
        return False
    for levels in places:
        asked_at = timezone.now()
        try:
            remote = load(actor, catalog, provider, levels)
        except NotFound:
            continue
        mirror.meet_schemas(catalog, provider, [remote], asked_at)
        return True
    return False


def _meet_table(actor: Actor, schema: Located, name: str) -> bool:
    if not policy.permits(actor, operations.LOAD_TABLE, _as_if(schema, Kind.TABLE)):
        return False
    provider = provider_at_external(schema)
    name = provider.folded(name)
    levels = mirror.levels_at(schema.id)
    if levels is None:
        return False
    asked_at = timezone.now()
    try:
        remote = load(actor, schema, provider, levels, name)
    except NotFound:
        return False
    if remote.kind != Kind.TABLE or not provider.shows(remote):
        return False
    mirror.meet_tables(schema, [remote], asked_at)
    return True


def _as_if(container: Located, kind: Kind, path: HierarchicalSchema | None = None) -> Located:
    """The lineage that an object below would have, owned as what is found outside is: by the catalog's owner."""
    owner = container.catalog
    node = Node(0, kind, path.leaf if path else "", owner.owner_user_id, owner.owner_group_id)
    return container.below(node)
