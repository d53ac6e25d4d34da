"""The dialect workbench: what a view's SQL reads and returns in each dialect, and its translation into another.

Advisory only: nothing is stored or changed. Source: docs/decisions/reading-sql.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from authz.actor import Actor
from catalogs.services import tables
from formats.native import view_definition
from formats.native.view_definition import SPARK, Representation, ViewDefinition
from formats.sql import comparing
from formats.sql.comparing import Declared, Difference
from formats.sql.results import Problem, Reading, Source, Translation
from formats.sql.results import quote as quoted
from metalake.errors import Forbidden, Invalid, MetalakeError, NotFound
from metalake.kinds import Kind
from metalake.lineage import Address, Located
from metalake.wire import quote
from views_mgmt.services import lineage
from views_mgmt.services.lineage import Link
from views_mgmt.services.sources import addresses_of
from views_mgmt.services.views import load_view, store_of
from views_mgmt.sql import process
from views_mgmt.sql.process import Question, SqlCaller
from views_mgmt.stores import ViewRecord

SPARK_QUERY_COLUMNS = "spark.query-column-names"  # a property of Iceberg views; Spark writes it
MOST_SOURCES = 100  # tables and views looked up per check

UNSEEN = "It does not exist, or you may not load it."
NOT_LOOKED_UP = "It was not looked up: the SQL reads too many tables and views, or no time was left."

Json = dict[str, Any]


@dataclass(frozen=True)
class Read:
    """A table or view that SQL reads, resolved, or the reason why it is not.

    `columns` are in the native API's format, None if unknown.
    """

    source: Source
    target: Located | None = None
    columns: tuple[Json, ...] | None = None
    reason: str | None = None


@dataclass(frozen=True)
class DialectCheck:
    """What one dialect reads and returns; `reads` are in the order of the reading's sources.

    `own` is what the view's own system says of it, where it does.
    """

    representation: Representation
    reading: Reading
    reads: tuple[Read, ...]
    differences: tuple[Difference, ...]
    own: Json | None = None

    @property
    def lacks(self) -> bool:
        """Whether the caller cannot see something that it reads."""
        return any(read.target is None for read in self.reads)


@dataclass(frozen=True)
class Suggestion:
    """A representation translated from one of the view's, with what could not be translated."""

    representation: Representation
    source_dialect: str
    translation: Translation


def check(actor: Actor, address: Address, draft: Representation | None = None) -> list[DialectCheck]:
    """Check each dialect of a view, with `draft` replacing its dialect's representation.

    Takes at most METALAKE_SQL_TIMEOUT plus the time of outside systems. Raises TooManyRequests if the actor already
    has SQL being analysed, ProviderBusy if there is no free slot.
    """
    record = load_view(actor, address)
    by = _asker(actor, record)
    definition = record.definition if draft is None else _with(record.definition, draft)
    until = process.deadline()
    asked = [Question(each.sql, *_names_of(each)) for each in definition.representations]
    first = process.readings(asked, by, until)
    reads = _look_up(actor, record.view, definition, first, until)
    known = {key: _types(read.columns) for key, read in reads.items() if read.columns is not None}
    readings = _again(asked, by, first, known, until) if known else first
    by_dialect = {each.dialect: reading for each, reading in zip(definition.representations, readings, strict=True)}
    differences = comparing.differences(_declared(definition), by_dialect, _renamed(record, definition))
    readers = _readers_of(actor, record.view, reads.values())
    own = store_of(record.view).check(actor, record.view) if draft is None else None

    def checked(each: Representation) -> DialectCheck:
        reading = by_dialect[each.dialect]
        read = tuple(reads[source, each.key] for source in reading.sources or ())
        circles = _circles(record.view, read, [link for link in readers if link.is_in(each.key)])
        return DialectCheck(
            each,
            replace(reading, problems=(*reading.problems, *circles)),
            read,
            tuple(difference for difference in differences if difference.dialect == each.dialect),
            own,
        )

    return [checked(each) for each in definition.representations]


def suggest(actor: Actor, address: Address, dialect: str, source_dialect: str | None = None) -> Suggestion:
    """Translate a view into a dialect, from `source_dialect`, by default the first other one it has.

    Raises Invalid if the view lacks the source dialect, TooManyRequests and ProviderBusy as `check`.
    """
    record = load_view(actor, address)
    definition = record.definition
    if not dialect.strip():
        raise Invalid("dialect: must be a word, such as trino", kind=Kind.VIEW)
    others = [each for each in definition.representations if each.key != dialect.casefold()]
    source = definition.in_dialect(source_dialect) if source_dialect is not None else next(iter(others), None)
    if source is None:
        if not definition.representations:
            raise Invalid("source: the view's SQL is not known here", kind=Kind.VIEW)
        wanted = "other dialect" if source_dialect is None else f"dialect {quote(source_dialect)}"
        raise Invalid(f"source: the view has no {wanted}; it has {', '.join(definition.dialects)}", kind=Kind.VIEW)
    translation = process.translation(source.sql, source.dialect, dialect, _asker(actor, record))
    return Suggestion(replace(source, dialect=dialect, sql=translation.sql or ""), source.dialect, translation)


