"""Rename a table or view, or move it to another schema, whatever its store."""

from __future__ import annotations

from django.utils import timezone

from authz.actor import Actor
from authz.locks import Lock
from authz.operations import OPERATIONS, create_of
from authz.services import ownership_rules
from catalogs.services.creation_hooks import check_home
from catalogs.services.free_names import require_free_for_rename
from catalogs.services.resolution import located_now
from catalogs.services.writes import Target, Write
from metalake.events import event_of, record, stands
from metalake.full_names import dotted
from metalake.lineage import Address, Located
from metalake.models import Securable


def to_rename(source: Address, target: Address) -> tuple[Target, Target]:
    """The object, and the schema that it shall lie in: its own, or another one, to which only its owner moves it.

    The schema is looked up last, so that only who may move the object learns whether it exists.
    """
    kind, home = source.leaf_kind, target.of_schema()
    if source.schema == target.schema:
        return Target(source, OPERATIONS[f"alter_{kind}"], Lock.MOVES), Target(home, None, Lock.HANGS)
    new = create_of(kind)
    return Target(source, OPERATIONS[f"move_{kind}"], Lock.MOVES), Target(home, new, Lock.HANGS, check=check_home)


def rename(write: Write, name: str) -> Located:
    """The change of a write to the targets of `to_rename`; the leaf under its new name."""
    return move(write.actor, write.located, write.home, name)


def move(actor: Actor, leaf: Located, home: Located, name: str) -> Located:
    """As `rename_row`, after checking that the move bypasses no DENY and the name is free."""
    if home.id != leaf.above().id:
        ownership_rules.require_no_escape(actor, leaf, home)
    require_free_for_rename(leaf, home, name)
    return rename_row(actor, leaf, home, name)


def rename_row(actor: Actor, leaf: Located, home: Located, name: str) -> Located:
    """Give a leaf its new name and schema, in the caller's transaction, with its event; the leaf under its new name.

    The row keeps its grants, owner and history. The caller has checked that the name is free there.
    """
    Securable.objects.filter(pk=leaf.id).update(
        name=name,
        parent_id=home.id,
        lineage=f"{home.lineage}/{leaf.id}",
        last_modifier=actor.name,
        last_modified_time=timezone.now(),
    )
    facts = [stands(Securable.objects.get(pk=leaf.id))]
    full_name, was = [*home.full_name, name], dotted(leaf.full_name)
    record(event_of(actor, f"{leaf.kind}.renamed", leaf.kind, leaf.id, full_name, home.metalake.id, facts, was=was))
    return located_now(leaf)
