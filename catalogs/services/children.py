"""List the children of a container that an actor may see, in one SQL statement of fixed text for hot reads."""

from __future__ import annotations

from typing import cast

from authz import filters, policy
from authz.actor import Actor
from authz.filters import Condition, Showing
from metalake.blocking import all_of, at_most
from metalake.kinds import Kind, Slot, slot_of
from metalake.lineage import Located
from metalake.models import Securable
from metalake.statements import fetch

Rows = list[tuple[int, str]]

_STATEMENT = (
    "SELECT id, name FROM metalake_securable "
    "WHERE parent_id = %s AND slot = %s AND kind = %s AND {shown} AND name > %s ORDER BY name LIMIT %s"
)


def children_shown(
    actor: Actor, container: Located, kind: Kind, showing: Showing, after: str | None, limit: int | None
) -> Rows:
    """The ids and names of the visible children of one kind, by name; after `after`, at most `limit`.

    Raises BeginAgain if a short read cannot return them.
    """
    if (condition := filters.condition_of(actor, showing)) is not None:
        return _children_where(container, kind, condition, after, limit)
    rows = Securable.objects.filter(parent_id=container.id, slot=slot_of(kind), kind=kind, name__gt=after or "")
    return all_of(filters.shown(actor, showing, rows).order_by("name").values_list("pk", "name")[:limit])


def schemas_shown(actor: Actor, parent: Located, after: str | None, limit: int | None) -> Rows:
    """The same for schemas directly below a catalog or schema, including parents of schemas that the actor may load.

    Also one statement, unless a DENY or many grants require more.
    """
    showing = policy.shows_schemas(actor, parent)
    if showing.is_all or showing.is_none:
        return children_shown(actor, parent, Kind.SCHEMA, showing, after, limit)
    loadable, steps = filters.condition_of(actor, showing), filters.steps_below(actor, parent.lineage)
    if loadable is not None and steps is not None:
        either = f"({loadable[0]} OR {steps[0]})", [*loadable[1], *steps[1]]
        return _children_where(parent, Kind.SCHEMA, either, after, limit)
    rows = Securable.objects.filter(parent_id=parent.id, slot=Slot.SCHEMA, name__gt=after or "")
    shown = policy.visible_schemas(actor, parent, rows)
    return all_of(shown.order_by("name").values_list("pk", "name")[:limit])


def _children_where(container: Located, kind: Kind, condition: Condition, after: str | None, limit: int | None) -> Rows:
    text, parameters = condition
    statement = _STATEMENT.format(shown=text)
    given = [container.id, str(slot_of(kind)), str(kind), *parameters, after or ""]
    return cast(Rows, at_most(limit, lambda most: fetch(statement, [*given, most])))
