"""The row of a table or view that gets another name or schema, whichever store keeps the object."""

from __future__ import annotations

from django.utils import timezone

from authz.actor import Actor
from catalogs.services.resolution import located_now
from metalake.events import event_of, record, stands
from metalake.full_names import dotted
from metalake.lineage import Located
from metalake.models import Securable


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
