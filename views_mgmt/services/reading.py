"""Notes what the SQL of each view reads, after the view was written: reading SQL takes too long for its transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F

from authz.objects import by_ids
from formats.native.view_definition import Representation
from formats.sql.results import ColumnsOf, Reading
from metalake.errors import ProviderBusy
from metalake.hierarchy import HierarchicalSchema, split_logical
from metalake.lineage import Address, Located
from views_mgmt import versions
from views_mgmt.models import ViewMeta, ViewRead, ViewVersion
from views_mgmt.services.expanding import columns_of_sources
from views_mgmt.services.sources import addresses_of
from views_mgmt.sql import process
from views_mgmt.sql.process import Question

BATCH = 50  # views that are read at once
MOST_READS = 1000  # rows of one view
LONGEST_NAME, LONGEST_SCHEMA = 255, 1024

Names = tuple[str, str, str]
"""A catalog, a schema's physical name, and a name in it."""


class Dialect(NamedTuple):
    """A representation with what it reads; `is_expanded` if its `*` was, by the columns of what it reads."""

    of: Representation
    reading: Reading
    is_expanded: bool = False


Dialects = list[Dialect]


def read_new_versions() -> None:
    """Read versions that were not read yet, the oldest views first; what is not reached is left to the next round.

    Where no view was read whole, the shortest query had all the time: its view is not tried again, and holds up none.
    """
    rows = list(versions.present().exclude(view__read_version=F("version")).order_by("view_id")[:BATCH])
    views = by_ids(row.view_id for row in rows)
    rows = [row for row in rows if row.view_id in views]
    if not rows:
        return
    try:
        read = _read(rows)
    except ProviderBusy:
        return
    whole = [row for row in rows if all(process.was_read(each.reading) for each in read[row.view_id])]
    _expand(views, {row.view_id: read[row.view_id] for row in whole})
    for row in whole or [min(rows, key=lambda row: _shortest_unread(read[row.view_id]))]:
        _store(row, _reads(views[row.view_id], read[row.view_id]))


def _read(rows: Sequence[ViewVersion]) -> dict[int, Dialects]:
    """The dialects of each view, by its id, with what each reads. Raises ProviderBusy."""
    all_of_them = [(row.view_id, each) for row in rows for each in row.definition.representations]
    asked = [_question(each) for _, each in all_of_them]
    read: dict[int, Dialects] = {row.view_id: [] for row in rows}
    for (view_id, each), reading in zip(all_of_them, process.readings(asked, in_background=True), strict=True):
        read[view_id].append(Dialect(each, reading))
    return read


def _question(each: Representation, columns_of: ColumnsOf | None = None) -> Question:
    return Question(each.sql, each.dialect, each.default_catalog, each.default_schema, columns_of or {})


def _expand(views: Mapping[int, Located], read: Mapping[int, Dialects]) -> None:
    """Read dialects whose `*` was not expanded again, with the columns of what they read that are known here."""
    until = process.deadline()
    open_ones = [
        (view_id, place, each)
        for view_id, dialects in read.items()
        for place, each in enumerate(dialects)
        if each.reading.sources and each.reading.columns is None
    ]
    wanted = [(views[view_id], each.of, each.reading.sources or ()) for view_id, _, each in open_ones]
    known = list(zip(open_ones, columns_of_sources(wanted, until), strict=True))
    known = [(one, columns_of) for one, columns_of in known if columns_of]
    with suppress(ProviderBusy):
        questions = [_question(each.of, columns_of) for (_, _, each), columns_of in known]
        for ((view_id, place, each), _), again in zip(
            known, process.readings(questions, in_background=True), strict=True
        ):
            if again.sources == each.reading.sources and again.columns is not None:
                read[view_id][place] = Dialect(each.of, again, is_expanded=True)


def _shortest_unread(dialects: Dialects) -> int:
    return min(len(each.of.sql) for each in dialects if not process.was_read(each.reading))


def key_of(names: Iterable[str]) -> str:
    """The digest of names in one case."""
    return hashlib.sha256("\x02".join(names).casefold().encode()).hexdigest()


def key_within(catalog_id: int, names: Names) -> str:
    """The same for names in the catalog of the view that reads them, whatever that is called."""
    return key_of((f"\x00{catalog_id}", *names[1:]))


def _store(row: ViewVersion, reads: Sequence[ViewRead]) -> None:
    """Replace what is noted of a view, unless it has changed meanwhile."""
    with transaction.atomic():
        now = ViewMeta.objects.filter(pk=row.view_id, current_version=row.version)
        if now.update(read_version=row.version):
            ViewRead.objects.filter(view_id=row.view_id).delete()
            ViewRead.objects.bulk_create(reads)


def _reads(view: Located, dialects: Dialects) -> list[ViewRead]:
    """A row for each name that one of the dialects reads."""
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
                row.columns = [*row.columns, *(pair for pair in _columns(dialect, place) if pair not in row.columns)]
    return list(rows.values())


def _row(view: Located, names: Names) -> ViewRead:
    """A row without dialects yet."""
    catalog, schema, name = names
    row = ViewRead(view_id=view.id, metalake_id=view.metalake.id, catalog=catalog, schema=schema, name=name)
    row.key = key_within(view.catalog.id, names) if catalog == ViewRead.OWN else key_of(names)
    row.dialects, row.columns, row.is_guess = [], [], True
    return row


def _storable(view: Located, address: Address) -> Names | None:
    """The names as rows have them; None for names that no object can have."""
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


def _columns(dialect: Dialect, place: int) -> list[list[Any]]:
    """Pairs of the view's columns and those of this source that they are made of, with what else `ViewRead` says."""
    more = [True] if dialect.is_expanded else []
    return [
        [column.name, made.name, *more]
        for column in dialect.reading.columns or ()
        for made in column.made_of or ()
        if column.name is not None and made.source == place and "\x00" not in column.name + made.name
    ]
