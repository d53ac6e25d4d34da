"""Version history of a view, for callers who may load it: list, load, compare and roll back.

Versions are stored here, so they are available even while the view itself is unreadable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Length

from authz import operations, policy
from authz.actor import Actor
from catalogs.secrets import mask
from formats.iceberg.views.security import with_same_owner
from formats.native.view_definition import ViewDefinition
from metalake.lineage import Address
from views_mgmt import versions
from views_mgmt.models import ViewVersion
from views_mgmt.services.views import find_loadable, find_view, load_view, store_of, unless_changed
from views_mgmt.stores import Plan, ViewRecord

LARGEST_LIST = 8 * 1024 * 1024  # characters of SQL; two versions are listed in any case


@dataclass(frozen=True)
class Difference:
    """One part in which two versions differ, such as `representations.spark`, `columns.id` or `properties.owner`."""

    part: str
    before: Any
    after: Any


def list_versions(actor: Actor, address: Address, before: int | None = None, limit: int = 100) -> list[ViewVersion]:
    """A view's versions, latest first; those below number `before`, at most `limit`.

    Fewer if their SQL is long: each may have 32 MiB. There are more unless the list ends with version 1.
    """
    rows = versions.of_view(find_loadable(actor, address))
    rows = rows if before is None else rows.filter(version__lt=before)
    sizes = rows.annotate(size=Length(Cast("representations", TextField()))).values_list("size", flat=True)[:limit]
    whole = accumulate(sizes)
    return list(rows[: max(2, sum(size <= LARGEST_LIST for size in whole))])


def load_version(actor: Actor, address: Address, number: int) -> ViewVersion:
    """One version. Raises NotFound."""
    return versions.at(find_loadable(actor, address), number)


def compare(actor: Actor, address: Address, before: int, after: int) -> list[Difference]:
    """What differs between two versions, part by part."""
    view = find_loadable(actor, address)
    return differences(versions.at(view, before).definition, versions.at(view, after).definition)


def differences(before: ViewDefinition, after: ViewDefinition) -> list[Difference]:
    """What differs between two definitions, part by part; the values of secrets are masked."""
    was, now = _parts(before), _parts(after)
    differing = [part for part in sorted(was.keys() | now.keys()) if was.get(part) != now.get(part)]
    was, now = _parts(_masked(before)), _parts(_masked(after))
    return [Difference(part, was.get(part), now.get(part)) for part in differing]


def _masked(definition: ViewDefinition) -> ViewDefinition:
    return replace(definition, properties=mask(definition.properties))


def _parts(definition: ViewDefinition) -> Mapping[str, Any]:
    representations = {f"representations.{each.key}": {**vars(each)} for each in definition.representations}
    columns = {f"columns.{column['name']}": column for column in definition.columns}
    properties = {f"properties.{name}": value for name, value in definition.properties.items()}
    single = {"comment": definition.comment, "securityMode": definition.security_mode}
    order = {"columnOrder": [column["name"] for column in definition.columns]}
    return {**representations, **columns, **order, **properties, **single}


def preview_of_roll_back(actor: Actor, address: Address, number: int) -> list[Difference]:
    """Preview: what rolling back to this version would change now. Raises NotFound, Forbidden."""
    record = load_view(actor, address)
    policy.require(actor, operations.ALTER_VIEW, record.view)
    now = record.definition
    return differences(now, _as_it_was(versions.at(record.view, number).definition, now))


def roll_back(actor: Actor, address: Address, number: int, since: int | None = None) -> ViewRecord:
    """Add a version equal to an earlier one, except for the security mode, which stays as it is.

    With `since`, raises Conflict if the view has changed since that version.
    """
    view = find_view(actor, address)
    policy.require(actor, operations.ALTER_VIEW, view)
    wanted = versions.at(view, number).definition
    plan = unless_changed(view, since, Plan(partial(_as_it_was, wanted)))
    return store_of(view).alter(actor, address, view, plan)


def _as_it_was(wanted: ViewDefinition, now: ViewDefinition) -> ViewDefinition:
    """An earlier definition with the current security mode and run-as owner, which are never rolled back."""
    properties = with_same_owner(wanted.properties, now.properties)
    return replace(wanted, security_mode=now.security_mode, properties=properties)
