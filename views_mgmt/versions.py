"""View versions: one row per state that Metalake wrote or discovered, whatever the store (docs/views.md).

All functions run in the caller's transaction and check no permissions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db.models import F, JSONField, Model, QuerySet
from django.utils import timezone

from formats.native.view_definition import ViewDefinition
from metalake.blocking import may_block
from metalake.errors import NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable
from metalake.rest.replies import moment_text
from metalake.statements import fetch
from views_mgmt.models import ViewMeta, ViewVersion

M = TypeVar("M", bound=Model)
SMALL = 32 * 1024  # characters up to which a version is cached


class Form(NamedTuple):
    """A view's engine and storage format, as in `stores.ViewRecord`."""

    engine: str
    format: str


class State(NamedTuple):
    """A state of a view, and what identifies it in its store (`ViewVersion.stored_as`)."""

    definition: ViewDefinition
    stored_as: Mapping[str, Any]


OURS = Form("metalake", "metalake")


class New(NamedTuple):
    """The new state of a view."""

    view: Located
    definition: ViewDefinition
    form: Form = OURS
    stored_as: Mapping[str, Any] = MappingProxyType({})


def add(
    view: Located,
    definition: ViewDefinition,
    by: str,
    form: Form = OURS,
    stored_as: Mapping[str, Any] | None = None,
) -> int:
    """Add a version with a view's new state; returns its number, 1 for a new view.

    The caller holds the view's lock. Name and schema are those of `view`, so a rename adds a version.
    """
    return add_all([New(view, definition, form, stored_as or {})], by)[0]


def add_all(states: Sequence[New], by: str) -> list[int]:
    """As `add`, for several views in the same number of statements."""
    at = timezone.now()
    known = locked(state.view.id for state in states)
    metas = [_advanced(known.get(state.view.id), state, by, at) for state in states]
    ViewMeta.objects.bulk_create([meta for meta in metas if meta.pk not in known])
    ViewMeta.objects.bulk_update([meta for meta in metas if meta.pk in known], _OF_A_STATE)
    _comment([state for state in states if state.view.id in known], last_modifier=by, last_modified_time=at)
    _comment([state for state in states if state.view.id not in known and state.definition.comment])
    rows = [
        ViewVersion(
            view=meta,
            version=meta.latest_version,
            stored_as=dict(state.stored_as),
            audit_info={"creator": by, "createTime": moment_text(at)},
            **place_of(state.view),
            **ViewVersion.fields_of(state.definition),
        )
        for meta, state in zip(metas, states, strict=True)
    ]
    ViewVersion.objects.bulk_create(rows)
    return [meta.latest_version for meta in metas]


def locked(ids: Iterable[int]) -> dict[int, ViewMeta]:
    """The existing rows of these views, by id, SELECT FOR UPDATE."""
    return {meta.pk: meta for meta in ViewMeta.objects.select_for_update().filter(pk__in=list(ids)).order_by("pk")}


_OF_A_STATE = (
    *("view_name", "metalake_id", "catalog_id", "schema_id", "audit_info"),
    *("engine", "format", "broken", "current_version", "latest_version"),
)


def _advanced(meta: ViewMeta | None, state: New, by: str, at: datetime) -> ViewMeta:
    """A view's row with its version number advanced, not yet saved."""
    now = moment_text(at)
    if meta is None:
        meta = ViewMeta(pk=state.view.id, audit_info={"creator": by, "createTime": now}, latest_version=1)
    else:
        meta.audit_info |= {"lastModifier": by, "lastModifiedTime": now}
        meta.latest_version += 1
    has = {**place_of(state.view), **state.form._asdict(), "broken": "", "current_version": meta.latest_version}
    for name, value in (has | {"view_name": state.view.name}).items():
        setattr(meta, name, value)
    return meta


def _comment(states: Sequence[New], **changed: Any) -> None:
    """Copy the views' comments into their securable rows, which tree listings show."""
    rows = [Securable(pk=state.view.id, comment=state.definition.comment, **changed) for state in states]
    Securable.objects.bulk_update(rows, ["comment", *changed])


def add_past(view: Located, states: Sequence[State], by: str, form: Form) -> None:
    """Import the history of a discovered view: its earlier states, oldest first, and its current one last.

    The view has no version yet, and the caller holds its schema's lock.
    """
    now = moment_text(timezone.now())
    audit = {"creator": by, "createTime": now}
    place = place_of(view)
    numbers = {"current_version": len(states), "latest_version": len(states)}
    has = {"view_name": view.name, **form._asdict(), "broken": "", **numbers, **place}
    new = has | {"audit_info": audit}
    meta, _ = ViewMeta.objects.update_or_create(view_id=view.id, defaults=has, create_defaults=new)
    rows = [
        ViewVersion(
            view=meta,
            version=number,
            stored_as=stored_as,
            audit_info=audit,
            **place,
            **ViewVersion.fields_of(definition),
        )
        for number, (definition, stored_as) in enumerate(states, 1)
    ]
    ViewVersion.objects.bulk_create(rows, batch_size=100)
    Securable.objects.filter(pk=view.id).update(comment=states[-1].definition.comment)


