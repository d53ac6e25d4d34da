"""A view as plain data in the native API's terms, and the effect of the native API's updates on it.

Source: the design of logical views; docs/views.md lists what each kind of store supports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from pydantic.alias_generators import to_camel

from metalake.errors import Invalid, TooLarge
from metalake.kinds import Kind
from metalake.wire import quote

TRINO, SPARK, HIVE, FLINK = "trino", "spark", "hive", "flink"
MOST_REPRESENTATIONS = 32
LONGEST_DIALECT = 255  # characters
LARGEST_SQL = 1024 * 1024  # bytes of UTF-8, for each representation

Json = dict[str, Any]


class SecurityMode(StrEnum):
    """Whose rights an engine should run the view's query with; stored and returned, never enforced here."""

    DEFINER = "DEFINER"
    INVOKER = "INVOKER"


@dataclass(frozen=True, kw_only=True)
class Representation:
    """The view's query in one dialect; `default_catalog` and `default_schema` complete the names in its SQL."""

    dialect: str
    sql: str
    default_catalog: str | None = None
    default_schema: str | None = None

    @property
    def key(self) -> str:
        """The dialect for comparison: a view has one representation per dialect, ignoring case."""
        return self.dialect.casefold()


@dataclass(frozen=True, kw_only=True)
class ViewDefinition:
    """A view without its name. `columns` are native JSON.

    `security_mode` is None if the store does not have it, which counts as INVOKER.
    """

    representations: tuple[Representation, ...]
    columns: tuple[Json, ...] = ()
    security_mode: SecurityMode | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_definer(self) -> bool:
        return self.security_mode is SecurityMode.DEFINER

    @property
    def dialects(self) -> list[str]:
        return [each.dialect for each in self.representations]

    @property
    def default_catalog(self) -> str | None:
        """The default catalog if all representations have the same, else None."""
        return _common(each.default_catalog for each in self.representations)

    @property
    def default_schema(self) -> str | None:
        """The default schema if all representations have the same, else None."""
        return _common(each.default_schema for each in self.representations)

    def in_dialect(self, dialect: str) -> Representation | None:
        """The representation in this dialect, ignoring case; None if there is none."""
        return next((each for each in self.representations if each.key == dialect.casefold()), None)

    def differences(self, other: ViewDefinition) -> list[str]:
        """The names of the fields in which two definitions differ."""
        return sorted(name for name, value in vars(self).items() if value != getattr(other, name))

    def as_json(self) -> Json:
        representations = [{**vars(each)} for each in self.representations]
        return {**vars(self), "representations": representations, "columns": list(self.columns)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read back `as_json`."""
        mode = data["security_mode"]
        return cls(
            representations=tuple(Representation(**each) for each in data["representations"]),
            columns=tuple(data["columns"]),
            security_mode=SecurityMode(mode) if mode else None,
            comment=data["comment"],
            properties=dict(data["properties"]),
        )


def _common(values: Iterable[str | None]) -> str | None:
    """The value if all are equal, else None."""
    different = set(values)
    return different.pop() if len(different) == 1 else None


def check(definition: ViewDefinition) -> None:
    """Validate representations and columns. Raises Invalid, and TooLarge for too many or for oversized SQL."""
    representations = definition.representations
    if not representations:
        raise Invalid("representations: a view has at least one", kind=Kind.VIEW)
    if len(representations) > MOST_REPRESENTATIONS:
        given = f"there are {len(representations)}"
        raise TooLarge(f"representations: {given}; a view has at most {MOST_REPRESENTATIONS}", kind=Kind.VIEW)
    for number, each in enumerate(representations):
        _check_representation(f"representations[{number}]", each)
    if again := _first_again(each.key for each in representations):
        raise Invalid(f"representations: there are two in dialect {quote(again)}; a view has one", kind=Kind.VIEW)
    if again := _first_again(column["name"] for column in definition.columns):
        raise Invalid(f"columns: there are two of the name {quote(again)}", kind=Kind.VIEW)


def _check_representation(place: str, each: Representation) -> None:
    if not each.dialect.strip() or each.dialect != each.dialect.strip() or not each.dialect.isprintable():
        raise Invalid(f"{place}.dialect: must be a word without spaces around it, such as spark", kind=Kind.VIEW)
    if len(each.dialect) > LONGEST_DIALECT:
        raise Invalid(f"{place}.dialect: must have at most {LONGEST_DIALECT} characters", kind=Kind.VIEW)
    if not each.sql.strip():
        raise Invalid(f"{place}.sql: must not be blank", kind=Kind.VIEW)
    for name, text in vars(each).items():
        if text is not None and not is_storable(text):
            where = f"{place}.{to_camel(name)}"
            raise Invalid(f"{where}: must be valid Unicode text without NUL characters", kind=Kind.VIEW)
    if (size := len(each.sql.encode())) > LARGEST_SQL:
        raise TooLarge(f"{place}.sql: has {size} bytes; at most {LARGEST_SQL} are allowed", kind=Kind.VIEW)


def is_storable(text: str) -> bool:
    """Whether our database can store a text: PostgreSQL has no NUL characters and no lone surrogates."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _first_again(names: Iterable[str]) -> str | None:
    """The first duplicate name."""
    seen = set[str]()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def added(definition: ViewDefinition, new: Representation) -> ViewDefinition:
    """Add a dialect; defaults fall back to the view's. Raises Invalid if the view has the dialect already."""
    if definition.in_dialect(new.dialect):
        have = f"the view has a representation in dialect {quote(new.dialect)}"
        raise Invalid(f"addRepresentation: {have}; update it instead", kind=Kind.VIEW)
    whole = _completed(new, definition.default_catalog, definition.default_schema)
    return replace(definition, representations=(*definition.representations, whole))


def updated(definition: ViewDefinition, new: Representation) -> ViewDefinition:
    """Replace the query of a dialect; omitted defaults stay. Raises Invalid if the view lacks the dialect."""
    was = _require(definition, "updateRepresentation", new.dialect)
    whole = _completed(new, was.default_catalog, was.default_schema)
    return replace(definition, representations=_without(definition, new.dialect, instead=(whole,)))


def removed(definition: ViewDefinition, dialect: str) -> ViewDefinition:
    """Remove a dialect. Raises Invalid if the view lacks it, and for the last one."""
    _require(definition, "removeRepresentation", dialect)
    if len(definition.representations) == 1:
        last = f"{quote(dialect)} is the view's only dialect"
        raise Invalid(f"removeRepresentation: {last}; add another one first, or drop the view", kind=Kind.VIEW)
    return replace(definition, representations=_without(definition, dialect))


def _completed(new: Representation, catalog: str | None, schema: str | None) -> Representation:
    return replace(new, default_catalog=new.default_catalog or catalog, default_schema=new.default_schema or schema)


def _require(definition: ViewDefinition, change: str, dialect: str) -> Representation:
    there = definition.in_dialect(dialect)
    if there is None:
        has = ", ".join(definition.dialects)
        raise Invalid(f"{change}: the view has no dialect {quote(dialect)}; it has {has}", kind=Kind.VIEW)
    return there


def _without(
    definition: ViewDefinition, dialect: str, instead: Sequence[Representation] = ()
) -> tuple[Representation, ...]:
    """The representations with those of the dialect replaced by `instead`."""
    place = [each.key for each in definition.representations].index(dialect.casefold())
    return (*definition.representations[:place], *instead, *definition.representations[place + 1 :])
