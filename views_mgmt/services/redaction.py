"""Redacts findings: a caller sees nothing that depends on objects they may not load.

An engine checks with the rights of the job's user: its result reveals that a source exists, which columns it has, or
that one is missing. So a dialect's finding is shown to those who may load all that it reads, also through other views;
a missing object counts as hidden, except to those who would see every object in its container.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import F

from authz import operations, policy
from authz.actor import Actor
from authz.objects import locate_all
from metalake.hierarchy import HierarchicalSchema
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from views_mgmt.models import ViewFinding, ViewMeta
from views_mgmt.services.dependencies import Names
from views_mgmt.services.lineage import MOST_LEVELS, NamesIn, located_at, reads_noted

Reads = dict[str, set[Names] | None]
"""What a view reads, by case-folded dialect; None if unknown for that dialect."""


def show_to(actor: Actor, metalake: Located, findings: Sequence[ViewFinding]) -> None:
    """Redact these findings in place for the actor; do not save them afterwards."""
    if not findings or policy.permits(actor, operations.ALTER_METALAKE, metalake):
        return
    sight = _Redactor(actor, metalake)
    reads = sight.reads_of(each.view_id for each in findings)
    wanted = {
        each.view_id: [sight.names_in(one, reads.get(each.view_id, {})) for one in each.dialects] for each in findings
    }
    sight.look({name for some in wanted.values() for names in some for name in names or ()})
    for each in findings:
        pairs = list(zip(each.dialects, map(sight.sees, wanted[each.view_id]), strict=True))
        each.dialects = [dialect for dialect, is_seen in pairs if is_seen]
        each.unseen = [dialect["dialect"] for dialect, is_seen in pairs if not is_seen]
        each.is_broken = any(dialect["problems"] or dialect["differences"] for dialect in each.dialects)


class _Redactor:
    """Which tables and views of a metalake an actor may load together with all that is behind them."""

    def __init__(self, actor: Actor, metalake: Located) -> None:
        self._actor, self._metalake, self._names = actor, metalake, NamesIn(metalake.id)
        self._open = dict[Names, Located | None]()  # None: known not to exist
        self._behind = dict[int, set[Names] | None]()  # what the views among these read, None if unknown
        self._closed = set[int]()

    def reads_of(self, views: Iterable[int]) -> dict[int, Reads]:
        """What each of the views reads, if its current version was analysed."""
        metas = ViewMeta.objects.filter(pk__in=set(views), read_version=F("current_version"))
        reads: dict[int, Reads] = {
            pk: {dialect: set() if is_all else None for dialect, is_all in (dialects or {}).items()}
            for pk, dialects in metas.values_list("pk", "dialects_read")
        }
        for row in reads_noted().filter(view_id__in=reads, is_guess=False):
            for dialect in row.dialects:
                if (names := reads[row.view_id].get(dialect.casefold())) is not None:
                    names.add(self._names.stored(row))
        return reads

    def names_in(self, finding: Mapping[str, Any], reads: Reads) -> set[Names] | None:
        """What a dialect reads, according to the engine if it could analyse it; None if unknown."""
        names = reads.get(finding["dialect"].casefold())
        if names is None or finding["problems"] or not finding["reads"]:
            return names
        return {self._names.folded(_names_of(each)) for each in finding["reads"]}

    def sees(self, names: set[Names] | None) -> bool:
        """Whether the actor may load all of these and all behind the views among them; call `look` first."""
        return names is not None and all(map(self._is_open, names))

    def look(self, names: set[Names]) -> None:
        """Resolve which of these names, and of those behind them, the actor may load."""
        for _ in range(MOST_LEVELS):
            if not names:
                break
            self._open |= self._loadable(names)
            views = {each.id for each in self._open.values() if each and each.kind is Kind.VIEW} - self._behind.keys()
            reads = self.reads_of(views)
            for view in views:
                of = list(reads.get(view, {}).values()) or [None]
                self._behind[view] = None if None in of else {name for names in of for name in names or ()}
            names = {name for view in views for name in self._behind[view] or ()}
        while closed := {id for id, some in self._behind.items() if id not in self._closed and not self.sees(some)}:
            self._closed |= closed

    def _is_open(self, name: Names) -> bool:
        target = self._open.get(name)
        if target is None or target.kind is not Kind.VIEW:
            return name in self._open
        return target.id in self._behind and target.id not in self._closed

    def _loadable(self, names: set[Names]) -> dict[Names, Located | None]:
        located = located_at(self._metalake, names)
        loadable: dict[Names, Located | None] = {
            name: each
            for name, each in located.items()
            if policy.permits(self._actor, operations.load_of(each.kind), each)
        }
        missing = names - located.keys()
        schemas = {
            name[:2]: Address(
                metalake=self._metalake.name,
                catalog=name[0],
                schema=HierarchicalSchema.from_physical(name[1]).segments,
            )
            for name in missing
        }
        containers = locate_all(self._metalake, {*schemas.values(), *(each.of_catalog() for each in schemas.values())})
        nearest = {key: containers.get(each) or containers.get(each.of_catalog()) for key, each in schemas.items()}
        return loadable | {name: None for name in missing if self._sees_all_in(nearest[name[:2]])}

    def _sees_all_in(self, container: Located | None) -> bool:
        """Whether the actor could see any table or view that a schema or catalog may contain."""
        if container is None or container.kind is not Kind.SCHEMA:
            return container is not None and policy.permits(self._actor, operations.ALTER_CATALOG, container)
        kinds = (Kind.TABLE, Kind.VIEW)
        return all(policy.shows_leaves(self._actor, container, each, to_load=True).is_all for each in kinds)


def _names_of(read: Mapping[str, str]) -> Names:
    return read["catalog"], HierarchicalSchema(tuple(read["schemaName"].split("."))).physical, read["name"]
