"""The sentences that changes of access are told in."""

from __future__ import annotations

from collections.abc import Sequence

from access.history.current import GrantRow
from metalake.privileges import Effect

VERBS = {Effect.DENY: "denies", Effect.ALLOW: "allows"}


def granted(role: str, on: str, before: Sequence[GrantRow], after: Sequence[GrantRow]) -> list[str]:
    """["Role readers allows select_table on catalog lake."], or that it does so no longer, or at other times."""
    old = {(row.effect, row.privilege): (row.starts_at, row.ends_at) for row in before}
    new = {(row.effect, row.privilege): (row.starts_at, row.ends_at) for row in after}
    says = []
    for effect, verb in VERBS.items():
        for pairs, words, when in (
            (old.keys() - new.keys(), f"no longer {verb}", ""),
            (new.keys() - old.keys(), verb, ""),
            ({pair for pair in old.keys() & new.keys() if old[pair] != new[pair]}, verb, " at other times than before"),
        ):
            if names := sorted(privilege for of, privilege in pairs if of is effect):
                says.append(f"Role {role} {words} {', '.join(names)} on {on}{when}.")
    return says


def holding(who: str, come: Sequence[str], gone: Sequence[str]) -> list[str]:
    """["mia holds role readers."], or that she does so no longer."""
    return _changed(who, "holds role", "no longer holds role", come, gone)


def inside(who: str, come: Sequence[str], gone: Sequence[str]) -> list[str]:
    """["mia is in group analysts."], or that she is no longer."""
    return _changed(who, "is in group", "is no longer in group", come, gone)


def joined(who: str, *, is_in: bool) -> str:
    return f"{who} is a member." if is_in else f"{who} is no longer a member."


def placed(event: str, *, was_there: bool, is_there: bool) -> str:
    """What became of the object itself; a store from before the history has it from the history's beginning."""
    if event == "history.begun":
        return "The history begins."
    if was_there and is_there:
        return "It was moved."
    return "It was made." if is_there else "It was dropped."


def _changed(who: str, now: str, no_longer: str, come: Sequence[str], gone: Sequence[str]) -> list[str]:
    says = [f"{who} {no_longer} {', '.join(gone)}."] if gone else []
    return [*says, f"{who} {now} {', '.join(come)}."] if come else says
