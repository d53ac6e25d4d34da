"""Records what each view's SQL reads, asynchronously: analysing SQL takes too long for the write's transaction.

Views queue per author and metalake, and the queues are served round-robin: a view that times out delays only its own
queue, and is retried after the others in it.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from authz.objects import by_ids
from formats.native.view_definition import Representation
from formats.sql.results import Reading
from metalake.errors import ProviderBusy
from metalake.hierarchy import HierarchicalSchema, split_logical
from metalake.lineage import Address, Located
from views_mgmt import versions
from views_mgmt.models import ViewMeta, ViewRead, ViewVersion
from views_mgmt.services.source_columns import Columns, columns_at
from views_mgmt.services.sources import addresses_of
from views_mgmt.sql import process
from views_mgmt.sql.process import Question

log = logging.getLogger(__name__)

BATCH = 50  # views analysed at once
LONGEST_ROUND = 10.0  # seconds after which a round starts no further queue
MOST_READS = 1000  # ViewRead rows per view
LONGEST_NAME, LONGEST_SCHEMA = 255, 1024

Names = tuple[str, str, str]
"""A catalog, a schema's physical name, and a name in it."""


class Dialect(NamedTuple):
    """A representation with its analysis."""

    of: Representation
    reading: Reading


Dialects = list[Dialect]


def read_new_versions() -> None:
    """Analyse pending versions, one batch per queue; the rest is left to the next round."""
    began = time.monotonic()
    for metalake, author in _lines():
        if time.monotonic() - began > LONGEST_ROUND:
            return
        try:
            _take_turn(_unread().filter(metalake_id=metalake, audit_info__creator=author))
        except ProviderBusy:
            return
        except Exception:
            log.exception("views of metalake %s were not read; they are in the next round", metalake)


def _unread() -> QuerySet[ViewVersion]:
    return versions.present().exclude(view__read_version=F("version"))


def _lines() -> list[tuple[int, str]]:
    """The metalake and author of each queue, those with the fewest slow views first, otherwise in random order."""
    slow = Count("pk", filter=Q(view__slow_version=F("version")))
    lines = list(_unread().values_list("metalake_id", "audit_info__creator").annotate(slow=slow))
    random.shuffle(lines)
    return [(metalake, author) for metalake, author, _ in sorted(lines, key=lambda line: line[2])]


def _take_turn(line: QuerySet[ViewVersion]) -> None:
    """Analyse the oldest views of a queue; once only slow ones are left, one of them with the whole time to itself.

    A view that times out is marked slow, as is the one with the shortest query if there was room for none; a slow one
    that fails again is given up. Raises ProviderBusy.
    """
    rows = list(line.exclude(view__slow_version=F("version")).order_by("view_id")[:BATCH])
    rows = rows or list(line.order_by("view_id")[:1])
    views = by_ids(row.view_id for row in rows)
    rows = [row for row in rows if row.view_id in views]
    if not rows:
        return
    read = _read(rows)
    whole = [row for row in rows if all(process.was_read(each.reading) for each in read[row.view_id])]
    late = [row for row in rows if any(process.took_too_long(each.reading) for each in read[row.view_id])]
    if not whole and not late:
        late = [min(rows, key=lambda row: _shortest_unread(read[row.view_id]))]
    given_up = [row for row in late if row.view.slow_version == row.version]
    slow = [row.view_id for row in late if row not in given_up]
    ViewMeta.objects.filter(pk__in=slow).update(slow_version=F("current_version"))
    done = {row.view_id: read[row.view_id] for row in (*whole, *given_up)}
    columns = columns_at(next(iter(views.values())).top, list(_of_stars(views, done)), process.deadline())
    for row in (*whole, *given_up):
        _store(row, _reads(views[row.view_id], done[row.view_id], columns), read[row.view_id])


def _read(rows: Sequence[ViewVersion]) -> dict[int, Dialects]:
    """The analysed dialects of each view, by view id. Raises ProviderBusy."""
    all_of_them = [(row.view_id, each) for row in rows for each in row.definition.representations]
    asked = [Question(each.sql, each.dialect, each.default_catalog, each.default_schema) for _, each in all_of_them]
    read: dict[int, Dialects] = {row.view_id: [] for row in rows}
    for (view_id, each), reading in zip(all_of_them, process.readings(asked, by=None), strict=True):
        read[view_id].append(Dialect(each, reading))
    return read


