"""Delete an object and all below it, with all rows that refer to them.

The referring rows are derived from the foreign keys of the models, so an app that adds a kind, or rows that refer
to securables, has nothing to register.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from django.apps import apps
from django.db.models import ForeignKey, Model, Q, QuerySet

from authz import services as authz
from authz.locks import hold_below
from authz.models import Grant
from catalogs.models import Listing, Mirror, ReservedPlace
from catalogs.services import reserved_places
from catalogs.stores import offers_of, store_for
from metalake.kinds import LEAVES, Kind, above
from metalake.lineage import Located
from metalake.models import Securable, below


class Reference(NamedTuple):
    """A model whose rows refer to securables of one `kind`, or of any, and the lookup from a row to its securable."""

    model: type[Model]
    to_securable: str
    kind: Kind | None


_BEFORE: list[tuple[Kind, Callable[[QuerySet], None]]] = []


def before_removal(kind: Kind, call: Callable[[QuerySet], None]) -> None:
    """Register a hook that gets the ids about to be deleted, which may include objects of the kind.

    It runs in the deleting transaction, for rows that outlive their object.
    """
    _BEFORE.append((kind, call))


def remove(located: Located) -> list[ReservedPlace]:
    """Delete an object and all below it, with every grant on them, in the caller's transaction.

    The caller has locked the object. The places of deleted objects are reserved; the reservations are returned.
    """
    if located.kind not in LEAVES:
        hold_below(located.lineage)
    places = reserved_places.keep(located)
    authz.forget_grants_under(located.lineage)
    if located.kind is Kind.METALAKE:
        authz.drop_people_of(located.id)
    removed = Securable.objects.filter(Q(pk=located.id) | below(located.lineage))
    ids = removed.values("pk")
    for kind, call in _BEFORE:
        if _may_hold(located, kind):
            call(ids)
    for reference in references():
        if _may_refer(reference, located):
            _delete(reference.model._default_manager.filter(**{f"{reference.to_securable}__in": ids}))
    _delete(removed)
    return places


def _may_hold(located: Located, kind: Kind) -> bool:
    """Whether objects of the kind may be among the object and all below it."""
    return kind is located.kind or located.kind in above(kind)


def _may_refer(reference: Reference, located: Located) -> bool:
    """Whether rows of the model may refer to the object or to what is below it; grants on them are deleted already."""
    if reference.model is Grant:
        return False
    if located.kind in LEAVES and reference.model in (Listing, Mirror):
        is_known = bool(offers_of(located))  # unless its provider is not installed any more
        return reference.model is Mirror and not (is_known and not store_for(located, Kind.CATALOG).is_mirrored)
    return reference.kind is None or _may_hold(located, reference.kind)


@cache
def references() -> tuple[Reference, ...]:
    """All models that refer to securables, in an order in which their rows can be deleted."""
    return tuple(_references_to(Securable, "", None))


def _references_to(target: type[Model], to_securable: str, kind: Kind | None) -> Iterator[Reference]:
    """The foreign keys that lead to a model, and those that lead to their models: the rows to delete first come first.

    `to_securable` is the lookup from the target to its securable, "" if the target is Securable itself.
    """
    for model in apps.get_models():
        for field in model._meta.local_fields:
            if model is Securable or not isinstance(field, ForeignKey) or field.related_model is not target:
                continue
            lookup = f"{field.name}__{to_securable}" if to_securable else field.name
            of_kind = kind or getattr(model, "row_kind", None)
            yield from _references_to(model, lookup, of_kind)
            yield Reference(model, lookup, of_kind)


def _delete(rows: QuerySet) -> None:
    """Delete rows in one statement on their own table, unlike Django's delete; references are checked at commit."""
    rows.order_by()._raw_delete("default")
