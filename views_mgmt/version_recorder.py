"""Records view states read from outside systems, in a constant number of statements.

All functions run in the caller's transaction and check no permissions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from django.utils import timezone

from formats.native.view_definition import ViewDefinition
from metalake.lineage import Located
from metalake.rest.replies import moment_text
from views_mgmt import versions
from views_mgmt.models import ViewMeta, ViewVersion
from views_mgmt.versions import Form, New, State


class Noted(NamedTuple):
    """A view as discovered: its state, None if it was not read; `broken` says why it is unreadable.

    `file` is the metadata file of an Iceberg view that was not read.
    """

    view: Located
    form: Form
    definition: ViewDefinition | None = None
    broken: str = ""
    stored_as: Mapping[str, Any] = MappingProxyType({})
    file: str | None = None


def note_states(view: Located, states: Sequence[State], by: str, form: Form) -> None:
    """Store a view's states, oldest first: all of them if it has no version yet, else only the last."""
    if len(states) > 1 and not versions.of_view(view).exists():
        versions.add_past(view, states, by, form)
    else:
        note([Noted(view, form, states[-1].definition, stored_as=states[-1].stored_as)], by)


def note(noted: Sequence[Noted], by: str) -> None:
    """Store each state that differs from the view's current version. A view never read has no version."""
    metas = versions.locked(each.view.id for each in noted)
    present = {version.view_id: version for version in versions.present().filter(view_id__in=list(metas))}
    new, same = list[New](), list[Noted]()
    for each in (_read_before(each, present.get(each.view.id)) for each in noted):
        if each.definition is not None and _is_new(each, metas.get(each.view.id), present.get(each.view.id)):
            new.append(New(each.view, each.definition, each.form, each.stored_as))
        else:
            same.append(each)
    versions.add_all(new, by)
    _mark([each for each in same if each.view.id in metas], metas)
    _make_unread([each for each in same if each.view.id not in metas], by)
    for each in same:
        if each.stored_as and present[each.view.id].stored_as != each.stored_as:
            ViewVersion.objects.filter(pk=present[each.view.id].pk).update(stored_as=dict(each.stored_as))


def _read_before(noted: Noted, present: ViewVersion | None) -> Noted:
    """With the current version's state if that came from the same metadata file; the view may have been renamed."""
    if noted.file is None or present is None or present.stored_as.get("metadata-location") != noted.file:
        return noted
    return noted._replace(definition=present.definition, stored_as=present.stored_as)


def _is_new(noted: Noted, meta: ViewMeta | None, present: ViewVersion | None) -> bool:
    if meta is None or present is None or present.definition != noted.definition:
        return True
    return (meta.view_name, meta.schema_id) != (noted.view.name, noted.view.above().id)


def _mark(noted: Sequence[Noted], metas: Mapping[int, ViewMeta]) -> None:
    """Update the engine, format, error and location of views where they changed."""
    changed = []
    for each in noted:
        meta, has = metas[each.view.id], _has(each)
        if any(getattr(meta, name) != value for name, value in has.items()):
            changed.append(meta)
            for name, value in has.items():
                setattr(meta, name, value)
    if changed:
        ViewMeta.objects.bulk_update(changed, list(_has(noted[0])))


def _has(noted: Noted) -> dict[str, Any]:
    place = versions.place_of(noted.view)
    return {"view_name": noted.view.name, "broken": noted.broken, **noted.form._asdict(), **place}


def _make_unread(noted: Sequence[Noted], by: str) -> None:
    audit = {"creator": by, "createTime": moment_text(timezone.now())}
    numbers = {"current_version": 0, "latest_version": 0}
    rows = [ViewMeta(pk=each.view.id, audit_info=audit, **numbers, **_has(each)) for each in noted]
    ViewMeta.objects.bulk_create(rows)
