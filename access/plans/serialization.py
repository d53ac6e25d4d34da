"""The parts of a plan as they are stored: JSON of steps, changes and blast radius, and read back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from access.plans.blast_report import Blast, Line, Refused, Side
from access.plans.desired import Change, Step
from authz.services.grant_entries import Entries, Given
from metalake.kinds import Kind
from metalake.privileges import Effect, Privilege

_PEOPLE = ("assign", "unassign")


def step_data(step: Step) -> dict[str, Any]:
    """The step as JSON, which `read_steps` reads back."""
    holders = {"assign": step.assign, "unassign": step.unassign}
    return {
        "role": step.role_id,
        "name": step.name,
        "give": _entries_data(step.give),
        "take": _entries_data(step.take),
        **{name: {sort: list(ids.items()) for sort, ids in people.items()} for name, people in holders.items()},
        **({"drop": True} if step.drop else {}),
    }


def _entries_data(on: dict[int, Entries]) -> list[list[Any]]:
    return [
        [id, privilege.value, *_given_data(given)] for id, entries in on.items() for privilege, given in entries.items()
    ]


def _given_data(given: Given) -> list[str | None]:
    return [given.effect.value, *(moment.isoformat() if moment else None for moment in (given.starts, given.ends))]


def read_steps(data: dict[str, Any]) -> list[Step]:
    """The steps of a stored plan."""
    return [
        Step(
            step["role"],
            step["name"],
            _read_entries(step["give"]),
            _read_entries(step["take"]),
            **{part: {sort: dict(pairs) for sort, pairs in step[part].items()} for part in _PEOPLE},
            drop=step.get("drop", False),
        )
        for step in data["steps"]
    ]


def _read_entries(rows: Sequence[Sequence[Any]]) -> dict[int, Entries]:
    by_id: dict[int, Entries] = defaultdict(dict)
    for id, privilege, *given in rows:
        by_id[id][Privilege(privilege)] = _read_given(given)
    return dict(by_id)


def _read_given(data: Sequence[Any]) -> Given:
    effect, *span = data
    return Given(Effect(effect), *(moment and datetime.fromisoformat(moment) for moment in span))


def changes_data(changes: Iterable[Change]) -> list[list[Any]]:
    """Wanted changes as JSON, which `read_changes` reads back."""
    return [
        [change, role, privilege, given and _given_data(given), on, holder]
        for change, role, privilege, given, on, holder in changes
    ]


def read_changes(data: Iterable[Sequence[Any]]) -> list[Change]:
    """The wanted changes of a stored plan."""
    return [
        Change(
            change,
            role,
            privilege and Privilege(privilege),
            given and _read_given(given),
            on and (Kind(on[0]), on[1]),
            holder and (holder[0], holder[1]),
        )
        for change, role, privilege, given, on, holder in data
    ]


def blast_data(blast: Blast) -> dict[str, Any]:
    """A blast radius as JSON, which `read_blast` reads back."""
    lines = [[line.privilege, line.kind, asdict(line.gain), asdict(line.lose)] for line in blast.lines]
    stays = {"refused": blast.refused, "refused_total": blast.refused_total} if blast.refused else {}
    return {"lines": lines, "is_cut": blast.is_cut, "scheduled": blast.scheduled, **stays}


def read_blast(data: dict[str, Any]) -> Blast:
    lines = [
        Line(Privilege(privilege), Kind(kind), Side(**gain), Side(**lose))
        for privilege, kind, gain, lose in data["lines"]
    ]
    refused = [
        Refused(id, Kind(kind), full_name, tuple(map(Privilege, privileges)), role, says, users, tuple(names))
        for id, kind, full_name, privileges, role, says, users, names in data.get("refused", ())
    ]
    return Blast(lines, data["is_cut"], data["scheduled"], refused, data.get("refused_total", 0))
