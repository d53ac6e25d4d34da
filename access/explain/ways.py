"""Every way by which somebody gets a privilege on an object, or is refused it: by which role, group, grant or owner.

A way is one grant, on the object or above it, to a role that somebody holds, directly or through one of their groups;
or the ownership of the object or of one above it. Ways are made one by one in their order (access.explain.way_rows), so
that a page costs little however many there are, and the evaluator decides what each gives (access.explain.verdicts).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import orjson

from access.explain.permissions import Place, is_reader, open_on, subject
from access.explain.redaction import Sight
from access.explain.verdicts import Missing, Verdict
from access.explain.way_rows import ALLOWED, DENIED, Judged, Key, Narrowed, Rows
from access.history.current import GrantRow
from authz.actor import Actor
from metalake.errors import Invalid
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

MOST_COUNTED = 1000
READ_AT_ONCE = 500
SORTS = ("user", "group", "role")
SHOWN = ("effective", "direct", "inherited")
ALL = Narrowed()


class Named(NamedTuple):
    """A user, group or role on a way."""

    id: int
    name: str


@dataclass(frozen=True)
class Way:
    """One way to a privilege, or to its DENY. Of an owner `privilege` is None, for all of them, and so is `role`.

    `user` is None in a list by groups or roles; `group` if the role is held directly, or in a list by roles. `on` is
    None if the asker may not see the object. `says` and `missing` tell why it gives nothing, unless it is effective.
    `member_count`: in a list by groups or roles, the enabled members who have it by this; None if the asker sees only
    what is their own.
    """

    user: Named | None
    group: Named | None
    role: Named | None
    privilege: Privilege | None
    effect: Effect
    on: Located | None
    is_direct: bool
    verdict: Verdict
    says: str = ""
    missing: tuple[Missing, ...] = ()
    member_count: int | None = None
    grantor: str = ""
    granted_at: datetime | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None

    @property
    def owner(self) -> bool:
        return self.privilege is None

    @property
    def is_deny(self) -> bool:
        return self.effect is Effect.DENY


@dataclass(frozen=True)
class WaysPage:
    """Some of the ways to an object; `next` is where the next page begins, "" on the last one.

    `total` is how many there are, or with `at_least` how many at least. `is_complete`: of everybody, not just the
    asker's own.
    """

    target: Located
    ways: list[Way]
    next: str
    total: int
    at_least: bool
    is_complete: bool


def ways_in(
    actor: Actor,
    metalake: str,
    on: Place | Located,
    as_of: datetime | None = None,
    *,
    narrowed: Narrowed = ALL,
    after: str = "",
    limit: int = 50,
) -> WaysPage:
    """One page of the ways to an object, now or at a moment: DENY first, then owners, then ALLOW, by privilege.

    Whoever may read access to the object is shown everybody's ways, others who see it their own. `after` is `next` of
    the page before. Raises NotFound for an object that the caller may not know of, and Invalid.
    """
    behind = _read_after(after)
    rows = _rows(actor, metalake, on, as_of, narrowed)
    first = list(islice(rows.judged(None), MOST_COUNTED + 1))
    some = list(islice(rows.judged(behind), limit + 1)) if behind else first[: limit + 1]
    return WaysPage(
        target=rows.sight.target,
        ways=list(_ways(rows, some[:limit])),
        next=orjson.dumps(some[limit - 1].row.key).decode() if len(some) > limit else "",
        total=min(len(first), MOST_COUNTED),
        at_least=len(first) > MOST_COUNTED,
        is_complete=rows.own is None,
    )


def every_way(
    actor: Actor, metalake: str, on: Place | Located, as_of: datetime | None = None, *, narrowed: Narrowed = ALL
) -> Iterator[Way]:
    """All ways to an object, in the order of their pages. Raises as `ways_in` does, before the first one."""
    rows = _rows(actor, metalake, on, as_of, narrowed)

    def pieces() -> Iterator[Way]:
        judged = rows.judged(None)
        while some := list(islice(judged, READ_AT_ONCE)):
            yield from _ways(rows, some)

    return pieces()


def _rows(actor: Actor, metalake: str, on: Place | Located, as_of: datetime | None, narrowed: Narrowed) -> Rows:
    _check(narrowed)
    state, target = open_on(actor, metalake, on, as_of)
    ids = [node.id for node in target.nodes]
    own = None if is_reader(actor, state, target) else subject(actor, state, target, None, ids)
    now = actor.now if state.at is None else state.at
    return Rows(Sight(actor, state, target), own.policy if own else state.policy_on(ids), now, narrowed, own)


def _check(narrowed: Narrowed) -> None:
    by, show, _, whom, *_ = narrowed
    if by not in SORTS:
        raise Invalid(f"Ways are listed by {', '.join(SORTS)}, not by {by}.")
    if show is not None and show not in SHOWN:
        raise Invalid(f"Ways are narrowed to {', '.join(SHOWN)}, not to {show}.")
    if whom and SORTS.index(whom.sort) < SORTS.index(by):
        raise Invalid(f"A list by {by} has no {whom.sort} on its ways: list by {whom.sort}.")


def _read_after(text: str) -> Key | None:
    if not text:
        return None
    try:
        section, *names, distance = orjson.loads(text)
    except (ValueError, TypeError):
        section, names, distance = None, [], None
    is_key = section in range(DENIED, ALLOWED + 1) and type(distance) is int and len(names) == 4
    if not (is_key and all(type(name) is str for name in names)):
        raise Invalid("This is no page of the list; begin again with the first one.")
    privilege, name, group, role = names
    return section, privilege, name, group, role, distance


def _ways(rows: Rows, some: Sequence[Judged]) -> Iterator[Way]:
    """These rows by names, with who granted what and when."""
    ids = [node.id for node in rows.sight.target.nodes]
    grants = [row.grant for row, _ in some if row.grant]
    stored = rows.sight.state.grants({ids[grant.depth] for grant in grants}, {grant.role_id for grant in grants})
    details = {(one.role_id, one.object_id, one.privilege): one for one in stored}
    for judged in some:
        grant = judged.row.grant
        yield _way(rows, judged, details.get((grant.role_id, ids[grant.depth], grant.privilege)) if grant else None)


def _way(rows: Rows, judged: Judged, details: GrantRow | None) -> Way:
    (key, who, group_id, grant, depth), judgement = judged
    _, _, name, group, role, distance = key
    way = Way(
        user=Named(who.id, name) if rows.narrowed.by == "user" else None,
        group=None if group_id is None else Named(group_id, group),
        role=Named(grant.role_id, role) if grant else None,
        privilege=grant.privilege if grant else None,
        effect=grant.effect if grant else Effect.ALLOW,
        on=rows.sight.shown(rows.sight.lineage[depth]),
        is_direct=distance == 0,
        verdict=judgement.verdict,
        says=judgement.says,
        missing=judgement.missing,
        member_count=_member_count(rows, judged),
    )
    if details is None:
        return way
    _, _, _, _, grantor, granted_at, starts_at, ends_at = details
    return replace(way, grantor=grantor, granted_at=granted_at, starts_at=starts_at, ends_at=ends_at)


def _member_count(rows: Rows, judged: Judged) -> int | None:
    if rows.narrowed.by == "user" or rows.own:
        return None
    row = judged.row
    id = row.group_id if rows.narrowed.by == "group" else row.grant and row.grant.role_id
    return rows.member_counts[id or 0]
