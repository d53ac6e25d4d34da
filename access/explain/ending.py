"""The grants that end soon, from the policy in memory: those of one's own roles, and all where one may read access."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from access.explain.permissions import reads_access
from authz import operations, policy
from authz.actor import Actor
from authz.models import Role
from authz.objects import by_ids
from authz.snapshot import DENY_SHIFT, mask_of
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

SOON = timedelta(days=14)
MOST_EXAMINED = 500  # objects with a role's grants, those that end first


class Ending(NamedTuple):
    """What a role is granted or denied on an object until the same moment."""

    ends: datetime
    role_id: int
    role: str
    on: Located
    privileges: tuple[Privilege, ...]
    effect: Effect


def ending_soon(actor: Actor, within: timedelta) -> list[Ending]:
    """The grants that end within that time, the first to end first; of the MOST_EXAMINED next ones where they are."""
    until = actor.now + within.total_seconds()
    masks: dict[tuple[float, int, int], int] = {}
    for role, of_role in actor.policy.timed.items():
        for on, spans in of_role.items():
            for span in spans:
                if actor.now < span.ends <= until:
                    key = (span.ends, role, on)
                    masks[key] = masks.get(key, 0) | span.mask
    if len(masks) > MOST_EXAMINED:  # those of other metalakes must not push out the reader's own
        here = Role.objects.filter(parent__in=policy.metalakes_of(actor).values("pk"), pk__in={key[1] for key in masks})
        theirs = set(here.values_list("pk", flat=True))
        masks = {key: mask for key, mask in masks.items() if key[1] in theirs}
    some = sorted(masks)[:MOST_EXAMINED]
    objects = by_ids({on for _, _, on in some}) if some else {}
    shown = {id for id, on in objects.items() if reads_access(actor, on)}
    loaded = {id for id, on in objects.items() if policy.permits(actor, operations.load_of(on.kind), on)}
    visible = [key for key in some if key[2] in shown or (key[2] in loaded and key[1] in actor.roles)]
    roles = Role.objects.filter(pk__in={role for _, role, _ in visible}) if visible else Role.objects.none()
    names = dict(roles.values_list("pk", "name"))
    return [
        Ending(datetime.fromtimestamp(ends, UTC), role, names[role], objects[on], *_granted(masks[ends, role, on]))
        for ends, role, on in visible
        if role in names
    ]


def _granted(mask: int) -> tuple[tuple[Privilege, ...], Effect]:
    effect = Effect.DENY if mask >> DENY_SHIFT else Effect.ALLOW
    return tuple(each for each in Privilege if mask & mask_of(each, effect)), effect
