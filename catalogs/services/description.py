"""Describe one object for display; built on the services of both APIs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from authz import operations, policy
from authz.actor import Actor
from catalogs import secrets
from catalogs.models import Catalog
from catalogs.services.alterations import require_enabled
from catalogs.services.leaves import describe_leaf
from catalogs.services.schemas import load_located_schema
from formats.native.outlines import ColumnOutline, KeyOutline
from metalake.errors import ProviderUnavailable, Unsupported
from metalake.kinds import CONTAINERS, KINDS, Kind
from metalake.lineage import Located
from metalake.models import Securable
from metalake.privileges import Privilege

Row = TypeVar("Row", bound=Securable)


@dataclass(frozen=True)
class Description:
    """One object with masked secrets; `details` are labelled values, `notice` says why a part of it is missing.

    `metadata` is that of an Iceberg table, None for one in another format or that cannot be read.
    With `is_path`, the actor may see only its name, as the path to an object below or to drop it; `shown_by` is then
    the privilege that reveals the rest.
    """

    comment: str = ""
    owner: str = ""
    owner_is_group: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    details: tuple[tuple[str, str], ...] = ()
    columns: tuple[ColumnOutline, ...] = ()
    keys: tuple[KeyOutline, ...] = ()
    metadata: dict[str, Any] | None = None
    creator: str = ""
    create_time: datetime | None = None
    last_modifier: str = ""
    last_modified_time: datetime | None = None
    is_path: bool = False
    shown_by: str = ""
    notice: str = ""


def describe(actor: Actor, target: Located) -> Description:
    """Everything the actor may see of a located object. Raises NotInUse if its metalake or catalog is disabled."""
    if not policy.uses(actor, operations.load_of(target.kind), target):
        rights = KINDS[target.kind].rights
        return Description(is_path=True, shown_by=rights.load[0] if rights else Privilege.USE_SCHEMA)
    if target.kind == Kind.SCHEMA:
        return _describe_schema(actor, target)
    if target.kind not in CONTAINERS:
        return _describe_leaf(actor, target)
    if target.kind == Kind.CATALOG:
        return _describe_catalog(target)
    row = _row(target, Securable)
    return _described(row, row.comment or "", row.properties, _in_use(target))


def _described(
    row: Securable, comment: str, properties: dict[str, str], details: Iterable[tuple[str, str]], **more: Any
) -> Description:
    owner = row.owner_user or row.owner_group
    return Description(
        comment=comment,
        owner=str(owner),
        owner_is_group=row.owner_user_id is None,
        properties=dict(sorted(secrets.mask(properties).items())),
        details=tuple(secrets.mask(dict(details)).items()),
        creator=row.creator,
        create_time=row.create_time,
        last_modifier=row.last_modifier or "",
        last_modified_time=row.last_modified_time,
        **more,
    )


def _describe_catalog(target: Located) -> Description:
    """The description of a catalog. Raises NotInUse if its metalake is disabled."""
    require_enabled(target.above())
    row = _row(target, Catalog)
    nested = "allowed" if row.nested else "not in this catalog"
    details = (("Type", row.type), ("Provider", row.provider), ("Schemas inside schemas", nested), *_in_use(target))
    return _described(row, row.comment or "", row.properties, details)


def _describe_schema(actor: Actor, target: Located) -> Description:
    """Describe a schema from its store, falling back to the row if its system is unavailable."""
    details = (("Full name", target.path.logical()),)
    try:
        row = load_located_schema(actor, target, target.address).row
    except ProviderUnavailable as failure:
        return _described(
            _row(target, Securable), "", {}, details, notice=f"Its details cannot be read now. {failure.message}"
        )
    return _described(row, row.comment or "", row.properties, details)


def _in_use(target: Located) -> tuple[tuple[str, str], ...]:
    return (("State", "disabled: nothing below it answers"),) if target.disabled == target.kind else ()


def _describe_leaf(actor: Actor, target: Located) -> Description:
    """Describe a leaf from its store, falling back to the row if it cannot be read."""
    try:
        leaf, shown = describe_leaf(actor, target.address)
    except (ProviderUnavailable, Unsupported) as failure:
        return _described(
            _row(target, Securable), "", {}, (), notice=f"Its metadata cannot be read now. {failure.message}"
        )
    parts = {"columns": shown.columns, "keys": shown.keys, "metadata": shown.metadata}
    return _described(_row(leaf, Securable), shown.comment, shown.properties, shown.details, **parts)


def _row(target: Located, model: type[Row]) -> Row:
    """The row with its owner. Raises NotFound if it was removed meanwhile."""
    row = model.objects.select_related("owner_user", "owner_group").filter(pk=target.id).first()
    if row is None:
        raise target.missing()
    return row
