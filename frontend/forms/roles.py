"""The form that edits a role: objects that are being changed, in parts of one kind, and who gets or loses the role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.forms import ValidationError
from django.http import QueryDict
from django.utils import timezone
from django.utils.safestring import SafeString

from access.explain.grantable import GrantableObject, GrantablePrivilege, Named
from access.explain.queries import Place
from access.plans.role_edits import Edit
from authz.services.directory import did_you_mean
from authz.services.grant_entries import Entries, Given, check_spans
from authz.services.roles import RoleRecord
from frontend.forms.granting import DIVIDES, shortened
from frontend.forms.matrix import read_place
from frontend.forms.point_in_time import MomentField, MomentInput
from metalake.errors import Invalid
from metalake.kinds import KINDS, Kind
from metalake.privileges import Effect, Privilege

MOST_LINES = 1000  # objects that are added at once
MOST_PARTS = 20  # opened at once
NONE = "none"
"""The choice that takes a privilege away; an effect gives it, "" leaves it."""
_PAST = "This is in the past."


@dataclass(frozen=True)
class Choice:
    """A privilege of a part: what all its objects have of it now (`differs`: not the same), and what is chosen."""

    privilege: Privilege
    why_not: str
    now: Given | None
    differs: bool
    chosen: str

    @property
    def options(self) -> list[tuple[str, str]]:
        stays = "As now" if self.now or self.differs else "None"
        takes = [(NONE, "Take away")] if self.now or self.differs else []
        return [("", stays), (Effect.ALLOW.value, "Allow"), (Effect.DENY.value, "Deny"), *takes]


@dataclass
class Part:
    """Objects of one kind, in catalogs of one type, that are changed in the same way."""

    number: int
    kind: Kind
    objects: list[GrantableObject]
    chosen: Mapping[str, str]
    times: Mapping[str, str]
    errors: dict[str, str] = field(default_factory=dict)
    spans: dict[str, datetime | None] = field(default_factory=dict)
    groups: list[tuple[str, list[Choice]]] = field(default_factory=list)

    @property
    def lines(self) -> str:
        return "\n".join(spelled_out(one.on) for one in self.objects)

    @property
    def names(self) -> list[str]:
        return [one.on.full_name for one in self.objects]

    @property
    def plural(self) -> str:
        return KINDS[self.kind].plural.replace("_", " ")

    @property
    def moments(self) -> list[dict[str, Any]]:
        """The fields From and Until."""
        return [
            {
                "id": f"{name}-{self.number}",
                "label": label,
                "widget": self._picker(name),
                "error": self.errors.get(name, ""),
            }
            for name, label in (("starts", "From"), ("ends", "Until"))
        ]

    def _picker(self, name: str) -> SafeString:
        id = f"{name}-{self.number}"
        attributes = {"id": id, "aria-describedby": f"{id}-error"}
        return MomentInput().render(id, self.spans.get(name), attributes)

    def read(self, standing: Mapping[Place, Entries]) -> None:
        """Read the times and what is chosen, next to what the role has now (`standing`)."""
        for name, text in self.times.items():
            try:
                self.spans[name] = MomentField(required=False).clean(text)
            except ValidationError as wrong:
                self.errors[name] = " ".join(wrong.messages)
        by_label: dict[str, list[Choice]] = {}
        for one in self._privileges():
            now = {standing.get(each.on, {}).get(one.privilege) for each in self.objects}
            chosen = self.chosen.get(one.privilege.value, "")
            differs = len(now) > 1
            choice = Choice(one.privilege, one.why_not, None if differs else next(iter(now)), differs, chosen)
            by_label.setdefault(
                KINDS[one.about].plural.capitalize().replace("_", " ") if one.about else "Granting", []
            ).append(choice)
        self.groups = list(by_label.items())
        given = self._given()
        try:
            check_spans(dict(given), timezone.now())
        except Invalid:
            starts = self.spans.get("starts")
            is_past = starts is not None and starts <= timezone.now()
            self.errors["starts" if is_past else "ends"] = (
                _PAST if is_past or not starts else "It ends before it starts."
            )
        if any(self.spans.values()) and not given:
            self.errors["ends"] = "Choose what is allowed or denied for this time."

    def edits(self) -> Iterator[Edit]:
        removed = [(privilege, None) for privilege, how in self._chosen() if how == NONE]
        for one in self.objects:
            for privilege, given in (*self._given(), *removed):
                yield Edit(one.on, privilege, given)

    def _privileges(self) -> list[GrantablePrivilege]:
        """What the objects take, with the first reason why one of them may not be given it."""
        every: dict[Privilege, GrantablePrivilege] = {}
        for one in self.objects:
            for each in one.privileges:
                if each.privilege not in every or not every[each.privilege].why_not:
                    every[each.privilege] = each
        return list(every.values())

    def _chosen(self) -> list[tuple[Privilege, str]]:
        return [(one.privilege, one.chosen) for _, choices in self.groups for one in choices if one.chosen]

    def _given(self) -> list[tuple[Privilege, Given]]:
        spans = self.spans.get("starts"), self.spans.get("ends")
        return [(privilege, Given(Effect(how), *spans)) for privilege, how in self._chosen() if how != NONE]


class RoleEdit:
    """What the form of a role carries: only what is being changed, however much the role holds."""

    def __init__(self, sent: QueryDict, role: RoleRecord) -> None:
        self.sent = sent
        self.standing = {Place(on.kind, on.full_name): on.entries for on in role.grants}
        self.parts: list[Part] = []
        self.errors: dict[str, str] = {}
        self.wrong: list[str] = []  # lines that name no object
        self.named: Named | None = None
        self.unassign = [text for text in self._texts("unassign") if text.partition(":")[0] in ("user", "group")]
        self.objects = self.text("objects")  # what stays in the field

    def text(self, name: str) -> str:
        return self.sent.get(name, "").replace("\x00", "").strip()

    def _texts(self, name: str) -> list[str]:
        return [text.replace("\x00", "") for text in self.sent.getlist(name)]

    # Objects

    def asked(self) -> tuple[dict[int, list[Place]], dict[Place, str]]:
        """The objects of each part by its number, and those to add by the line that names them."""
        numbers = [int(text) for text in self._texts("part") if text.isascii() and text.isdigit() and len(text) < 4]
        parts = {
            number: list(self._places(self.text(f"on-{number}").splitlines()))
            for number in dict.fromkeys(numbers)
            if self.text("close") != str(number)
        }
        lines = [*self._texts("pick"), self.text("open")]
        if self.text("act") != "show":
            lines += self.objects.splitlines()
        lines = [line.strip() for line in lines if line.strip()]
        if len(lines) > MOST_LINES:
            self.errors["objects"] = f"These are {len(lines):,} objects; at most {MOST_LINES:,} are added at once."
            return parts, {}
        return parts, self._places(lines)

    def _places(self, lines: Iterable[str]) -> dict[Place, str]:
        places, wrong = {}, []
        for line in lines:
            try:
                places[read_place(line.strip())] = line.strip()
            except ValidationError as mistake:
                wrong.append((line, " ".join(mistake.messages)))
        self._say_wrong(wrong)
        return places

    def _say_wrong(self, wrong: list[tuple[str, str]]) -> None:
        if wrong:
            more = f" So are {len(wrong) - 3:,} more." if len(wrong) > 3 else ""
            sentences = [self.errors.get("objects", ""), *(sentence for _, sentence in wrong[:3])]
            self.errors["objects"] = " ".join(filter(None, sentences)) + more
            self.wrong += [line for line, _ in wrong]

    def open(
        self,
        parts: Mapping[int, list[Place]],
        added: Mapping[Place, str],
        objects: Mapping[Place, GrantableObject],
        wrong: Mapping[Place, str],
    ) -> None:
        """The parts with what may be granted on their objects; those to add become parts by kind."""
        self._say_wrong([(added.get(place, spelled_out(place)), sentence) for place, sentence in wrong.items()])
        opened = set()
        for number, places in parts.items():
            some = list(dict.fromkeys(objects[place] for place in places if place in objects))
            self._add(number, [one for one in some if one.on not in opened])
            opened |= {one.on for one in some}
        by_sort: dict[Any, list[GrantableObject]] = {}
        for place in added:
            if place in objects and objects[place].on not in opened:
                opened.add(objects[place].on)
                by_sort.setdefault((objects[place].on.kind, objects[place].catalog_type), []).append(objects[place])
        for some in by_sort.values():
            self._add(max((part.number for part in self.parts), default=0) + 1, some)
        if len(self.parts) > MOST_PARTS:
            self.errors["objects"] = f"{MOST_PARTS} kinds of change are made at once: apply these first."
            self.wrong += [line for part in self.parts[MOST_PARTS:] for line in part.lines.splitlines()]
            del self.parts[MOST_PARTS:]
        if added or "objects" in self.errors:
            self.objects = self.objects if len(self.objects.splitlines()) > MOST_LINES else "\n".join(self.wrong)

    def _add(self, number: int, objects: list[GrantableObject]) -> None:
        if not objects:
            return
        prefix = f"p-{number}-"
        chosen = {
            name.removeprefix(prefix): self.text(name)
            for name in self.sent
            if name.startswith(prefix) and self.text(name) in ("allow", "deny", NONE)
        }
        times = {name: self.text(f"{name}-{number}") for name in ("starts", "ends")}
        part = Part(number, objects[0].on.kind, objects, chosen, times)
        part.read(self.standing)
        self.parts.append(part)

    @property
    def edits(self) -> list[Edit]:
        return [edit for part in self.parts for edit in part.edits()]

    @property
    def is_wrong(self) -> bool:
        return bool(self.errors) or any(part.errors for part in self.parts)

    # People

    @property
    def names(self) -> list[str]:
        typed = DIVIDES.split(self.sent.get("more", "")) + DIVIDES.split(self.sent.get("paste", ""))
        names = [*self._texts("principal"), *(name.replace("\x00", "").strip() for name in typed)]
        return list(dict.fromkeys(filter(None, names)))

    def name(self, named: Named) -> None:
        self.named = named
        if named.unknown:
            meant = f" {did_you_mean(dict(named.meant))}" if named.meant else ""
            self.errors["more"] = f"No user or group has this name: {shortened(named.unknown)}.{meant}"
        elif named.ambiguous:
            name = named.ambiguous[0]
            self.errors["more"] = f"{name} is a user and a group: write user:{name} or group:{name}."

    @property
    def chips(self) -> list[tuple[str, str, str]]:
        """The people who get the role: what is sent, the name, and "user" or "group"."""
        return [(f"{sort}:{name}", name, sort) for sort, name in self.named.people] if self.named else []

    @property
    def more(self) -> str:
        """What stays in the field of names."""
        return ", ".join((*self.named.unknown, *self.named.ambiguous)) if self.named else ", ".join(self.names)


def spelled_out(place: Place) -> str:
    """The line that `read_place` reads as this object."""
    return f"{place.kind} {place.full_name}"
