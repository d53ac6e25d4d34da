"""Deleting an object and all below it, with all rows that hang on them.

What hangs on what is read from the models themselves, by their foreign keys: an app that adds a kind, or rows that hang
on securables, registers nothing, and cannot be forgotten here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from django.apps import apps
from django.db.models import ForeignKey, Model, Q, QuerySet

from authz import services as authz
from authz.locks import hold_below
from catalogs.models import ReservedPlace
from catalogs.services import reserved
from metalake.kinds import LEAVES, Kind, above
from metalake.lineage import Located
from metalake.models import Securable, below


class Hanging(NamedTuple):
    """Rows of a model, and the field that leads from them to the id of a securable; of one `kind`, or of any."""

    model: type[Model]
    to_securable: str
    kind: Kind | None


def remove(located: Located) -> list[ReservedPlace]:
    """Delete an object and all below it, with every grant on them, in the caller's transaction.

    It is held by the caller. The places of what it is or holds stay reserved; they are returned.
    """
    if located.kind not in LEAVES:
        hold_below(located.lineage)
    places = reserved.keep(located)
    authz.forget_grants_under(located.lineage)
    if located.kind is Kind.METALAKE:
        authz.drop_people_of(located.id)
    removed = Securable.objects.filter(Q(pk=located.id) | below(located.lineage))
    ids = removed.values("pk")
    for rows in hanging():
        if rows.kind is None or rows.kind is located.kind or located.kind in above(rows.kind):
            _delete(rows.model._default_manager.filter(**{f"{rows.to_securable}__in": ids}))
    _delete(removed)
    return places


@cache
def hanging() -> tuple[Hanging, ...]:
    """Everything that hangs on securables, what hangs on other such rows first."""
    return tuple(_hanging_on(Securable, "", None))


def _hanging_on(target: type[Model], way: str, kind: Kind | None) -> Iterator[Hanging]:
    for model in apps.get_models():
        for field in model._meta.local_fields:
            if model is Securable or not isinstance(field, ForeignKey) or field.related_model is not target:
                continue
            lookup = f"{field.name}__{way}" if way else field.name
            of_kind = kind or getattr(model, "row_kind", None)
            yield from _hanging_on(model, lookup, of_kind)
            yield Hanging(model, lookup, of_kind)


def _delete(rows: QuerySet) -> None:
    """One statement on the rows' own table, which Django's delete is not; references are checked at commit."""
    rows.order_by()._raw_delete("default")