def _asker(actor: Actor, record: ViewRecord) -> SqlCaller:
    return SqlCaller(actor.name, record.view.metalake.id)


def _readers_of(actor: Actor, view: Located, reads: Iterable[Read]) -> list[Link]:
    """The views that read the view, to detect cycles; none if it reads no view itself."""
    is_close = any(read.target is not None and read.target.kind is Kind.VIEW for read in reads)
    return lineage.readers_of(actor, view.address) if is_close else []


def _circles(view: Located, reads: Sequence[Read], readers: Sequence[Link]) -> Iterator[Problem]:
    """A problem for each cycle: the view reads itself or one of its readers, which come level by level."""
    reached = {view.id}
    for link in readers:
        if link.target is not None and link.target.id in reached:
            reached.add(link.view.id)
    for target in {read.target.id: read.target for read in reads if read.target is not None}.values():
        if target.id == view.id:
            yield Problem("It reads the view itself, which no engine runs.")
        elif target.id in reached:
            yield Problem(f"It reads {quoted('.'.join(target.full_name))}, which reads this view: no engine runs that.")


def _with(definition: ViewDefinition, draft: Representation) -> ViewDefinition:
    """The definition with the draft added, or replacing its dialect's query. Raises Invalid, TooLarge."""
    put = view_definition.updated if definition.in_dialect(draft.dialect) else view_definition.added
    wanted = put(definition, draft)
    view_definition.check(wanted)
    return wanted


def _names_of(each: Representation) -> tuple[str, str | None, str | None]:
    return each.dialect, each.default_catalog, each.default_schema


def _again(
    asked: Sequence[Question],
    by: SqlCaller,
    first: Sequence[Reading],
    known: Mapping[tuple[Source, str], Json],
    until: float,
) -> list[Reading]:
    """Second pass with the columns of the sources; falls back to the first readings if no time is left."""
    again = [number for number, reading in enumerate(first) if reading.sources]
    questions = [
        replace(
            asked[number],
            columns_of={
                source: columns
                for (source, dialect), columns in known.items()
                if dialect == asked[number].dialect.casefold()
            },
        )
        for number in again
    ]
    if time.monotonic() >= until:
        return list(first)
    second = dict(zip(again, process.readings(questions, by, until), strict=True))
    return [
        second[number] if number in second and second[number].sources is not None else reading
        for number, reading in enumerate(first)
    ]


def _renamed(record: ViewRecord, definition: ViewDefinition) -> dict[str, Sequence[str]]:
    """The column names of the Spark SQL, as Spark recorded them with the view; none if the SQL has changed since."""
    noted = record.definition.properties.get(SPARK_QUERY_COLUMNS)
    names = record.query_columns or (noted.split(",") if noted else ())
    now, then = definition.in_dialect(SPARK), record.definition.in_dialect(SPARK)
    return {now.dialect: names} if now is not None and then is not None and now.sql == then.sql else {}


def _declared(definition: ViewDefinition) -> list[Declared]:
    return [Declared(column["name"], column.get("type")) for column in definition.columns]


def _types(columns: Sequence[Json] | None) -> Json:
    return {column["name"]: column.get("type") for column in columns or ()}


def _look_up(
    actor: Actor, view: Located, definition: ViewDefinition, readings: Sequence[Reading], until: float
) -> dict[tuple[Source, str], Read]:
    """Resolve each source of each dialect, once for all dialects that address it alike."""
    reads = dict[tuple[Source, str], Read]()
    known = dict[tuple[Address, ...], Read]()
    for each, reading in zip(definition.representations, readings, strict=True):
        for source in reading.sources or ():
            addresses = tuple(addresses_of(view, source, each))
            if addresses not in known:
                is_too_many = len(known) >= MOST_SOURCES or time.monotonic() >= until
                known[addresses] = (
                    Read(source, reason=NOT_LOOKED_UP) if is_too_many else _load(actor, source, addresses)
                )
            reads[source, each.key] = replace(known[addresses], source=source)
    return reads


def _load(actor: Actor, source: Source, addresses: Sequence[Address]) -> Read:
    """The first object among these addresses that the actor may load, with its columns."""
    for address in addresses:
        try:
            return _loaded(actor, source, address)
        except (NotFound, Forbidden, Invalid):  # hidden looks like missing
            continue
    return Read(source, reason=UNSEEN)


def _loaded(actor: Actor, source: Source, address: Address) -> Read:
    """A table or view, which share a name space, with its columns. Raises NotFound, Forbidden, Invalid."""
    try:
        try:
            table = tables.load_table(actor, address)
        except NotFound:
            record = load_view(actor, replace(address, leaf_kind=Kind.VIEW))
            return Read(source, record.view, tuple(record.definition.columns) or None)
        return Read(source, table.published, tuple(tables.native_parts(table).get("columns") or ()) or None)
    except (NotFound, Forbidden, Invalid):
        raise
    except MetalakeError as failure:
        return Read(source, reason=failure.message)
