"""The access levels Reader, Writer and Manager: sets of privileges, derived from the kind declarations.

Source: docs/authorization.md, "Levels".
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from metalake.kinds import KINDS, LEAVES, Kind, LeafRights, family, grantable_on
from metalake.privileges import Privilege


class Level(StrEnum):
    """A set of privileges on an object and everything below it; each level includes the previous one."""

    READER = "reader"
    WRITER = "writer"
    MANAGER = "manager"

    @property
    def verb(self) -> str:
        """The level as a verb: "analyst may read lake.travel"."""
        return _VERBS[self]


_VERBS = {Level.READER: "read", Level.WRITER: "read and write", Level.MANAGER: "read, write and grant access to"}


def privileges_of(level: Level, kind: Kind, catalog_type: str | None = None) -> tuple[Privilege, ...]:
    """The privileges of a level that can be granted on an object of this kind, in a catalog of that type if given."""
    members = _MEMBERS[level]
    return tuple(
        privilege
        for privilege in Privilege
        if privilege in members
        and kind in grantable_on(privilege)
        and (catalog_type is None or family(privilege) in (None, catalog_type))
    )


def telling_privilege(level: Level, kind: Kind) -> Privilege:
    """The one privilege that a question about this level on a kind is about: of a container, about its tables."""
    if level is Level.MANAGER:
        return Privilege.MANAGE_GRANTS
    rights = KINDS[kind].rights or KINDS[Kind.TABLE].rights
    assert rights is not None
    some = _reading(rights) if level is Level.READER else set(rights.alter)
    return min(some or rights.load, key=list(Privilege).index)


def highest(usable: Collection[Privilege], kind: Kind, catalog_type: str | None = None) -> Level | None:
    """The highest level of which all privileges are among these, on an object of this kind; None for not even one."""
    complete = [level for level in Level if set(privileges_of(level, kind, catalog_type)) <= set(usable)]
    return complete[-1] if complete and privileges_of(complete[-1], kind, catalog_type) else None


def signs_of(level: Level) -> frozenset[Privilege]:
    """The privileges any of which is enough to read, to change or to grant, which is what the levels are for."""
    return _SIGNS[level]


def _members() -> dict[Level, frozenset[Privilege]]:
    leaves = [rights for kind in LEAVES if (rights := KINDS[kind].rights)]
    reading = {Privilege.USE_CATALOG, Privilege.USE_SCHEMA}.union(*map(_reading, leaves))
    writing = {Privilege.CREATE_SCHEMA}.union(*((*one.create, *one.alter, *one.drop) for one in leaves))
    writer = reading | writing
    return {
        Level.READER: frozenset(reading),
        Level.WRITER: frozenset(writer),
        Level.MANAGER: frozenset(writer | {Privilege.MANAGE_GRANTS}),
    }


def _reading(rights: LeafRights) -> set[Privilege]:
    """The privileges that only load a leaf."""
    return set(rights.load) - set(rights.alter)


_MEMBERS = _members()
_SIGNS = {
    Level.READER: frozenset(
        privilege for leaf in LEAVES if (rights := KINDS[leaf].rights) for privilege in rights.load
    ),
    Level.WRITER: _MEMBERS[Level.WRITER] - _MEMBERS[Level.READER],
    Level.MANAGER: _MEMBERS[Level.MANAGER] - _MEMBERS[Level.WRITER],
}
