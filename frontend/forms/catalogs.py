"""The form of a catalog, made from the settings that its provider declares; a new provider needs no change here.

Secrets are never sent back: a typed one is not part of any page, and a stored one only shows as set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from django import forms
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from catalogs.models import Catalog
from catalogs.secrets import MASK, is_secret
from catalogs.services.alterations import Alteration
from frontend.forms.properties import as_lines, numbered
from metalake.errors import AlreadyExists, Invalid, MetalakeError
from metalake.hierarchy import check_strict
from metalake.kinds import KINDS, LEAVES, Kind
from metalake.wire import complaint
from providers.base import Provider, Storage
from providers.registry import PROVIDERS, provider_class

PROPERTY, REMOVE = "property-", "remove-"
OTHERS, VERSION = "others", "version"
DIGITS = re.compile(r"[0-9]+")
QUOTED = re.compile(r"'([^']+)'")
WORDS = {"true": "yes", "false": "no"}
USUAL = (0, 10, 30, 60, 300, 900, 1_800, 3_600, 21_600, 43_200, 86_400, 604_800)
"""The durations to choose from, in seconds."""
TYPE_AGAIN = "Type it again: what is secret is never sent back to a page."
STALE = "The catalog was changed meanwhile by somebody else; nothing was saved. Open the form anew and type it there."


@dataclass(frozen=True)
class Choice:
    """A provider to choose, with what its catalogs hold: "tables"; `is_outside`: in another system."""

    name: str
    label: str
    holds: str
    is_outside: bool


def choices() -> list[Choice]:
    """All providers, by label."""
    listed = []
    for name in PROVIDERS:
        provider = provider_class(name)
        offers = provider.offers({})
        kind = min(offers.keys() & LEAVES, key=LEAVES.index)
        is_outside = offers[kind].storage is Storage.EXTERNAL
        listed.append(Choice(name, provider.label, KINDS[kind].plural, is_outside))
    return sorted(listed, key=lambda each: each.label.lower())


class DurationSelect(forms.Select):
    """Usual durations as "every 15 minutes"; a value that is none of them is one more choice."""

    def __init__(self, words: str, choices: list[tuple[str, str]], attrs: dict[str, Any]) -> None:
        super().__init__(attrs, choices)
        self.words = words

    def optgroups(self, name: str, value: list[Any], attrs: dict[str, Any] | None = None) -> list[Any]:
        self.choices = [*self.choices]
        for one in map(str, value):
            if one and all(one != str(known) for known, _ in self.choices):
                shown = in_words(self.words, int(one)) if DIGITS.fullmatch(one) and len(one) < 12 else one
                self.choices.append((one, shown))
        return super().optgroups(name, value, attrs)


def in_words(words: str, seconds: int) -> str:
    """`900` as "every 15 minutes", for the words "every {}": exact, in the largest unit that divides it."""
    sizes = ((604_800, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
    size, unit = next(each for each in sizes if (seconds and seconds % each[0] == 0) or each[0] == 1)
    count = seconds // size
    return words.format(f"{count} {unit}{'' if count == 1 else 's'}").replace("every 1 ", "every ")


@dataclass(frozen=True)
class Group:
    """The fields below one title, each with its checkbox for removal if there is one; a folded one is opened first."""

    title: str
    lead: str
    is_folded: bool
    rows: list[tuple[forms.BoundField, forms.BoundField | None]]

    @property
    def is_open(self) -> bool:
        """Whether something in it is filled in or wrong."""
        fields = [field for pair in self.rows for field in pair if field is not None]
        return any(field.errors or field.value() for field in fields)


@dataclass(frozen=True)
class Declared:
    """One property of a provider's settings."""

    name: str
    info: FieldInfo

    @property
    def types(self) -> list[Any]:
        """Its types, without None; several if it is a union."""
        annotation = self.info.annotation
        parts = [annotation] if get_origin(annotation) is Literal else list(get_args(annotation)) or [annotation]
        return [part for part in parts if part is not NoneType]

    @property
    def is_secret(self) -> bool:
        return SecretStr in self.types

    @property
    def is_synonym(self) -> bool:
        """Whether it is another name for a property, which needs no second field."""
        return bool(self.extra.get("synonym"))

    @property
    def extra(self) -> Mapping[str, Any]:
        """What the declaration says of the form: `synonym`; `duration`, as "every {}", with the words for `none`."""
        extra = self.info.json_schema_extra
        return extra if isinstance(extra, dict) else {}

    @property
    def default(self) -> str:
        value = self.info.get_default()
        return "" if self.info.is_required() or value is None else _text(value)

    @property
    def options(self) -> list[str]:
        if self.types == [bool]:
            return ["true", "false"]
        literal = next((part for part in self.types if get_origin(part) is Literal), None)
        return [_text(option) for option in get_args(literal)]

    def field(self, stored: str | None, fixed: str | None) -> forms.Field:
        """The form field; `stored` is the catalog's value, `fixed` the reason why it cannot change."""
        common: dict[str, Any] = {
            "label": self.name,
            "help_text": _sentences(self.info.description, fixed and f"It cannot change: {fixed}"),
            "required": self.info.is_required() and not (self.is_secret and stored == MASK),
            "disabled": fixed is not None,
        }
        if self.is_secret:
            shown = f"{MASK} (kept when left empty)" if stored == MASK else ""
            attributes = {"autocomplete": "new-password", "placeholder": shown}
            return forms.CharField(widget=forms.PasswordInput(attrs=attributes), strip=False, **common)
        common["initial"] = stored
        if options := self.options:
            options = [*options, stored] if stored and stored not in options else options  # stored in another spelling
            first = [] if self.info.is_required() else [("", f"{WORDS.get(self.default, self.default)} (default)")]
            return forms.ChoiceField(choices=first + [(one, WORDS.get(one, one)) for one in options], **common)
        attributes = {"autocomplete": "off", "placeholder": self.default, "spellcheck": "false"}
        if self.types == [int]:
            bounds = {key: _bound(self.info, bound) for key, bound in (("min_value", "ge"), ("max_value", "le"))}
            if words := self.extra.get("duration"):
                return forms.IntegerField(widget=self._durations(words, bounds), **bounds, **common)
            # A browser would show an empty field for a value that is no number.
            shows_all = forms.TextInput if stored and not DIGITS.fullmatch(stored) else forms.NumberInput
            return forms.IntegerField(widget=shows_all(attrs=attributes), **bounds, **common)
        return forms.CharField(widget=forms.TextInput(attrs=attributes), **common)

    def _durations(self, words: str, bounds: Mapping[str, Any]) -> DurationSelect:
        least, most = bounds["min_value"] or 1, bounds["max_value"]
        usual = [(str(one), in_words(words, one)) for one in USUAL if least <= one <= most]
        return DurationSelect(words, [("", f"{self.extra['none']} (default)"), *usual], {"autocomplete": "off"})


