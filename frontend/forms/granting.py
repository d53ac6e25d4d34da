"""The form of a grant: principals, privileges, start and end; filled from a link or from the submitted form."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.http import urlencode

from access.explain.grantable import Grantable, Named
from access.explain.queries import Whom
from access.plans.recipients import USES
from authz.services.directory import did_you_mean
from authz.services.grant_entries import Entries, Given, check_spans
from frontend.confusables import spelled
from frontend.forms.point_in_time import MomentField
from metalake.errors import Invalid
from metalake.levels import Level
from metalake.privileges import Effect, Privilege
from metalake.wire import written

CHOSEN = "chosen"
"""The alternative to a level: the ticked privileges."""
DIVIDES = re.compile(r"[,;\r\n]+")
LONGEST_LINK = 6000  # characters
SHOWN_NAMES = 5
LEVELS = [(Level.READER.value, "Reader"), (Level.WRITER.value, "Writer"), (Level.MANAGER.value, "Manager")]


class AnyTexts(forms.MultipleChoiceField):
    """Any strings, unchanged but for NUL, which names cannot contain and which is removed."""

    def to_python(self, value: Any) -> list[str]:
        return [text.replace("\x00", "") for text in super().to_python(value)]

    def valid_value(self, value: str) -> bool:
        return True


class GrantForm(forms.Form):
    """A grant on an object; `principal` are exact names, `more` and `paste` lists."""

    principal = AnyTexts(required=False)
    more = forms.CharField(required=False, max_length=20_000)
    paste = forms.CharField(required=False, max_length=500_000)
    level = forms.ChoiceField(required=False, choices=[*LEVELS, (CHOSEN, "Choose privileges")])
    privilege = AnyTexts(required=False)
    effect = forms.ChoiceField(required=False, choices=[(Effect.ALLOW.value, "Allow"), (Effect.DENY.value, "Deny")])
    starts = MomentField(required=False, label="From")
    ends = MomentField(required=False, label="Until")
    role = forms.CharField(required=False, max_length=200)

    def __init__(self, sent: QueryDict, may: Grantable) -> None:
        self.is_role_replaced = "take" in sent
        if self.is_role_replaced:  # a button of the preview overrides the field
            sent = sent.copy()
            sent.setlist("role", sent.getlist("take"))
        super().__init__(sent, auto_id="grant-%s")
        for name in ("starts", "ends"):
            self.fields[name].widget.attrs["aria-describedby"] = f"grant-{name}-error"
        self.grantable, self.sent = may, sent
        self.named: Named | None = None

    # Choices

    @property
    def people(self) -> tuple[Whom, ...]:
        return self.named.people if self.named else ()

    @property
    def chips(self) -> list[tuple[str, str, str]]:
        """The people that the form shows as chosen: submitted value, name, and "user" or "group" if known."""
        if self.named is None:
            return [(name, name, "") for name in self.cleaned_data.get("principal", [])]
        return [(f"{sort}:{name}", name, sort) for sort, name in self.people]

    @property
    def text(self) -> str:
        """What stays in the field for names: the unknown ones."""
        if self.named is None:
            return str(self.cleaned_data.get("more", ""))
        return ", ".join((*self.named.unknown, *self.named.ambiguous))

    @property
    def messages(self) -> list[tuple[str, str]]:
        """The error of each field that shows one, "" for none."""
        return [(name, " ".join(map(str, self[name].errors))) for name in _SAYS_ERRORS]

    @property
    def begun(self) -> str:
        """The name that is still being typed: the last in the field, if others begin so and no button was pressed."""
        last = DIVIDES.split(self.cleaned_data.get("more", ""))[-1].strip()
        is_typing = "act" not in self.sent and self.named is not None and last == self.named.begun
        return last if is_typing else ""

    @property
    def names(self) -> list[str]:
        """All names as given, without duplicates."""
        return list(self._counts)

    @property
    def repeated(self) -> str:
        """The names that were given more than once, as text."""
        return shortened([spelled(name) for name, count in self._counts.items() if count > 1])

    @property
    def _counts(self) -> Counter[str]:
        cleaned = self.cleaned_data
        listed = DIVIDES.split(cleaned.get("more", "")) + DIVIDES.split(cleaned.get("paste", ""))
        return Counter(filter(None, [*cleaned.get("principal", []), *(name.strip() for name in listed)]))

    @cached_property
    def chosen_level(self) -> str:
        """A level or CHOSEN; Reader unless the form or the link says otherwise."""
        given = self.sent.get("level")
        if given in dict(self.fields["level"].choices):  # type: ignore[attr-defined]
            return str(given)
        return CHOSEN if self.sent.getlist("privilege") else Level.READER.value

    @cached_property
    def ticked(self) -> frozenset[Privilege]:
        """The privileges that the form shows as chosen."""
        if self.chosen_level != CHOSEN:
            return frozenset(self.grantable.levels[Level(self.chosen_level)])
        known = set(Privilege)
        return frozenset(Privilege(name) for name in self.sent.getlist("privilege") if name in known)

    @property
    def effect_chosen(self) -> Effect:
        return Effect.DENY if self.sent.get("effect") == Effect.DENY else Effect.ALLOW

    @cached_property
    def declined(self) -> frozenset[Privilege]:
        """The USE_* that are not granted along where missing: excluded by name, or offered and not ticked."""
        unticked = set(self.sent.getlist("offered")) - set(self.sent.getlist("use"))
        return frozenset(use for use in USES if use in unticked or use in self.sent.getlist("without"))

    def entries(self) -> Entries:
        given = Given(self.effect_chosen, self.cleaned_data.get("starts"), self.cleaned_data.get("ends"))
        return {privilege: given for privilege in Privilege if privilege in self.ticked}

    # Validation

    def clean(self) -> dict[str, Any]:
        for choice in ("level", "effect"):
            if self.errors.pop(choice, None):
                self.add_error("privilege", f"There is no such {choice}.")
        self._check_privileges()
        try:
            check_spans(self.entries(), timezone.now())
        except Invalid:
            starts = self.cleaned_data.get("starts")
            wrong = "starts" if starts and starts <= timezone.now() else "ends"
            self.add_error(wrong, _PAST[wrong] if wrong == "starts" or not starts else "It has to end after it starts.")
        return self.cleaned_data

    def _check_privileges(self) -> None:
        unknown = set(self.sent.getlist("privilege")) - set(Privilege)
        if self.chosen_level == CHOSEN and unknown:
            self.add_error("privilege", f"There is no privilege {shortened(sorted(unknown))}.")
        refused = [each for each in self.grantable.privileges if each.privilege in self.ticked and each.why_not]
        for each in refused:
            self.add_error("privilege", f"{each.privilege} cannot be granted here by you. {each.why_not}")
        elsewhere = self.ticked - {each.privilege for each in self.grantable.privileges}
        if elsewhere:
            self.add_error("privilege", f"{shortened(sorted(elsewhere))} is not granted on a {self.grantable.on.kind}.")

    def name(self, named: Named) -> None:
        """Set the people that were looked up, and report unknown and ambiguous names."""
        self.named = named
        unknown = [name for name in named.unknown if name != self.begun]
        if unknown:
            word = "names are" if len(unknown) > 1 else "name is"
            meant = f" {did_you_mean(dict(named.meant))}" if named.meant else ""
            self.add_error("more", f"{len(unknown)} {word} nobody's here: {shortened(unknown)}.{meant}")
        for name in named.ambiguous:
            self.add_error("more", f"{name} is a user and a group: write user:{name} or group:{name}.")

    @property
    def is_ready(self) -> bool:
        """Whether there is something to preview."""
        return bool(self.people and self.ticked) and not self.errors

    # As a link

    def query(self) -> str:
        """The query string that prefills this form; without the people if they are too many for a link."""
        pairs = self._pairs()
        text = urlencode(pairs)
        if len(text) > LONGEST_LINK:
            text = urlencode([pair for pair in pairs if pair[0] != "principal"])
        return text

    @property
    def digest(self) -> str:
        """A digest of the fields: what is applied must be what was previewed."""
        return hashlib.sha256(urlencode(sorted(self._pairs())).encode()).hexdigest()[:32]

    def _pairs(self) -> list[tuple[str, str]]:
        exact = [f"{sort}:{name}" for sort, name in self.people]
        pairs = [("principal", name) for name in exact or self.names]
        if self.chosen_level == CHOSEN:
            pairs += [("privilege", privilege.value) for privilege in Privilege if privilege in self.ticked]
        else:
            pairs.append(("level", self.chosen_level))
        cleaned = self.cleaned_data
        pairs += [(name, written(cleaned[name])) for name in ("starts", "ends") if cleaned.get(name)]
        if cleaned.get("role"):
            pairs.append(("role", cleaned["role"].strip()))
        if self.effect_chosen is Effect.DENY:
            pairs.append(("effect", Effect.DENY.value))
        return pairs + [("without", use.value) for use in sorted(self.declined)]


_SAYS_ERRORS = ("more", "paste", "privilege", "starts", "ends", "role")
_PAST = {"starts": "It starts in the past: leave it empty to begin at once.", "ends": "It ends in the past."}


def shortened(names: Sequence[str]) -> str:
    """ "a, b and 3 more"."""
    more = len(names) - SHOWN_NAMES
    text = ", ".join(name if len(name) <= 60 else f"{name[:60]}…" for name in names[:SHOWN_NAMES])
    return f"{text} and {more:,} more" if more > 0 else text
