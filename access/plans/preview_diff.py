"""A plan beside what was shown before it: which lines are new, which are gone, and which are otherwise."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from access.plans.blast_report import Blast, Line
from access.plans.desired import Change

T = TypeVar("T")


class Shown(NamedTuple):
    """What a plan came to when its caller was shown it."""

    changes: list[Change]
    blast: Blast


@dataclass(frozen=True)
class Marked(Generic[T]):
    """A line of a plan; `mark` is "new", "gone" or "changed", "" if it was shown just so; `was` is what changed."""

    line: T
    mark: str = ""
    was: T | None = None


def marked_changes(changes: Sequence[Change], before: Shown | None) -> list[Marked[Change]]:
    """The changes of a plan, then those that were shown before and are gone; none is marked without a plan before."""
    if before is None:
        return [Marked(change) for change in changes]
    roles = [{change.role for change in some} for some in (changes, before.changes)]
    names_roles = max(map(len, roles)) > 1

    def key(change: Change) -> Hashable:
        # What one role is granted is the same line when the role of the plan is another one now.
        role = None if change.privilege and not names_roles else change.role
        return change.change, role, change.privilege, change.on, change.holder

    return _marked(changes, before.changes, key, lambda change: change.given)


def marked_lines(blast: Blast | None, before: Shown | None) -> list[Marked[Line]]:
    """The lines of a blast radius, marked in the same way."""
    lines = blast.lines if blast else []
    if before is None:
        return [Marked(line) for line in lines]
    return _marked(lines, before.blast.lines, lambda line: (line.privilege, line.kind), lambda line: line)


def _marked(
    lines: Sequence[T], before: Sequence[T], key: Callable[[T], Hashable], content: Callable[[T], Any]
) -> list[Marked[T]]:
    old = {key(line): line for line in before}
    marked = []
    for line in lines:
        was = old.pop(key(line), None)
        if was is None:
            marked.append(Marked(line, "new"))
        else:
            marked.append(Marked(line) if content(was) == content(line) else Marked(line, "changed", was))
    return marked + [Marked(line, "gone") for line in old.values()]