def declared_of(provider: type[Provider]) -> list[Declared]:
    """The properties of a provider, its own first, then those that it shares with others."""
    classes = provider.settings.__mro__
    places = {
        name: place
        for place, each in reversed(list(enumerate(classes)))
        for name in vars(each).get("__annotations__", ())
    }
    fields = sorted(provider.settings.model_fields.items(), key=lambda field: places[field[0]])
    return [Declared(info.alias or name, info) for name, info in fields]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bound(info: FieldInfo, name: str) -> Any:
    return next((getattr(each, name) for each in info.metadata if hasattr(each, name)), None)


def _one_line(text: str) -> str:
    """The text as a browser returns it from a field of one line."""
    return re.sub(r"[\r\n]", "", text)


def _lines(text: str) -> str:
    """The text with line breaks normalized as stored; browsers send others."""
    return re.sub(r"\r\n?", "\n", text)


def _sentences(*texts: str | None) -> str:
    return " ".join(text if text.endswith(".") else f"{text}." for text in texts if text)


class CatalogForm(forms.Form):
    """The form of a new catalog of a provider, or with `row` of an existing one; each field shows its own errors."""

    name = forms.CharField(max_length=64, widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}))
    comment = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off"}))

    def __init__(self, provider: type[Provider], data: Mapping[str, Any] | None = None, row: Catalog | None = None):
        super().__init__(data)
        self.provider, self.row = provider, row
        self.stored: dict[str, str] = dict(row.properties) if row else {}
        self.declared = declared_of(provider)
        names = {each.name for each in self.declared}
        if row is not None:
            self.initial = {"name": row.name, "comment": row.comment or "", VERSION: str(row.version)}
            self.fields[VERSION] = forms.CharField(required=False, widget=forms.HiddenInput)
        for each in self.declared:
            if each.is_synonym and each.name not in self.stored:
                continue
            fixed = provider.immutable.get(each.name) if row is not None else None
            self.fields[PROPERTY + each.name] = each.field(self.stored.get(each.name), fixed)
            if each.is_secret and each.name in self.stored and not each.info.is_required():
                self.fields[REMOVE + each.name] = forms.BooleanField(required=False, label=f"Remove {each.name}")
        others = {key: value for key, value in self.stored.items() if key not in names}
        free = as_lines(others)
        self.raw_properties = free.raw
        self.fields[OTHERS] = forms.CharField(
            required=False,
            label="Other properties",
            help_text="One a line, as name=value. They are kept with the catalog."
            + (
                f" {MASK} stands for a secret that is kept."
                if MASK in (others[key] for key in others.keys() - free.raw)
                else ""
            ),
            initial=free.text,
            widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off"}),
        )
        for bound in self.visible_fields():
            described = [f"{bound.auto_id}-help"] if bound.field.help_text else []
            bound.field.widget.attrs["aria-describedby"] = " ".join([*described, f"{bound.auto_id}-error"])

    def groups(self) -> list[Group]:
        """The properties' fields by group, the rare ones last.

        Those of no group come first, under the provider's label, the required ones of them before the others.
        """
        settings = self.provider.settings
        grouped = settings.grouped()
        placed = {name for names in grouped.values() for name in names}
        alone = [each.name for each in self.declared if each.name not in placed]
        alone.sort(key=lambda name: PROPERTY + name in self.fields and not self.fields[PROPERTY + name].required)
        rows = {
            title: [
                (self[PROPERTY + name], self[REMOVE + name] if REMOVE + name in self.fields else None)
                for name in names
                if PROPERTY + name in self.fields
            ]
            for title, names in {self.provider.label: alone, **grouped}.items()
        }
        groups = [
            Group(title, settings.leads.get(title, ""), title in settings.rare, fields)
            for title, fields in rows.items()
            if fields
        ]
        others = Group("More", "Properties for engines and for the storage.", True, [(self[OTHERS], None)])
        return [*sorted(groups, key=lambda group: group.is_folded), others]

    @property
    def is_stale(self) -> bool:
        """Whether the catalog has changed since the form was made."""
        return self.row is not None and self.is_bound and self.data.get(VERSION) != str(self.row.version)

    # Reading what was typed

    def clean_name(self) -> str:
        name = self.cleaned_data["name"]
        try:
            check_strict(name, Kind.CATALOG)
        except Invalid as wrong:
            raise forms.ValidationError(wrong.message) from None
        return str(name)

    def clean_comment(self) -> str:
        """The comment; one that the user did not change stays exactly as it is stored."""
        stored = (self.row and self.row.comment) or ""
        is_alone = _lines(self.data.get("comment", "")) == _lines(stored)
        return stored if is_alone else _lines(self.cleaned_data["comment"])

    def clean_others(self) -> dict[str, str]:
        """The properties in the field for others."""
        properties: dict[str, str] = {}
        for number, key, value in numbered(self.cleaned_data[OTHERS]):
            if PROPERTY + key in self.fields:
                raise forms.ValidationError(f"Line {number}: {key} has a field of its own above.")
            if key in self.raw_properties:
                raise forms.ValidationError(f"Line {number}: {key} is kept as shown below; change it over the API.")
            properties[key] = value
        return properties

    def clean(self) -> None:
        """Add all errors that the provider's settings report."""
        try:
            self.provider.settings.model_validate(self.properties())
        except ValidationError as wrong:
            for fault in wrong.errors(include_input=False, include_url=False):
                name = str(fault["loc"][0]) if fault["loc"] else ""
                if PROPERTY + name not in self.errors:
                    self._blame(name, f"It {complaint(fault)}.")
        except MetalakeError as refusal:
            self.refuse(refusal)

    def properties(self) -> dict[str, str]:
        """The properties after saving; the mask means that a stored secret stays."""
        wanted: dict[str, str] = self.raw_properties | (self.cleaned_data.get(OTHERS) or {})
        for each in self.declared:
            value = self.cleaned_data.get(PROPERTY + each.name)
            if self._is_left_alone(each):
                wanted[each.name] = self.stored[each.name]
            elif value not in (None, ""):
                wanted[each.name] = str(value)
            elif each.is_secret and each.name in self.stored and not self.cleaned_data.get(REMOVE + each.name):
                wanted[each.name] = MASK
        return wanted

    def _is_left_alone(self, each: Declared) -> bool:
        """Whether the field of a stored value came back as it was shown, however its type would spell it."""
        field = self.fields.get(PROPERTY + each.name)
        if field is None or each.is_secret or each.name not in self.stored:
            return False
        typed = self.data.get(PROPERTY + each.name)
        return field.disabled or (typed is not None and _one_line(typed) == _one_line(self.stored[each.name]))

    def alteration(self) -> Alteration:
        """The changes from the row to what was typed; if the form is not stale, only what the user changed."""
        wanted = self.properties()
        gone = [(key, None) for key in self.stored if key not in wanted]
        changed = [(key, value) for key, value in wanted.items() if self.stored.get(key) != value]
        comment, name = self.cleaned_data["comment"], self.cleaned_data["name"]
        return Alteration(
            new_name=name if self.row and name != self.row.name else None,
            comment=comment,
            sets_comment=bool(self.row and comment != (self.row.comment or "")),
            properties=(*gone, *changed),
        )

    # Showing errors

    def refuse(self, refusal: MetalakeError) -> None:
        """Show a service's error at the field that it names."""
        named = [name for name in QUOTED.findall(refusal.message) if PROPERTY + name in self.fields]
        near = refusal.message.startswith("Unknown property")
        if isinstance(refusal, AlreadyExists):
            self.add_error("name", refusal.message)
        else:
            self._blame(named[0] if named and not near else OTHERS if near else "", refusal.message)

    def _blame(self, name: str, message: str) -> None:
        field = name if name == OTHERS else PROPERTY + name
        self.add_error(field if field in self.fields else None, self.hushed(message))

    def hushed(self, message: str) -> str:
        """The message with entered secrets masked, in case it quotes one."""
        typed = {name.removeprefix(PROPERTY): str(value) for name, value in self.data.items()}
        typed |= dict(line.partition("=")[::2] for line in typed.get(OTHERS, "").splitlines())
        for key, value in typed.items():
            if len(value.strip()) > 3 and is_secret(key.strip(), value, self.provider.settings.declares_secret()):
                message = message.replace(value.strip(), MASK)
        return message

    def without_secrets(self) -> CatalogForm:
        """A copy of the form for a page: typed secrets are left out and asked for again."""
        shown = dict(self.data.items())
        asked_again = []
        for each in self.declared:
            typed = shown.get(PROPERTY + each.name)
            if typed and is_secret(each.name, typed, self.provider.settings.declares_secret()):
                shown[PROPERTY + each.name] = ""
                asked_again.append(PROPERTY + each.name)
        lines = str(shown.get(OTHERS) or "").splitlines()
        safe = [line for line in lines if not _is_secret_line(line)]
        if safe != lines:
            shown[OTHERS] = "\n".join(safe)
            asked_again.append(OTHERS)
        copy = type(self)(self.provider, shown, self.row)
        copy.cleaned_data, copy._errors = {}, self.errors  # type: ignore[attr-defined]
        for name in asked_again:
            copy.fields[name].widget.attrs["required"] = name != OTHERS
            copy.add_error(name, TYPE_AGAIN)
        return copy


def _is_secret_line(line: str) -> bool:
    key, _, value = line.partition("=")
    return value.strip() != MASK and is_secret(key.strip(), value)
