"""The file of wanted changes, YAML or JSON, in the form in which a plan shows its own; errors name the entry."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator
from pydantic.alias_generators import to_camel

from access.plans.desired import MAX_GRANTS, Change
from authz.services.grant_entries import read_entries
from metalake.errors import Invalid, TooLarge, at
from metalake.wire import Body, Moment, kind_of


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
        """Raise Invalid unless just these fields are there, and times at most for a privilege."""
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
