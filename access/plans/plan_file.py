"""Reads and writes files of wanted grants or of changes to plan, YAML or JSON; errors name the place in the file.

Every scalar is text, so that a schema may be called `no` or `2024`. Anchors, tags, further documents and duplicate
keys are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Annotated, Any, Literal

import yaml
from django.conf import settings
from pydantic import BeforeValidator
from pydantic.alias_generators import to_camel
from yaml import events

from access.plans.desired import MAX_GRANTS, Change, Wanted, WantedGrant, WantedRole
from authz.services.grant_entries import Entries, Given, read_entries
from metalake.bodies import require_few_values, too_many_values
from metalake.errors import Invalid, TooLarge, at
from metalake.kinds import Kind
from metalake.privileges import Effect
from metalake.wire import MAX_BODY_NESTING, Body, Moment, kind_of, quote, read, written

YAML, JSON = "application/yaml", "application/json"
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# Plain scalars that YAML 1.1 and 1.2 both read as strings; the emitter adds the quotes that its syntax needs.
_PLAIN = re.compile(r"(?!(?:y|yes|n|no|on|off|true|false|null|nan|inf|infinity)\Z)[^\W\d]", re.IGNORECASE)


# A state of grants


class TimedPrivilege(Body):
    """A privilege that is given for a time."""

    privilege: str
    start_time: Moment | None = None
    end_time: Moment | None = None


class SubtreeBody(Body):
    """The object that the file is about, with everything below it."""

    type: str
    full_name: str


class GrantBody(Body):
    """All that a role holds on one object."""

    type: str
    full_name: str
    allow: list[str | TimedPrivilege] = []
    deny: list[str | TimedPrivilege] = []


class RoleBody(Body):
    """A role; where users or groups are given, exactly these hold it directly."""

    name: str
    users: list[str] | None = None
    groups: list[str] | None = None
    grants: list[GrantBody] = []


class AccessFile(Body):
    """The wanted state of all grants of a metalake, or of one object and all below it."""

    metalake: str
    subtree: SubtreeBody | None = None
    roles: list[RoleBody]

    def wanted(self) -> Wanted:
        """Raises Invalid that names the entry, TooLarge for too many grants."""
        count = sum(len(grant.allow) + len(grant.deny) for role in self.roles for grant in role.grants)
        if count > MAX_GRANTS:
            raise TooLarge(f"The file holds {count} grants; {MAX_GRANTS} may be planned at once.")
        subtree = None
        if self.subtree:
            with at("subtree"):
                subtree = kind_of(self.subtree.type), self.subtree.full_name
        return Wanted(self.metalake, subtree, [_role(f"roles[{n}]", role) for n, role in enumerate(self.roles)])


def _role(place: str, role: RoleBody) -> WantedRole:
    grants = [_grant(f"{place}.grants[{n}]", grant) for n, grant in enumerate(role.grants)]
    return WantedRole(place, role.name, role.users, role.groups, grants)


def _grant(place: str, grant: GrantBody) -> WantedGrant:
    with at(place):
        kind = kind_of(grant.type)
        items = [(item, effect) for effect in Effect for item in getattr(grant, effect.value)]
        pairs = [
            (item, effect.value) if isinstance(item, str) else (item.privilege, effect.value, *_span(item))
            for item, effect in items
        ]
        return WantedGrant(place, kind, grant.full_name, read_entries(kind, pairs))


def _span(item: TimedPrivilege) -> tuple[Any, Any]:
    return item.start_time, item.end_time


# A list of changes, in the form in which a plan shows its own


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


class ObjectBody(Body):
    """An object by type and full name."""

    type: str
    full_name: str


class ChangeBody(Body):
    """One change, as a plan shows it: a role is made or dropped, is granted or loses a privilege, or is assigned.

    A revoke takes back what the role holds with that condition, whatever its times.
    """

    change: Literal["createRole", "grant", "revoke", "assign", "unassign", "dropRole"]
    role: str
    privilege: str | None = None
    condition: Annotated[Literal["allow", "deny"], BeforeValidator(_lower)] | None = None
    on: ObjectBody | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None
    user: str | None = None
    group: str | None = None

    def wanted(self) -> Change:
        """Raises Invalid."""
        match self.change:
            case "grant" | "revoke":
                self._require("privilege", "condition", "on")
                assert self.privilege and self.condition and self.on
                kind = kind_of(self.on.type)
                pair = self.privilege, self.condition, self.start_time, self.end_time
                ((privilege, given),) = read_entries(kind, [pair]).items()
                return Change(self.change, self.role, privilege, given, on=(kind, self.on.full_name))
            case "assign" | "unassign":
                sort = "user" if self.user is not None else "group"
                if self.user is None and self.group is None:
                    raise Invalid(f"user or group: is required to {self.change}")
                self._require(sort)
                return Change(self.change, self.role, holder=(sort, self.user or self.group or ""))
        self._require()
        return Change(self.change, self.role)

    def _require(self, *names: str) -> None:
        """Raise Invalid unless exactly these fields are set; times are allowed only with a privilege."""
        optional = {"start_time", "end_time"} if "privilege" in names else set()
        for name in ("privilege", "condition", "on", "start_time", "end_time", "user", "group"):
            is_there, shown = getattr(self, name) is not None, to_camel(name)
            if name in names and not is_there:
                raise Invalid(f"{shown}: is required to {self.change}")
            if is_there and name not in names and name not in optional:
                raise Invalid(f"{shown}: does not belong to {self.change}")


class ChangesFile(Body):
    """The changes to plan, and no others."""

    changes: list[ChangeBody]

    def wanted(self) -> list[Change]:
        """Raises Invalid that names the entry, TooLarge for too many."""
        if len(self.changes) > MAX_GRANTS:
            raise TooLarge(f"There are {len(self.changes)} changes; {MAX_GRANTS} may be planned at once.")
        changes = []
        for n, change in enumerate(self.changes):
            with at(f"changes[{n}]"):
                changes.append(change.wanted())
        return changes


# Reading


def read_file(raw: bytes, media_type: str = YAML, shape: type[AccessFile | ChangesFile] | None = None) -> Any:
    """What a file wants: a state (Wanted) or a list of changes, whichever `shape` says, or else the file itself.

    Raises Invalid for another type than YAML and JSON, with line and column if the file is not of its type, else with
    the entry that is wrong; and TooLarge.
    """
    is_yaml = media_type in (YAML, "application/x-yaml", "text/yaml")
    # A page of another site can send a form with the browser's credentials, but none of these types.
    if not is_yaml and not media_type.endswith(("/json", "+json")):
        raise Invalid("Send the file with Content-Type: application/yaml or application/json.")
    data = _parse_yaml(raw) if is_yaml else _parse_json(raw)
    if shape is None:
        shape = ChangesFile if isinstance(data, dict) and "changes" in data else AccessFile
    file = read(shape, data)
    del data  # frees memory: otherwise three copies of the file exist at once
    return file.wanted()


def text_of(raw: bytes) -> str:
    """The text of a file. Raises TooLarge, and Invalid if it is not UTF-8."""
    if len(raw) > (limit := settings.METALAKE_MAX_PLAN_BODY):
        raise TooLarge(f"A file of grants may take {limit} bytes, not {len(raw)}.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise Invalid(f"The file is not UTF-8: byte {wrong.start} is wrong.") from None


def _parse_json(raw: bytes) -> Any:
    text = text_of(raw)
    require_few_values(raw, settings.METALAKE_MAX_PLAN_VALUES)
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as wrong:
        raise Invalid(f"Not JSON: {wrong.msg} (line {wrong.lineno}, column {wrong.colno}).") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # a number of thousands of digits
        raise Invalid("Not a file of grants: it holds a number, and every value is text.") from None
    _refuse_odd_text(data)
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise Invalid(f"The key {quote(name)} is said twice in one object; say it once.")
        members[name] = value
    return members


def _refuse_odd_text(data: Any) -> None:
    """Raise Invalid for NUL and lone surrogates, which JSON can escape but no database can store."""
    waiting = [data]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str) and ("\0" in item or (not item.isascii() and _is_half(item))):
            raise Invalid(f"The text {quote(item)} holds a NUL or half a character.")


def _is_half(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _too_deep() -> Invalid:
    return Invalid(f"The file nests deeper than {MAX_BODY_NESTING} levels.")


def _parse_yaml(raw: bytes) -> Any:
    try:
        return _Builder(yaml.parse(text_of(raw), Loader=yaml.CSafeLoader)).build()
    except yaml.MarkedYAMLError as wrong:
        mark = wrong.problem_mark or wrong.context_mark
        raise Invalid(f"Not YAML: {wrong.problem or wrong.context}{_place(mark)}.") from None
    except yaml.YAMLError as wrong:  # a character that YAML does not allow
        raise Invalid(f"Not YAML: {str(wrong).partition(chr(10))[0]}.") from None


def _place(mark: Any) -> str:
    return f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""


class _Builder:
    """Builds data from YAML's balanced event stream."""

    def __init__(self, parsed: Iterator[events.Event]) -> None:
        self.events, self.room = parsed, settings.METALAKE_MAX_PLAN_VALUES

    def build(self) -> Any:
        result, documents = None, 0
        for event in self.events:
            if isinstance(event, events.NodeEvent):
                result = self._value(event, 0)
            elif isinstance(event, events.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _wrong("a second document begins; send one", event)
        return result

    def _value(self, event: Any, depth: int) -> Any:
        """The value that starts with this event, at nesting `depth`."""
        self._refuse_extras(event)
        if depth:
            self.room -= 1
            if self.room < 0:
                raise too_many_values(settings.METALAKE_MAX_PLAN_VALUES)
        if isinstance(event, events.ScalarEvent):
            return None if _is_null(event) else event.value
        if depth >= MAX_BODY_NESTING:
            raise _too_deep()
        rest = takewhile(lambda event: not isinstance(event, events.CollectionEndEvent), self.events)
        if isinstance(event, events.SequenceStartEvent):
            return [self._value(item, depth + 1) for item in rest]
        members: dict[str, Any] = {}
        for key in rest:
            self._refuse_extras(key)
            if not isinstance(key, events.ScalarEvent) or _is_null(key):
                raise _wrong("a key must be text", key)
            if key.value in members:
                raise _wrong(f"the key {quote(key.value)} is said twice; say it once", key)
            members[key.value] = self._value(next(self.events), depth + 1)
        return members

    @staticmethod
    def _refuse_extras(event: Any) -> None:
        if isinstance(event, events.AliasEvent):
            raise _wrong("an alias is not allowed here; write it out", event)
        if event.anchor is not None:
            raise _wrong("an anchor is not allowed here; write it out", event)
        if event.tag is not None:
            raise _wrong(f"the tag {quote(event.tag)} is not allowed", event)


def _is_null(event: events.ScalarEvent) -> bool:
    return bool(event.implicit[0]) and event.value in _NULLS


def _wrong(what: str, event: Any) -> Invalid:
    return Invalid(f"Not a file of grants: {what}{_place(event.start_mark)}.")


# Writing


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=None if _PLAIN.match(text) else "'")


