"""The rule that protects DEFINER views. Source: docs/authorization.md, "Views".

Changing the SQL of a DEFINER view, or transferring it, would let the caller act with another user's rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from authz.actor import Actor, system_actor
from catalogs.lookup import by_id
from catalogs.services import places
from catalogs.services.alterations import event
from catalogs.stores import store_for
from formats.iceberg.views.security import RUN_AS_OWNER, check_spelling, noted
from formats.native.view_definition import SecurityMode, ViewDefinition
from metalake.errors import Conflict, Forbidden
from metalake.events import record
from metalake.kinds import Kind
from metalake.lineage import Located
from metalake.models import Outbox
from metalake.wire import quote
from views_mgmt import versions
from views_mgmt.models import ViewVersion

BECOMES_INVOKER = "view.becomes_invoker"  # the outbox topic of Iceberg views whose files are pending


def refusal(actor: Actor, view: Located, definition: ViewDefinition) -> Forbidden | None:
    """Why the actor may not change a view's SQL and columns, whatever their privileges; None if they may."""
    if not definition.is_definer or actor.owns(view.node):
        return None
    return Forbidden(
        f"View {'.'.join(view.full_name)} runs with the rights of its owner, so its owner alone may change its SQL, "
        "its columns and that.",
        kind=Kind.VIEW,
    )


def require_may_change(
    actor: Actor, view: Located, before: ViewDefinition, after: ViewDefinition, *, is_respelled: bool = False
) -> None:
    """Raise Forbidden if this changes the SQL, columns or mode of another owner's DEFINER view, or makes the view run
    with the rights of anybody other than the actor, its owner.

    `is_respelled` means that its SQL would resolve in another schema, though the definitions spell both alike.

    Owning a container is not enough, and neither is ALTER_VIEW. Call it in the transaction of the change. Raises
    Conflict while the view still names a removed owner.
    """
    if _body(before) == _body(after) and not is_respelled:
        return
    if reason := refusal(actor, view, before):
        raise reason
    if before.is_definer and Outbox.objects.filter(topic=BECOMES_INVOKER, payload__id=view.id).exists():
        raise Conflict(
            f"The owner of view {'.'.join(view.full_name)} was removed: it becomes a view that runs with the rights of "
            "whoever selects from it. Try again then.",
            kind=Kind.VIEW,
        )
    if after.is_definer and _runs_as(before) != _runs_as(after):
        _require_as_oneself(actor, view, after)


def _require_as_oneself(actor: Actor, view: Located, after: ViewDefinition) -> None:
    """Raise Forbidden unless the user who owns the view makes it run as themselves, or may choose whom it runs as.

    Who may choose: see `require_may_run_as`.
    """
    runs_as = noted(after.properties).get(RUN_AS_OWNER, actor.name)
    if view.node.owner_user_id == actor.id and (runs_as == actor.name or places.may_choose(actor, view)):
        return
    raise Forbidden(
        f"View {'.'.join(view.full_name)} may be made to run with the rights of the user who owns it, by that user "
        "alone; with those of somebody else, by that user only if they own the catalog, too.",
        kind=Kind.VIEW,
    )


def require_may_run_as(actor: Actor, home: Located, definition: ViewDefinition) -> None:
    """Raise Forbidden for a new view whose metadata makes Trino run it with the rights of somebody else.

    The catalog's owner may create one: the account of a Trino whose users have no accounts here. Raises Invalid if
    the metadata names the user in a spelling that Trino does not write.
    """
    check_spelling(definition.properties)
    owner = definition.properties.get(RUN_AS_OWNER)
    if owner is None or owner == actor.name or places.may_choose(actor, home):
        return
    name = quote(owner)
    raise Forbidden(
        f"By its property {RUN_AS_OWNER} Trino would run the view with the rights of {name}: only {name} and the owner "
        f"of catalog {home.catalog.name} may make it. Create it with SECURITY INVOKER, or have one of them do it.",
        kind=Kind.VIEW,
    )


def _body(definition: ViewDefinition) -> tuple[object, ...]:
    return definition.representations, definition.columns, _runs_as(definition)


def _runs_as(definition: ViewDefinition) -> tuple[object, ...]:
    return definition.is_definer, noted(definition.properties)


def require_not_definer(target: Located) -> None:
    """Raise Forbidden if an object is a DEFINER view: its ownership cannot be transferred.

    A system whose views are only read runs them with the rights of an account of its own.
    """
    if target.kind is Kind.VIEW and definers([target.id]):
        view = by_id(target.id)
        if view is not None and store_for(view, Kind.VIEW).only_read(view):
            return
        raise Forbidden(
            f"View {'.'.join(target.full_name)} runs with the rights of its owner, so it cannot be handed to another: "
            "drop it, and let the other create it.",
            kind=Kind.VIEW,
        )


def become_invokers(securable_ids: Sequence[int]) -> None:
    """Add a version with INVOKER to each managed DEFINER view among objects whose owner was removed.

    Iceberg views follow later (views_mgmt.delegated.orphans). Views in outside systems keep naming the removed user.
    """
    for version in _present(securable_ids):
        if version.view.format != versions.OURS.format:
            continue
        view = by_id(version.view_id)
        if view is None:
            continue
        wanted = replace(version.definition, security_mode=SecurityMode.INVOKER)
        actor = system_actor()
        number = versions.add(view, wanted, actor.name)
        record(event(actor, "view.altered", view, version=number, changed=["security_mode"]))


def definers(securable_ids: Sequence[int]) -> list[int]:
    """The ids of the DEFINER views among these objects."""
    return [version.view_id for version in _present(securable_ids)]


def _present(securable_ids: Sequence[int]) -> list[ViewVersion]:
    """The current versions of the DEFINER views among these objects."""
    now = versions.present().filter(view_id__in=securable_ids, security_mode=SecurityMode.DEFINER)
    return list(now.order_by("view_id"))
