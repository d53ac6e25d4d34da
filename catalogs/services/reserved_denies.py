"""Retained DENYs: those in force on an object dropped without purge stay with its reserved places.

To use or release such a place, a caller must be allowed to lift each DENY that the new object would not have. Source:
docs/authorization.md, rule 13.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from authz import policy
from authz.actor import Actor
from authz.models import Grant, Role, unended
from authz.objects import by_ids
from authz.services.authority import may_lift
from authz.services.ownership_rules import is_party, party_of, roles_of
from catalogs.models import ReservedPlace
from catalogs.stores import offers_of, store_for
from metalake.errors import Forbidden
from metalake.kinds import LEAVES, Kind
from metalake.lineage import Located
from metalake.models import below
from metalake.privileges import Effect

Denies = dict[int, list[dict[str, Any]]]  # by the object that they are placed on


def denies_at(target: Located, now: datetime) -> Denies:
    """The DENYs on an object that is about to be dropped, its ancestors and its descendants."""
    rows = Grant.objects.filter(unended(now), effect=Effect.DENY.value)
    fields = ("content_object_id", "group__role", "permission__codename", "ends_at")
    granted = list(rows.filter(content_object_id__in=[node.id for node in target.nodes]).values_list(*fields))
    if target.kind not in LEAVES:
        granted += rows.filter(below(target.lineage, "content_object__lineage")).values_list(*fields)
    denies: Denies = {}
    for on, role, privilege, ends in granted:
        entry = {"on": on, "role": role, "privilege": privilege, "ends": ends and ends.isoformat()}
        denies.setdefault(on, []).append(entry)
    return denies


def on_lineage(denies: Denies, lineage: str) -> dict[str, Any] | None:
    """The DENYs in force on an object of this lineage, as its reservation stores them; None if there are none."""
    *above, own = (int(part) for part in lineage[1:].split("/"))
    ids = [*above, own] if own in denies else above
    entries = [entry for id in ids for entry in denies.get(id, ())]
    return {"lineage": ids, "denies": entries} if entries else None


def require_lift(actor: Actor, rows: Iterable[ReservedPlace], home: Located | None, act: str, kind: str) -> None:
    """Raise Forbidden if an object at `home` would bypass a DENY of these places that the actor may not lift.

    `home` is None to release a place: the next object may be anywhere.
    """
    distinct = {_answer_depends_on(row): row for row in rows if row.denied}  # rows of one drop are mostly alike
    for row in distinct.values():
        if _sheds(actor, row, row.denied or {}, home):
            raise Forbidden(f"{act} would shed a DENY that {actor.name} may not lift.", kind=kind)


def _answer_depends_on(row: ReservedPlace) -> tuple[Any, ...]:
    owners = (row.owner_user_id, row.owner_group_id, row.catalog_user_id, row.catalog_group_id)
    return row.of_catalog, *owners, json.dumps(row.denied)


def require_lift_on(actor: Actor, catalog: Located, act: str) -> None:
    """Raise Forbidden if an outside catalog has a DENY that the actor may not lift.

    For acts that would expose its system without that DENY: its places are often unknown, so none are reserved.
    """
    if not (offers_of(catalog) and store_for(catalog, Kind.CATALOG).is_mirrored) or may_lift(actor, catalog):
        return
    denied = Grant.objects.filter(unended(actor.moment), effect=Effect.DENY.value, content_object_id=catalog.id)
    if denied.exists():
        raise Forbidden(f"{act} would shed a DENY that {actor.name} may not lift.", kind=Kind.CATALOG)


def _sheds(actor: Actor, row: ReservedPlace, denied: Mapping[str, Any], home: Located | None) -> bool:
    lineage: list[int] = denied["lineage"]
    stand = by_ids(lineage)
    at_home = {node.id for node in home.nodes} if home else set()
    freed = _freed(actor, row, home, stand) if home else set()
    return any(
        (each["on"] not in at_home or each["role"] in freed) and not _may_lift(actor, row, lineage, each["on"], stand)
        for each in _unlifted(actor, denied["denies"], stand)
    )


def _unlifted(actor: Actor, denies: list[dict[str, Any]], stand: Mapping[int, Located]) -> list[dict[str, Any]]:
    """The retained DENYs that have not ended, nor been lifted from an object that still exists, nor lost their role."""
    roles = {each["role"] for each in denies}
    named = set(Role.objects.filter(pk__in=roles).values_list("pk", flat=True))
    grants = Grant.objects.filter(unended(actor.moment), effect=Effect.DENY.value, content_object_id__in=stand)
    still = set(
        grants.filter(group__role__in=named).values_list("content_object", "group__role", "permission__codename")
    )

    def is_there(each: dict[str, Any]) -> bool:
        if each["on"] in stand:
            return (each["on"], each["role"], each["privilege"]) in still
        ends = each["ends"] and datetime.fromisoformat(each["ends"])
        return each["role"] in named and not (ends and ends <= actor.moment)

    return [each for each in denies if is_there(each)]


def _may_lift(actor: Actor, row: ReservedPlace, lineage: list[int], on: int, stand: Mapping[int, Located]) -> bool:
    """Whether the actor may lift it as before the drop, on the object or its nearest ancestor that still exists."""
    if on in stand:
        return may_lift(actor, stand[on])
    depth = lineage.index(on)
    if depth > 1 and row.of_catalog not in stand and is_party(actor, (row.catalog_user_id, row.catalog_group_id)):
        return True
    return policy.may_grant(actor, next(stand[id] for id in reversed(lineage[:depth]) if id in stand))


def _freed(actor: Actor, row: ReservedPlace, home: Located, stand: Mapping[int, Located]) -> set[int]:
    """The roles of those who would own the new object but did not own the old one: owners are exempt from DENY."""
    former = {party_of(each.nodes[-1]) for each in stand.values()} | {(row.catalog_user_id, row.catalog_group_id)}
    roles: set[int] = set()
    if actor.id != row.owner_user_id and not any(is_party(actor, party) for party in former):
        roles.update(actor.roles)
    for party in {party_of(node) for node in home.nodes} - former - {party_of(row)}:
        roles.update(roles_of(actor.policy, party))
    return roles