def _of_stars(views: Mapping[int, Located], read: Mapping[int, Dialects]) -> dict[Address, None]:
    """The possible addresses of sources from which views `SELECT *`."""
    return {
        address: None
        for view_id, dialects in read.items()
        for each in dialects
        for star in each.reading.stars
        for address in addresses_of(views[view_id], (each.reading.sources or ())[star.source], each.of)
    }


def _shortest_unread(dialects: Dialects) -> int:
    return min(len(each.of.sql) for each in dialects if not process.was_read(each.reading))


def key_of(names: Iterable[str]) -> str:
    """The SHA-256 hex digest of case-folded names."""
    return hashlib.sha256("\x02".join(names).casefold().encode()).hexdigest()


def key_within(catalog_id: int, names: Names) -> str:
    """The same for names in the reading view's own catalog, independent of the catalog's name."""
    return key_of((f"\x00{catalog_id}", *names[1:]))


def _store(row: ViewVersion, reads: Sequence[ViewRead], dialects: Dialects) -> None:
    """Replace a view's ViewRead rows, unless the view has changed meanwhile."""
    is_cut = len(reads) >= MOST_READS
    all_of_it = {
        each.of.key: not (is_cut or each.reading.sources is None or each.reading.reads_more) for each in dialects
    }
    with transaction.atomic():
        now = ViewMeta.objects.filter(pk=row.view_id, current_version=row.version)
        if now.update(read_version=row.version, dialects_read=all_of_it):
            ViewRead.objects.filter(view_id=row.view_id).delete()
            ViewRead.objects.bulk_create(reads)


def _reads(view: Located, dialects: Dialects, columns: Mapping[Address, Columns]) -> list[ViewRead]:
    """A row for each name that any dialect reads."""
    rows = dict[Names, ViewRead]()
    for dialect in dialects:
        for place, source in enumerate(dialect.reading.sources or ()):
            for guess, address in enumerate(addresses_of(view, source, dialect.of)):
                names = _storable(view, address)
                if names is None or (names not in rows and len(rows) >= MOST_READS):
                    continue
                row = rows.setdefault(names, _row(view, names))
                row.is_guess = row.is_guess and guess > 0
                row.dialects = [*dict.fromkeys([*row.dialects, dialect.of.dialect])]
                row.columns = [*row.columns, *_columns(dialect.reading, place, columns.get(address))]
    for row in rows.values():
        row.columns = [*map(list, dict.fromkeys(map(tuple, row.columns)))]
    return list(rows.values())


def _row(view: Located, names: Names) -> ViewRead:
    """A row without dialects yet."""
    catalog, schema, name = names
    row = ViewRead(view_id=view.id, metalake_id=view.metalake.id, catalog=catalog, schema=schema, name=name)
    row.key = key_within(view.catalog.id, names) if catalog == ViewRead.OWN else key_of(names)
    row.dialects, row.columns, row.is_guess = [], [], True
    return row


def _storable(view: Located, address: Address) -> Names | None:
    """The names as stored in rows; None for names that no object can have."""
    schema = address.schema or ""
    levels = split_logical(schema) if isinstance(schema, str) else schema
    catalog = ViewRead.OWN if address.catalog == view.catalog.name else address.catalog or ""
    names = catalog, HierarchicalSchema(tuple(levels)).physical, address.leaf or ""
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        return None
    is_long = max(len(names[0]), len(names[2])) > LONGEST_NAME or len(names[1]) > LONGEST_SCHEMA
    return None if is_long or "\x00" in "".join(names) else names


def _columns(reading: Reading, place: int, all_of: Columns | None) -> list[list[Any]]:
    """Pairs of view columns and this source's columns that they derive from, as in `ViewRead.columns`.

    A `*` is expanded from this source only: one source's columns must reveal nothing about another's.
    """
    pairs: list[list[Any]] = [
        [column.name, made.name]
        for column in reading.columns or reading.beside
        for made in column.made_of or ()
        if column.name is not None and made.source == place and "\x00" not in column.name + made.name
    ]
    for star in reading.stars:
        if all_of is not None and star.source == place:
            pairs += [[name, name, all_of.of] for name in all_of.names if name.casefold() not in star.but]
    return pairs
