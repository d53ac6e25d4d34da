"""The rows and mirrors of outside schemas, and the rows of their ancestors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from authz.actor import SERVER, SYSTEM, Actor, system_actor
from authz.transactions import write
from catalogs.models import Mirror, Schema
from metalake.errors import Invalid
from metalake.events import Event, event_of, record, stands
from metalake.full_names import dotted
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable
from outside.mirror import (
    A_WRITE_HAS_IT,
    NO_NAME,
    Tally,
    changed,
    is_another,
    owner_of,
    provider_levels,
    require_there,
    store_answer,
    take_over,
)
from outside.stale_names import buried_schemas, reserved_schemas, written_schemas
from outside.stale_names import wire_name as wire_name
from outside.tombstones import remove_dropped
from providers.base import Provider
from providers.remote_objects import Remote


def import_schemas(
    catalog: Located, provider: Provider, remotes: Sequence[Remote], asked_at: datetime, *, stamp: bool = False
) -> Tally:
    """As `mirror.import_leaves`, for schemas; missing ancestors get rows, too, owned by the catalog's owner.

    If two names there map to the same path here, the row stays with the one imported first.
    """

    def act(actor: Actor) -> Tally:
        meeting = _Meeting(catalog, provider, remotes, asked_at, stamp)
        for path, remote in meeting.wanted:
            meeting.discover(path, remote)
        record(*meeting.events)
        return meeting.tally

    return write(system_actor(), act, holds=None, kind=Kind.SCHEMA) if remotes else Tally()


class _Meeting:
    """The import of schemas, one after the other, in a transaction."""

    def __init__(
        self, catalog: Located, provider: Provider, remotes: Sequence[Remote], asked_at: datetime, stamp: bool
    ) -> None:
        self.catalog, self.provider, self.asked_at, self.stamp = catalog, provider, asked_at, stamp
        self.tally, self.events = Tally(seen=len(remotes)), list[Event]()
        self.wanted = _named(catalog, provider, remotes, self.tally)
        rows = Schema.objects.filter(in_catalog_id=catalog.id, physical_name__in=_with_ancestors(self.wanted))
        self.rows = {row.physical_name: row for row in rows}
        mirrors = Mirror.objects.filter(pk__in=[row.pk for row in self.rows.values()]).select_related("securable")
        self.mirrors = {mirror.pk: mirror for mirror in mirrors}
        self.reserved = reserved_schemas(catalog)
        self.written, self.buried = written_schemas(catalog, asked_at), buried_schemas(catalog, asked_at)

    def discover(self, path: HierarchicalSchema, remote: Remote) -> None:
        row = self.rows.get(path.physical)
        mirror = self.mirrors.get(row.pk) if row else None
        if mirror is not None and mirror.taken_at > self.asked_at:
            return
        if reason := self._reason_to_skip(path, remote, mirror):
            self.tally.skip(self.catalog, path.logical(), reason)
            return
        if mirror is not None and row is not None and is_another(mirror.identity, remote):
            row, mirror = self._remove_dropped(path, row), None
        if row is None:
            row = self._insert(path)
        self._update(row, mirror, remote)

    def _reason_to_skip(self, path: HierarchicalSchema, remote: Remote, mirror: Mirror | None) -> str | None:
        if mirror is not None and mirror.wire_name != remote.name:
            return "another has its path"
        full_name = dotted([self.catalog.catalog.name, path.logical()])
        is_moving = remote.name in self.written or full_name in self.buried or self._is_reserved(path)
        return A_WRITE_HAS_IT if is_moving else None

    def _is_reserved(self, path: HierarchicalSchema) -> bool:
        """Whether a write has reserved the schema or an ancestor: a chain of new schemas appears only as a whole."""
        for level in path.scopes:
            above = level.parent
            if above is not None and above.physical not in self.rows:
                continue
            scope = self.catalog.id if above is None else self.rows[above.physical].pk
            if (scope, level.leaf) in self.reserved:
                return True
        return False

    def _remove_dropped(self, path: HierarchicalSchema, row: Schema) -> Schema | None:
        """Remove a schema whose name another one has now; its row if that stays as a parent of others, else None."""
        remove_dropped(row.pk, steps_stay=self.provider.names.nests_here)
        self.tally.dropped += 1
        if Schema.objects.filter(pk=row.pk).exists():
            return row
        del self.rows[path.physical]
        return None

    def _insert(self, path: HierarchicalSchema) -> Schema:
        made = _insert_schemas(self.catalog, self.rows, path)
        self.events += [_discovery(self.catalog, each) for each in made]
        self.tally.created += len(made)
        return made[-1]

    def _update(self, row: Schema, mirror: Mirror | None, remote: Remote) -> None:
        if mirror is None:
            self.mirrors[row.pk] = store_answer(row.pk, self.catalog.id, remote.name, remote, self.asked_at)
        elif mirror.version != remote.version:
            take_over(mirror, remote, self.asked_at)
            mirror.save(update_fields=["identity", "version", "definition", "taken_at"])
            self.events.append(changed(mirror, self.catalog))
            self.tally.changed += 1
        elif self.stamp:
            Mirror.objects.filter(pk=mirror.pk).update(taken_at=self.asked_at)


def _named(
    catalog: Located, provider: Provider, remotes: Iterable[Remote], tally: Tally
) -> list[tuple[HierarchicalSchema, Remote]]:
    """Each schema with its path here, parents first; names that cannot be paths are skipped."""
    named = []
    for remote in remotes:
        try:
            named.append((provider.names.path_of(provider_levels(remote)), remote))
        except Invalid:
            tally.skip(catalog, remote.name, NO_NAME)
    return sorted(named, key=lambda each: len(each[0].segments))


def _with_ancestors(wanted: list[tuple[HierarchicalSchema, Remote]]) -> list[str]:
    return list({scope.physical for path, _ in wanted for scope in path.scopes})


def _insert_schemas(catalog: Located, rows: dict[str, Schema], path: HierarchicalSchema) -> list[Schema]:
    require_there(catalog)
    made: list[Schema] = []
    above: Securable | None = None
    for level in [*path.ancestors, path]:
        there = rows.get(level.physical)
        if there is None:
            there = _schema_row(catalog, above, level)
            rows[level.physical] = there
            made.append(there)
        above = there
    return made


def _schema_row(catalog: Located, above: Securable | None, path: HierarchicalSchema) -> Schema:
    row = Schema.made(Kind.SCHEMA, path.leaf, above or catalog, creator=SYSTEM, **owner_of(catalog))
    row.in_catalog_id, row.physical_name = catalog.id, path.physical
    row.save(force_insert=True)
    return row


def _discovery(catalog: Located, row: Schema) -> Event:
    full_name = [catalog.catalog.name, row.path.logical()]
    facts = [stands(row)]
    return event_of(SERVER, "schema.found_outside", Kind.SCHEMA, row.id, full_name, catalog.metalake.id, facts)
