"""Helpers for writes to outside systems: reserving names, and publishing alterations and drops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from django.utils import timezone

from authz import policy
from authz.actor import Actor
from authz.locks import Lock
from authz.operations import Operation
from catalogs.lookup import by_id, nearest
from catalogs.models import Intent, Mirror
from catalogs.services import reserved_places
from catalogs.services.alterations import event, require_enabled, row_of, save
from catalogs.services.cascade import remove
from catalogs.services.writes import hold_each
from metalake.errors import Conflict, NotFound, Unsupported
from metalake.events import gone, record
from metalake.kinds import LEAVES, Kind, slot_of
from metalake.lineage import Located
from metalake.models import Securable, new_id
from outside import mirror
from outside.intents import Draft, Name, NameReserved, Work
from outside.view_versions import note_all as note_views
from providers.registry import provider_class
from providers.remote_objects import FILES_LEFT, Json, Remote

T = TypeVar("T")
ATTEMPTS = 3


def retry_on_conflict(attempt: Callable[[], T]) -> T:
    """Call `attempt`, at most ATTEMPTS times, as long as the object was changed outside meanwhile."""
    for left in reversed(range(ATTEMPTS)):
        try:
            return attempt()
        except Conflict as conflict:
            if not left or isinstance(conflict, NameReserved):
                raise
    raise AssertionError("the last attempt returns or raises")


def holding(leaf: Located) -> Callable[[], None]:
    """Locks for a write to a table or view: meanwhile nothing is added to its schema, and it is not moved."""
    return partial(hold_each, [(leaf.above(), Lock.MOVES), (leaf, Lock.CHANGES)])


def names_on(located: Located) -> list[Name]:
    """The names to reserve for the schemas and the table of a lineage, outermost first."""
    pairs = zip(located.nodes[1:], located.nodes[2:], strict=False)
    return [(above.id, slot_of(node.kind), node.name) for above, node in pairs]


def recheck(actor: Actor, located: Located, operation: Operation) -> Located:
    """The object as it is now, after re-checking the right.

    Raises NotFound if it was renamed, moved or dropped since its look-up, Forbidden, Unsupported in a linked schema.
    """
    fresh = nearest(located.address)
    if fresh is None or fresh.id != located.id:
        raise located.missing()
    policy.require(actor, operation, fresh)
    require_enabled(fresh)
    if fresh.kind in LEAVES:
        require_own(fresh.above())
    return fresh


def require_own(schema: Located) -> None:
    """Raise Unsupported for a schema that is a resource link: its objects are written in the link's target."""
    require_no_link(schema, Mirror.objects.filter(pk=schema.id).values_list("definition", flat=True).first())


def require_no_link(schema: Located, definition: Json | None) -> None:
    """As `require_own`, given the schema's definition in its system, None for a schema without one."""
    target = provider_class(schema.provider or "").target_of(definition) if definition else None
    if target is not None:
        name = schema.path.logical()
        raise Unsupported(f"Schema {name} is a resource link to {target}: it is changed there.", kind=Kind.SCHEMA)


def target_of(intent: Intent, name: str = "id") -> Located:
    """The object whose id is this argument of the intent. Raises NotFound."""
    located = by_id(intent.arguments[name])
    if located is None:
        raise NotFound(f"{intent.full_name} does not exist.", kind=intent.verb.rpartition("_")[2])
    return located


def _alteration(actor: Actor, intent: Intent, fact: str) -> None:
    """Publish an alteration; rights are not re-checked, since the system has made it already."""
    located = target_of(intent)
    name = Mirror.objects.values_list("wire_name", flat=True).get(pk=located.id)
    answer = Remote(**intent.steps[-1]["result"])
    mirror.store_answer(located.id, located.catalog.id, name, answer, timezone.now())
    note_views(located.above(), [(located.id, answer)], actor.name, intent.arguments.get("states", ()))
    save(row_of(Securable, located), actor, [])
    fact = intent.arguments.get("fact", fact)
    record(event(actor, f"{located.kind}.{fact}", located, **intent.arguments["details"]))


def files_kept(intent: Intent) -> str | None:
    """Why files stay that the outside system would have deleted, from its answers; None if they do not stay."""
    answers = (each["result"] or {} for each in intent.steps)
    return next((answer[FILES_LEFT] for answer in answers if FILES_LEFT in answer), None)


def _drop(actor: Actor, intent: Intent) -> None:
    located, why = target_of(intent), files_kept(intent)
    reserved_places.keep_outside(located, with_managed=bool(why))
    remove(located)
    details = intent.arguments["details"] | ({"files_kept": why} if why else {})
    record(event(actor, f"{located.kind}.dropped", located, [gone(located.id)], **details))


def alteration(
    target: Located,
    verb: str,
    full_name: str,
    marker: int,
    call: dict[str, Any],
    details: dict[str, Any],
    **more: Any,
) -> Draft:
    """The draft of an in-place change by one call: reserves the object's name, and none above it may be reserved.

    `more` may have `fact`, the last part of the event's name, and `states`, the resulting ones of an Iceberg view.
    """
    *above, name = names_on(target)
    return Draft(
        id=marker,
        verb=verb,
        catalog_id=target.catalog.id,
        full_name=full_name,
        names=[name],
        must_stay=above,
        steps=[call],
        arguments={"id": target.id, "details": details, **more},
    )


def dropping(
    target: Located,
    full_name: str,
    steps: list[dict[str, Any]],
    details: dict[str, Any],
    must_be_still: Sequence[int] = (),
) -> Draft:
    """The draft of a drop, which reserves the object's name."""
    return Draft(
        id=new_id(),
        verb=f"drop_{target.kind}",
        catalog_id=target.catalog.id,
        full_name=full_name,
        names=names_on(target)[-1:],
        must_be_still=list(must_be_still),
        steps=steps,
        arguments={"id": target.id, "details": details},
    )


def alteration_work(operation: Operation, fact: str = "altered") -> Work:
    """The callbacks of an in-place alteration; `fact` is the event name's last part, unless the intent has one."""
    return Work(
        lambda actor, intent: _alteration(actor, intent, fact),
        lambda actor, intent: policy.require(actor, operation, target_of(intent)),
    )


def drop_work(operation: Operation) -> Work:
    return Work(_drop, lambda actor, intent: policy.require(actor, operation, target_of(intent)))
