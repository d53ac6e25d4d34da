"""The versions of views: one row for each state that Metalake wrote or met, whatever the store (docs/views.md).

All functions work in the caller's transaction, and ask no permission.
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
SMALL = 32 * 1024  # characters of a version that is remembered


class Form(NamedTuple):
    """Whose form a view has, and what it is stored as, as in `stores.ViewRecord`."""

    engine: str
    format: str


class State(NamedTuple):
    """A state of a view, and what it is in its own store (`ViewVersion.stored_as`)."""

    definition: ViewDefinition
    stored_as: Mapping[str, Any]


OURS = Form("metalake", "metalake")


class New(NamedTuple):
    """The state that a view has from now on."""

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
    """Store the state that a view has from now on; its number, which is 1 for a new view.

    The caller holds the view's lock. Its name and schema are taken from `view`, so a rename is told by a new version.
    """
    return add_all([New(view, definition, form, stored_as or {})], by)[0]


def add_all(states: Sequence[New], by: str) -> list[int]:
    """As `add`, for several views, in as many statements as for one."""
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
    """The rows of those of these views that have one, by id, for update."""
    return {meta.pk: meta for meta in ViewMeta.objects.select_for_update().filter(pk__in=list(ids)).order_by("pk")}


_OF_A_STATE = (
    *("view_name", "metalake_id", "catalog_id", "schema_id", "audit_info"),
    *("engine", "format", "broken", "current_version", "latest_version"),
)


def _advanced(meta: ViewMeta | None, state: New, by: str, at: datetime) -> ViewMeta:
    """A view's row with one more version, not yet saved."""
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
    """Repeat the views' comments in their own rows, where levels of a tree show them."""
    rows = [Securable(pk=state.view.id, comment=state.definition.comment, **changed) for state in states]
    Securable.objects.bulk_update(rows, ["comment", *changed])


def add_past(view: Located, states: Sequence[State], by: str, form: Form) -> None:
    """Store the states that a view had before Metalake met it, oldest first, and as the last one its present state.

    The view has no version here, and the caller holds its schema's lock.
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
    """The columns that say where a view lies, of its row and its versions."""
    return {"metalake_id": view.metalake.id, "catalog_id": view.catalog.id, "schema_id": view.above().id}


def never_read(ids: QuerySet) -> list[ViewVersion]:
    """Those of these views of which no state was ever read, each as version 0, which has nothing; not stored."""
    nothing = ViewVersion.fields_of(ViewDefinition(representations=()))
    metas = ViewMeta.objects.filter(pk__in=ids, deleted_at=0, current_version=0)
    return [ViewVersion(view=meta, version=0, **nothing) for meta in metas]


def meta_of(view: Located) -> ViewMeta:
    """The view's row, with its audit and the number of its version. Raises NotFound."""
    rows = fetch(_statement(_META), [view.id])
    if not rows:
        raise view.missing()
    return _read(ViewMeta, rows[0])


def definition_of(meta: ViewMeta) -> ViewDefinition:
    """What a view's present version says; a small one is remembered, since versions never change.

    Not for use in a transaction, whose own versions may be taken back. Raises BeginAgain in a thread for short reads if
    it is not remembered.
    """
    try:
        return _small_definition(meta.pk, meta.current_version)
    except _Large as read:
        return read.definition


class _Large(Exception):
    """Raised so that a version is not remembered."""

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
    """The present version of each view that exists."""
    return ViewVersion.objects.select_related("view").filter(view__deleted_at=0, version=F("view__current_version"))


def current(view: Located) -> ViewVersion:
    """The view's present version with its row, in one statement. Raises NotFound."""
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
    """With all columns: to have it made for each load takes longer than all else of the load."""
    models: dict[str, type[Model]] = {"version": ViewVersion, "meta": ViewMeta}
    columns = {
        table: ", ".join(f'{table}."{field.column}"' for field in model._meta.concrete_fields)
        for table, model in models.items()
    }
    return text.format(**columns)


def _read(model: type[M], values: Sequence[Any]) -> M:
    """An object of a model from the values of all its columns."""
    fields = model._meta.concrete_fields
    parsed = [
        json.loads(value) if isinstance(field, JSONField) and value is not None else value
        for field, value in zip(fields, values, strict=True)
    ]
    return model.from_db(DEFAULT_DB_ALIAS, [field.attname for field in fields], parsed)


def of_view(view: Located) -> QuerySet[ViewVersion]:
    """All versions of a view, the latest first."""
    return ViewVersion.objects.filter(view_id=view.id).order_by("-version")


def latest_number(view: Located) -> int:
    """The number of the latest version, 0 for a view that was never read."""
    return of_view(view).values_list("version", flat=True).first() or 0


def is_stored_at(view: Located, location: str) -> bool:
    """Whether the view's present version is what this metadata file says."""
    return present().filter(view_id=view.id, **{"stored_as__metadata-location": location}).exists()


def at(view: Located, number: int) -> ViewVersion:
    """One version. Raises NotFound."""
    version = of_view(view).filter(version=number).first()
    if version is None:
        raise NotFound(f"View {'.'.join(view.full_name)} has no version {number}.", kind=Kind.VIEW)
    return version


def forget(securable_ids: QuerySet) -> None:
    """Mark the views among these as dropped, with their versions; called before their securables are deleted."""
    now = time.time_ns() // 1_000_000
    ViewVersion.objects.filter(view_id__in=securable_ids, deleted_at=0).update(deleted_at=now)
    ViewMeta.objects.filter(pk__in=securable_ids, deleted_at=0).update(deleted_at=now)
