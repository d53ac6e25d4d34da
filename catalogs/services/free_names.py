"""Check that a name is free: tables and views share one name space in a schema."""

from __future__ import annotations

from metalake.errors import AlreadyExists
from metalake.kinds import Kind, Slot
from metalake.lineage import Located
from metalake.models import Securable


def require_free(home: Located, name: str) -> None:
    kinds = Securable.objects.filter(parent_id=home.id, slot=Slot.TABULAR, name=name).values_list("kind", flat=True)
    for kind in kinds:
        label = "Table" if kind == Kind.TABLE else "View with same name"
        raise AlreadyExists(f"{label} already exists: {'.'.join((*home.path.segments, name))}", kind=Kind.TABLE)


def require_free_for_rename(table: Located, home: Located, name: str) -> None:
    try:
        require_free(home, name)
    except AlreadyExists as conflict:
        old = ".".join((*table.path.segments, table.nodes[-1].name))
        new = ".".join((*home.path.segments, name))
        kind = conflict.message.split(" ", 1)[0]
        raise AlreadyExists(f"Cannot rename {old} to {new}. {kind} already exists", kind=Kind.TABLE) from None
