"""Whether an outside schema is empty and may be dropped: its objects here, and in its own system."""

from __future__ import annotations

from collections.abc import Sequence

from authz.actor import Actor
from catalogs.models import Mirror, Schema
from catalogs.services import places
from metalake.errors import NotEmpty
from metalake.kinds import Kind, Slot
from metalake.lineage import Located
from outside import mirror
from outside.calls import pages
from outside.reads import LOOKS, remove_if_dropped
from providers.base import Provider
from providers.remote_objects import Remote

MOST_COUNTED, SHOWN = 1_000, 20  # hidden tables that a refusal counts and names
FILTERS = "filter (table-type-filter, table-format-filter or list-all-tables)"


def remove_missing_schemas(actor: Actor, schema: Located, provider: Provider) -> None:
    """Remove the schemas inside that are gone. Raises NotEmpty if one exists, there or only here."""
    inside = Schema.objects.filter(parent_id=schema.id)
    mirrors = {row.pk: row for row in Mirror.objects.select_related("securable").filter(pk__in=inside.values("pk"))}
    for pk in inside.values_list("pk", flat=True):
        if pk not in mirrors or not remove_if_dropped(actor, schema, provider, mirrors[pk]):
            raise not_empty(schema)


def tables_gone(actor: Actor, schema: Located, provider: Provider, levels: list[str]) -> list[int]:
    """The ids of table rows, all gone outside, to drop with the schema. Raises NotEmpty if the system has any table.

    A listing may lack tables that were just created, so the newest ones are looked up by name.
    """
    _require_none_there(actor, schema, provider, levels)
    rows = Mirror.objects.filter(securable__parent_id=schema.id, securable__slot=Slot.TABULAR)
    gone = list(rows.order_by("-securable__create_time", "-pk").values_list("pk", flat=True))
    for mirrored in Mirror.objects.select_related("securable").defer("definition").filter(pk__in=gone[:LOOKS]):
        if not remove_if_dropped(actor, schema, provider, mirrored):
            raise not_empty(schema)
    return gone


def _require_none_there(actor: Actor, schema: Located, provider: Provider, levels: list[str]) -> None:
    """Raise NotEmpty if the system has a table or view; those that settings hide are named to the catalog's owner."""
    hidden, tells = list[str](), places.may_choose(actor, schema)
    for page in pages(actor, schema, provider, "list_tables", schema=levels):
        shown = _shown(schema, provider, page)
        if shown or (page and not tells):
            raise not_empty(schema)
        hidden += [each.name for each in page]
        if len(hidden) >= MOST_COUNTED:
            break
    if hidden:
        raise not_empty(schema, _hidden(hidden))


def _shown(schema: Located, provider: Provider, page: Sequence[Remote]) -> list[Remote]:
    """The objects that the settings show, judged by their mirrors where the listing gives only a name."""
    unread = [each.name for each in page if not (each.formats or each.definition)]
    rows = mirror.of_leaves(schema.id, Kind.TABLE).filter(wire_name__in=unread) if unread else ()
    known = {row.wire_name: Remote(row.wire_name, row.definition, formats=row.formats) for row in rows}
    shows = provider.tables.shows
    return [each for each in page if each.kind != Kind.TABLE or shows(known.get(each.name, each))]


def _hidden(names: list[str]) -> str:
    count = f"{len(names):,}{' or more' if len(names) >= MOST_COUNTED else ''} table{'s' * (len(names) > 1)}"
    more = ", and others" if len(names) > SHOWN else ""
    return f" It holds {count} that the catalog's {FILTERS} hides: {', '.join(sorted(names)[:SHOWN])}{more}."


def not_empty(schema: Located, why: str = "") -> NotEmpty:
    return NotEmpty(f"Schema {schema.path.logical()} is not empty.{why}", kind=Kind.SCHEMA)
