"""The grant form as displayed: its choices, and the proposal for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from access.explain.grantable import Grantable, Scope
from access.explain.queries import Place
from access.plans.apply import Preview
from access.plans.proposals import Proposal
from access.plans.recipients import Note
from authz import operations
from frontend.confusables import spelled
from frontend.forms.granting import CHOSEN, LEVELS, GrantForm, shortened
from metalake.full_names import dotted
from metalake.kinds import KINDS
from metalake.levels import Level
from metalake.lineage import Located
from metalake.privileges import Effect, Privilege

SHOWN_NOTES = 12


@dataclass
class GrantPanel:
    """The form as displayed: `opened` is the page's object; the form is about the chosen scope.

    `moved` says how rights changed since `before` was shown.
    """

    opened: Located
    scopes: tuple[Scope, ...]
    form: GrantForm
    proposal: Proposal | None = None
    refusal: str = ""
    moved: str = ""
    before: Preview | None = None

    @property
    def on(self) -> Located:
        return self.form.grantable.on

    @property
    def place(self) -> Place:
        return place_of(self.on)

    @property
    def metalake(self) -> str:
        return self.on.metalake.name

    @property
    def sentence(self) -> str:
        """What is granted, in a sentence: "analyst may read lake.travel and everything below it".

        If others have to be asked, the effect of DENYs is unknown: "analyst is to read ...".
        """
        names = shortened([spelled(name) for _, name in self.form.people])
        is_deny = self.form.effect_chosen is Effect.DENY
        be = "is" if len(self.form.people) == 1 else "are"
        is_wish = bool(self.proposal and self.proposal.asks)
        may = f"{be} to" if is_wish else "may"
        if self.form.chosen_level == CHOSEN:
            listed = shortened(sorted(self.form.ticked))
            denied = f"{be} to be denied" if is_wish else f"{be} denied"
            does = f"{names} {denied if is_deny else f'{may} use'} {listed} on"
        else:
            may_not = f"{be} not to" if is_wish else "may not"
            does = f"{names} {may_not if is_deny else may} {Level(self.form.chosen_level).verb}"
        if is_wish:
            return f"{does} {spelled(dotted(self.on.full_name))}"
        planned = self.proposal and self.proposal.planned
        # On apply there is no proposal: the form repeats what it showed.
        excepts = bool(planned.blast.refused) if planned else "excepts" in self.form.data
        return f"{does} {covered(self.on)}{', except what stays refused' if excepts else ''}"

    @property
    def announced(self) -> str:
        """What a screen reader says when the preview is there."""
        if self.refusal or self.moved:
            return ""  # shown as an alert
        planned = self.proposal and self.proposal.planned
        return f"{self.sentence}: {planned.summary}." if planned else ""

    @property
    def notes(self) -> dict[str, str]:
        """What is already effective for all of the people, by privilege."""
        if self.proposal is None:
            return {}
        effective: dict[Privilege, list[str]] = {}
        for note in self.proposal.notes:
            if note.verdict == "effective":
                effective.setdefault(note.privilege, []).append(note.says)
        everybody = len(self.form.people)
        return {
            privilege.value: effective[privilege][0] if len(effective.get(privilege, ())) == everybody else ""
            for privilege, _, _ in self.form.grantable.privileges
        }

    @property
    def worth_telling(self) -> list[Note]:
        """Notes on what is not simply new: already effective, beaten, broken, or later."""
        if self.proposal is None:
            return []
        planned = self.proposal.planned
        here = [one for one in planned.blast.refused if one.object_id == self.on.id] if planned else []
        known = {(name, privilege) for one in here for name in one.names for privilege in one.privileges}
        notes = [note for note in self.proposal.notes if note.verdict != "new"]
        return [note for note in notes if note.verdict != "beaten" or (note.whom.name, note.privilege) not in known]

    @property
    def shown_notes(self) -> list[Note]:
        return self.worth_telling[:SHOWN_NOTES]

    @property
    def more_notes(self) -> int:
        return len(self.worth_telling[SHOWN_NOTES:])

    @property
    def declined(self) -> list[Privilege]:
        """The declined USE_* that have no checkbox now."""
        uses = self.proposal.use if self.proposal else ()
        return sorted(self.form.declined - {use.privilege for use in uses if use.is_offered})

    @property
    def more_holders(self) -> int:
        """How many hold the role in addition to those named."""
        names, count = (self.proposal and self.proposal.other_holders) or ((), 0)
        return count - len(names)


def place_of(on: Located) -> Place:
    return Place(on.kind, dotted(on.full_name))


def covered(on: Located) -> str:
    """The object with what lies below it, in words."""
    name = spelled(dotted(on.full_name))
    return f"{name} and everything below it" if on.kind in operations.FAMILIES["list_below"] else name


def levels(may: Grantable) -> list[dict[str, Any]]:
    """The levels with their privileges here, each with why the caller may not give it."""
    return [_level(may, value, label) for value, label in LEVELS]


def _level(may: Grantable, value: str, label: str) -> dict[str, Any]:
    privileges = may.levels[Level(value)]
    refused = [each for each in may.privileges if each.privilege in privileges and each.why_not]
    why_not = f"It has {refused[0].privilege}. {refused[0].why_not}" if refused else ""
    return {"value": value, "label": label, "privileges": privileges, "why_not": why_not}


def groups(drawer: GrantPanel) -> list[dict[str, Any]]:
    """The privileges grouped by what they are about, each with whether it is ticked and why it cannot be."""
    by_label: dict[str, list[dict[str, Any]]] = {}
    may, ticked, notes = drawer.form.grantable, drawer.form.ticked, drawer.notes
    for privilege, about, why_not in may.privileges:
        of_levels = " ".join(level for level, some in may.levels.items() if privilege in some)
        row = {"name": privilege.value, "why_not": why_not, "levels": of_levels, "is_ticked": privilege in ticked}
        row["note"] = notes.get(privilege.value, "")
        by_label.setdefault(KINDS[about].plural.capitalize() if about else "Granting", []).append(row)
    return [{"label": label, "rows": rows} for label, rows in by_label.items()]