_Dumper.add_representer(str, _Dumper.represent_text)


def as_data(wanted: Wanted) -> dict[str, Any]:
    """The file as plain data, without optional parts that are empty."""
    data: dict[str, Any] = {"metalake": wanted.metalake}
    if wanted.subtree:
        kind, full_name = wanted.subtree
        data["subtree"] = {"type": kind.value, "fullName": full_name}
    return data | {"roles": [_role_data(role) for role in wanted.roles]}


def _role_data(role: WantedRole) -> dict[str, Any]:
    holders = {f"{sort}s": names for sort, names in role.holders().items()}
    return {"name": role.name, **holders, "grants": [_grant_data(*grant[1:]) for grant in role.grants]}


def _grant_data(kind: Kind, full_name: str, entries: Entries) -> dict[str, Any]:
    data: dict[str, Any] = {"type": kind.value, "fullName": full_name}
    for effect in Effect:
        given = [
            _privilege_data(privilege.value, how) for privilege, how in sorted(entries.items()) if how.effect is effect
        ]
        if given:
            data[effect.value] = given
    return data


def _privilege_data(privilege: str, given: Given) -> str | dict[str, str]:
    data = {"privilege": privilege}
    if given.starts:
        data["startTime"] = written(given.starts)
    if given.ends:
        data["endTime"] = written(given.ends)
    return data if len(data) > 1 else privilege


def as_yaml(wanted: Wanted) -> str:
    return in_yaml(as_data(wanted), default_flow_style=None)


def in_yaml(data: Any, **style: Any) -> str:
    """Plain data as YAML, quoting whatever some parser would not read as a string."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110, **style)
