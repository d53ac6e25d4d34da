"""The versions of views: one row for each state that Metalake wrote or met, whatever the store (docs/views.md).

All functions work in the caller's transaction, and ask no permission.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from django.db import connection
from django.db.models import F, JSONField, Model, QuerySet
from django.utils import timezone

from formats.native.view_definition import ViewDefinition
from metalake.errors import NotFound
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Securable
from metalake.rest.replies import moment_text
from views_mgmt.models import ViewMeta, ViewVersion

M = TypeVar("M", bound=Model)


class Form(NamedTuple):
    """Whose form a view has, and what it is stored as, as in `stores.ViewRecord`."""

    engine: str
    format: str


class State(NamedTuple):
    """A state of a view, and what it is in its own store (`ViewVersion.stored_as`)."""

    definition: ViewDefinition
    stored_as: Mapping[str, Any]


OURS = Form("metalake", "metalake")


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
    at = timezone.now()
    now = moment_text(at)
    has = {"engine": form.engine, "format": form.format, "broken": ""}
    place = _place(view)
    known = ViewMeta.objects.filter(pk=view.id)
    if known.update(latest_version=F("latest_version") + 1, view_name=view.name, **has, **place):
        meta = known.get()
        meta.audit_info |= {"lastModifier": by, "lastModifiedTime": now}
        meta.current_version = meta.latest_version
        meta.save(update_fields=["audit_info", "current_version"])
        changed: dict[str, Any] = {"last_modifier": by, "last_modified_time": at}
    else:
        audit = {"creator": by, "createTime": now}
        meta = ViewMeta.objects.create(view_id=view.id, view_name=view.name, audit_info=audit, **has, **place)
        changed = {}
    Securable.objects.filter(pk=view.id).update(comment=definition.comment, **changed)  # which levels of a tree show
    ViewVersion.objects.create(
        view=meta,
        version=meta.latest_version,
        stored_as=dict(stored_as or {}),
        audit_info={"creator": by, "createTime": now},
        **place,
        **ViewVersion.fields_of(definition),
    )
    return meta.latest_version


def add_past(view: Located, states: Sequence[State], by: str, form: Form) -> None:
    """Store the states that a view had before Metalake met it, oldest first, and as the last one its present state.

    The view is new here, and the caller holds its schema's lock.
    """
    now = moment_text(timezone.now())
    audit = {"creator": by, "createTime": now}
    place = _place(view)
    meta = ViewMeta.objects.create(
        view_id=view.id,
        view_name=view.name,
        engine=form.engine,
        format=form.format,
        audit_info=audit,
        current_version=len(states),
        latest_version=len(states),
        **place,
    )
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


def note(
    view: Located, definition: ViewDefinition, by: str, form: Form, stored_as: Mapping[str, Any] | None = None
) -> None:
    """Store the state in which a view was found in its own system, if that is not its present version."""
    meta = ViewMeta.objects.select_for_update().filter(pk=view.id).first()
    present = None if meta is None else of_view(view).filter(version=meta.current_version).first()
    is_renamed = meta is not None and (meta.view_name, meta.schema_id) != (view.name, view.above().id)
    if present is None or present.definition != definition or is_renamed:
        add(view, definition, by, form, stored_as)
        return
    ViewMeta.objects.filter(pk=view.id).update(**form._asdict(), broken="")
    if stored_as and present.stored_as != stored_as:
        of_view(view).filter(pk=present.pk).update(stored_as=dict(stored_as))


def note_unread(view: Located, by: str, form: Form, why: str = "") -> None:
    """Store whose form a view has whose present state was not read; `why`, if it cannot be.

    A view that was never read has no version.
    """
    has = {**form._asdict(), "broken": why}
    if not ViewMeta.objects.filter(pk=view.id).update(**has):
        audit = {"creator": by, "createTime": moment_text(timezone.now())}
        numbers = {"current_version": 0, "latest_version": 0}
        ViewMeta.objects.create(
            view_id=view.id, view_name=view.name, audit_info=audit, **numbers, **has, **_place(view)
        )


def _place(view: Located) -> dict[str, int]:
    return {"metalake_id": view.metalake.id, "catalog_id": view.catalog.id, "schema_id": view.above().id}


def never_read(schema_id: int) -> list[ViewVersion]:
    """The views of a schema of which no state was ever read, each as version 0, which has nothing; not stored."""
    nothing = ViewVersion.fields_of(ViewDefinition(representations=()))
    metas = ViewMeta.objects.filter(schema_id=schema_id, deleted_at=0, current_version=0)
    return [ViewVersion(view=meta, version=0, **nothing) for meta in metas]


def meta_of(view: Located) -> ViewMeta:
    """The view's row, with its audit and the number of its version. Raises NotFound."""
    meta = ViewMeta.objects.filter(pk=view.id, deleted_at=0).first()
    if meta is None:
        raise view.missing()
    return meta


def present() -> QuerySet[ViewVersion]:
    """The present version of each view that exists."""
    return ViewVersion.objects.select_related("view").filter(view__deleted_at=0, version=F("view__current_version"))


def current(view: Located) -> ViewVersion:
    """The view's present version with its row, in one statement. Raises NotFound."""
    with connection.cursor() as cursor:
        cursor.execute(_current_statement(), [view.id])
        row = cursor.fetchone()
    if row is None:
        raise view.missing()
    width = len(ViewVersion._meta.concrete_fields)
    version = _read(ViewVersion, row[:width])
    version.view = _read(ViewMeta, row[width:])
    return version


@cache
def _current_statement() -> str:
    """Written once: to have it made for each load takes longer than all else of the load (benchmarks/load_view.py)."""
    columns = [
        f'{table}."{field.column}"'
        for table, model in (("version", ViewVersion), ("meta", ViewMeta))
        for field in model._meta.concrete_fields
    ]
    return (
        f"SELECT {', '.join(columns)} FROM view_version_info AS version JOIN view_meta AS meta "  # noqa: S608
        "ON meta.view_id = version.view_id AND meta.current_version = version.version "
        "WHERE version.view_id = %s AND meta.deleted_at = 0"
    )


def _read(model: type[M], values: Sequence[Any]) -> M:
    """An object of a model from the values of all its columns."""
    fields = model._meta.concrete_fields
    parsed = [
        json.loads(value) if isinstance(field, JSONField) and value is not None else value
        for field, value in zip(fields, values, strict=True)
    ]
    return model.from_db(connection.alias, [field.attname for field in fields], parsed)


def of_view(view: Located) -> QuerySet[ViewVersion]:
    """All versions of a view, the latest first."""
    return ViewVersion.objects.filter(view_id=view.id).order_by("-version")


def latest_number(view: Located) -> int:
    """The number of the latest version, 0 for a view that was never read."""
    return of_view(view).values_list("version", flat=True).first() or 0


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