def place_of(view: Located) -> dict[str, int]:
    """The parent id columns of a view's row and versions."""
    return {"metalake_id": view.metalake.id, "catalog_id": view.catalog.id, "schema_id": view.above().id}


def never_read(ids: QuerySet) -> list[ViewVersion]:
    """The views among these that were never read, each as an unsaved, empty version 0."""
    nothing = ViewVersion.fields_of(ViewDefinition(representations=()))
    metas = ViewMeta.objects.filter(pk__in=ids, deleted_at=0, current_version=0)
    return [ViewVersion(view=meta, version=0, **nothing) for meta in metas]


def meta_of(view: Located) -> ViewMeta:
    """The view's row, with its audit and version number. Raises NotFound."""
    rows = fetch(_statement(_META), [view.id])
    if not rows:
        raise view.missing()
    return _read(ViewMeta, rows[0])


def definition_of(meta: ViewMeta) -> ViewDefinition:
    """The definition of a view's current version; small ones are cached, since versions are immutable.

    Not for use in a transaction, whose own versions may be rolled back. Raises BeginAgain in a thread for short reads
    on a cache miss.
    """
    try:
        return _small_definition(meta.pk, meta.current_version)
    except _Large as read:
        return read.definition


class _Large(Exception):
    """Raised to keep a large version out of the cache."""

    def __init__(self, definition: ViewDefinition) -> None:
        self.definition = definition


@lru_cache(maxsize=256)
def _small_definition(view_id: int, number: int) -> ViewDefinition:
    may_block()
    (row,) = fetch(_statement(_VERSION), [view_id, number])
    definition = _read(ViewVersion, row).definition
    if sum(len(part) for part in row if isinstance(part, str)) > SMALL:
        raise _Large(definition)
    return definition


def present() -> QuerySet[ViewVersion]:
    """The current version of each existing view."""
    return ViewVersion.objects.select_related("view").filter(view__deleted_at=0, version=F("view__current_version"))


def current(view: Located) -> ViewVersion:
    """The view's current version with its row, in one statement. Raises NotFound."""
    rows = fetch(_statement(_CURRENT), [view.id])
    if not rows:
        raise view.missing()
    width = len(ViewVersion._meta.concrete_fields)
    version = _read(ViewVersion, rows[0][:width])
    version.view = _read(ViewMeta, rows[0][width:])
    return version


_META = "SELECT {meta} FROM view_meta AS meta WHERE meta.view_id = %s AND meta.deleted_at = 0"
_VERSION = "SELECT {version} FROM view_version_info AS version WHERE version.view_id = %s AND version.version = %s"
_CURRENT = (
    "SELECT {version}, {meta} FROM view_version_info AS version JOIN view_meta AS meta "
    "ON meta.view_id = version.view_id AND meta.current_version = version.version "
    "WHERE version.view_id = %s AND meta.deleted_at = 0"
)


@cache
def _statement(text: str) -> str:
    """With all columns filled in; cached, since formatting takes longer than the rest of a load."""
    models: dict[str, type[Model]] = {"version": ViewVersion, "meta": ViewMeta}
    columns = {
        table: ", ".join(f'{table}."{field.column}"' for field in model._meta.concrete_fields)
        for table, model in models.items()
    }
    return text.format(**columns)


def _read(model: type[M], values: Sequence[Any]) -> M:
    """A model instance from a row of all its columns."""
    fields = model._meta.concrete_fields
    parsed = [
        json.loads(value) if isinstance(field, JSONField) and value is not None else value
        for field, value in zip(fields, values, strict=True)
    ]
    return model.from_db(DEFAULT_DB_ALIAS, [field.attname for field in fields], parsed)


def of_view(view: Located) -> QuerySet[ViewVersion]:
    """All versions of a view, latest first."""
    return ViewVersion.objects.filter(view_id=view.id).order_by("-version")


def latest_number(view: Located) -> int:
    """The number of the latest version, 0 for a view that was never read."""
    return of_view(view).values_list("version", flat=True).first() or 0


def is_stored_at(view: Located, location: str) -> bool:
    """Whether the view's current version came from this metadata file."""
    return present().filter(view_id=view.id, **{"stored_as__metadata-location": location}).exists()


def at(view: Located, number: int) -> ViewVersion:
    """One version. Raises NotFound."""
    version = of_view(view).filter(version=number).first()
    if version is None:
        raise NotFound(f"View {'.'.join(view.full_name)} has no version {number}.", kind=Kind.VIEW)
    return version


def forget(securable_ids: QuerySet) -> None:
    """Mark the views among these and their versions as dropped; called before their securables are deleted."""
    now = time.time_ns() // 1_000_000
    ViewVersion.objects.filter(view_id__in=securable_ids, deleted_at=0).update(deleted_at=now)
    ViewMeta.objects.filter(pk__in=securable_ids, deleted_at=0).update(deleted_at=now)
