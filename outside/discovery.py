"""Import on demand: an outside object gets its row when an actor who may load it or grant on it requests it."""

from __future__ import annotations

from django.utils import timezone

from authz.actor import Actor
from catalogs.services import schema_paths
from catalogs.services.provider_of import provider_at
from catalogs.services.resolution import may_look
from metalake.errors import AlreadyExists, Invalid, NotFound, Unsupported
from metalake.kinds import KINDS, Kind
from metalake.lineage import Located, SchemaName
from outside import mirror, nesting
from outside.calls import levels_of, load_leaf, load_schema
from outside.mirror_schemas import import_schemas
from providers.base import Provider
from providers.remote_objects import Levels
from providers.verbs import VERBS


def import_schema(actor: Actor, catalog: Located, name: SchemaName) -> bool:
    """Look a schema up outside and import it; whether it exists. False for an actor who may not look for it."""
    try:
        path = schema_paths.path_in(catalog, name)
    except (Invalid, Unsupported):
        return False
    if not may_look(actor, catalog, Kind.SCHEMA, path.leaf):
        return False
    provider = provider_at(catalog)
    try:
        places = nesting.spellings(provider, path)
    except (Invalid, Unsupported):
        return False
    for levels in places:
        asked_at = timezone.now()
        try:
            remote = load_schema(actor, catalog, provider, levels)
        except NotFound:
            continue
        import_schemas(catalog, provider, [remote], asked_at)
        return True
    return False


def import_leaf(actor: Actor, schema: Located, kind: Kind, name: str) -> bool:
    """As `import_schema`, for an object in a schema; a table that the catalog's settings hide counts as missing."""
    if not may_look(actor, schema, kind):
        return False
    provider = provider_at(schema)
    name = provider.names.folded(name)
    levels = levels_of(schema)
    if levels is None:
        return False
    asked_at, kinds = timezone.now(), mirror.listed_kinds(schema, kind)
    try:
        remote = load_leaf(actor, schema, provider, kinds[0], levels, name)
    except NotFound:
        return False
    if remote.kind not in kinds or (remote.kind == Kind.TABLE and not provider.tables.shows(remote)):
        return False
    mirror.import_leaves(kind, schema, [remote], asked_at)
    return remote.kind == kind


def require_free_there(actor: Actor, home: Located, provider: Provider, levels: Levels, name: str, kind: Kind) -> None:
    """Raise AlreadyExists if the system has the name of a new object, after making its row for who may look.

    It is asked only where nothing carries markers: there a creation whose answer is lost is recognised by what it made,
    so its name must have been free before.
    """
    if provider.store(VERBS[f"create_{kind}"].store).carries_markers:
        return
    try:
        there = load_leaf(actor, home, provider, mirror.listed_kinds(home, kind)[0], levels, name)
    except NotFound:
        return
    import_leaf(actor, home, Kind(there.kind), name)
    full_name = ".".join((*home.path.segments, name))
    raise AlreadyExists(f"{KINDS[Kind(there.kind)].label} already exists: {full_name}", kind=kind)
