"""The entries of a request to grant, checked, and the stored grants of roles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth.models import Permission

from authz.actor import Actor
from authz.models import Grant, Role
from authz.objects import finder, resolved
from metalake.errors import Invalid, TooLarge
from metalake.kinds import CatalogType, Kind, family, grantable_on
from metalake.lineage import Address, Located
from metalake.privileges import Effect, Privilege
from metalake.wire import known_privilege, quote

MAX_OBJECTS = 5000
MAX_UNESCAPED = 100  # full names that are looked up to see where their names end
EFFECTS = {effect.value: effect for effect in Effect}


class Given(NamedTuple):
    """How a privilege is given: its effect, and from and until when if it is given for a time."""

    effect: Effect
    starts: datetime | None = None
    ends: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        return self.ends is not None and self.ends <= now

    def covers(self, other: Given) -> bool:
        """Whether this has the same effect and contains all of the other's time."""
        starts_before = self.starts is None or (other.starts is not None and self.starts <= other.starts)
        ends_after = self.ends is None or (other.ends is not None and self.ends >= other.ends)
        return self.effect == other.effect and starts_before and ends_after


Entries = dict[Privilege, Given]
Pairs = Iterable[tuple[str, str] | tuple[str, str, datetime | None, datetime | None]]
"""Names and conditions in upper or lower case, some with a time span: ("select_table", "allow")."""


class Ask(NamedTuple):
    """What a request grants on one object."""

    kind: Kind
    full_name: str
    privileges: Pairs


class RoleGrant(NamedTuple):
    """One stored grant of a role."""

    id: int
    object_id: int
    privilege: Privilege
    given: Given


def read_entries(kind: Kind, pairs: Pairs) -> Entries:
    """Raises Invalid of kind "privilege" for a wrong name, condition or kind of object, or a privilege named twice."""
    entries: Entries = {}
    for name, condition, *span in pairs:
        privilege, effect = known_privilege(name), EFFECTS.get(condition.lower())
        if effect is None:
            raise Invalid(f"{quote(condition)} is neither allow nor deny.", kind="privilege")
        if privilege in entries:
            raise Invalid(f"Privilege {privilege} is given twice; say it once.", kind="privilege")
        check_kind(privilege, kind)
        entries[privilege] = Given(effect, *span)
    if not entries:
        raise Invalid("Name at least one privilege.", kind="privilege")
    return entries


def check_kind(privilege: Privilege, kind: Kind) -> None:
    """Raise Invalid of kind "privilege" for one that cannot be granted on objects of this kind."""
    if kind not in grantable_on(privilege):
        kinds = ", ".join(sorted(grantable_on(privilege)))
        raise Invalid(f"Privilege {privilege} cannot be granted on a {kind}, but on: {kinds}.", kind="privilege")


def check_spans(entries: Entries, now: datetime) -> None:
    """Raise Invalid of kind "privilege" for a span that is empty or begins or ends in the past."""
    for privilege, (_, starts, ends) in entries.items():
        if starts is not None and starts <= now:
            raise Invalid(
                f"Privilege {privilege} is to start at {starts.isoformat()}, which is past: leave the start out to "
                "begin at once.",
                kind="privilege",
            )
        if ends is not None and ends <= (starts or now):
            past = "its start" if starts else "now"
            raise Invalid(
                f"Privilege {privilege} is to end at {ends.isoformat()}, which is not after {past}.", kind="privilege"
            )


def read_asks(actor: Actor, metalake: str, asks: Sequence[Ask]) -> dict[Address, Entries]:
    """Raises Invalid for an object given twice, TooLarge for too many."""
    if len(asks) > MAX_OBJECTS:
        raise TooLarge(f"A role may be given {MAX_OBJECTS} objects at once, not {len(asks)}.", kind="role")
    if sum(ask.full_name.count(".") > 2 for ask in asks) > MAX_UNESCAPED:
        raise TooLarge(f"Of more than {MAX_UNESCAPED} full names with dots inside names, escape these.", kind="role")
    wanted: dict[Address, Entries] = {}
    for ask in asks:
        entries = read_entries(ask.kind, ask.privileges)
        address = resolved(metalake, ask.kind, ask.full_name, actor)
        if address in wanted:
            raise Invalid(f"{ask.kind.capitalize()} {ask.full_name} is given twice; say it once.", kind="object")
        wanted[address] = entries
    return wanted


def check_families(wanted: Sequence[tuple[Located, Entries]]) -> None:
    """Raise Invalid for a privilege that does not apply in that type of catalog, as on tables in one of files."""
    about = [
        (on, privilege, only)
        for on, entries in wanted
        if on.kind in (Kind.CATALOG, Kind.SCHEMA)
        for privilege in entries
        if (only := family(privilege))
    ]
    types = finder().catalog_types(on.nodes[1].id for on, _, _ in about) if about else {}
    for on, privilege, only in about:
        if CatalogType(types[on.nodes[1].id]) is not only:
            raise Invalid(
                f"Privilege {privilege} is for {only} catalogs, and {on.nodes[1].name} is none.", kind="privilege"
            )


def role_grants(role: Role, object_id: int | None = None) -> list[RoleGrant]:
    """A role's grants, all or those on one object; one statement."""
    rows = Grant.objects.filter(group_id=role.group_id)
    if object_id is not None:
        rows = rows.filter(content_object_id=object_id)
    return [
        RoleGrant(id, on, Privilege(codename), Given(Effect(effect), starts, ends))
        for id, on, codename, effect, starts, ends in rows.values_list(
            "id", "content_object_id", "permission__codename", "effect", "starts_at", "ends_at"
        )
    ]


def not_ended(grants: Iterable[RoleGrant], now: datetime) -> list[RoleGrant]:
    """The grants that have not ended."""
    return [grant for grant in grants if not grant.given.is_over(now)]


def by_object(grants: Iterable[RoleGrant]) -> dict[int, Entries]:
    by_id: dict[int, Entries] = defaultdict(dict)
    for grant in grants:
        by_id[grant.object_id][grant.privilege] = grant.given
    return dict(by_id)


def insert(role: Role, wanted: Mapping[int, Entries], grantor: Actor) -> None:
    """Store these grants, by object id, in two statements; guardian's own functions know no effect."""
    ids = dict(
        Permission.objects.filter(
            content_type__app_label="metalake",
            content_type__model="securable",
            codename__in={privilege.value for entries in wanted.values() for privilege in entries},
        ).values_list("codename", "pk")
    )
    Grant.rows.bulk_create(
        [
            Grant(
                group_id=role.group_id,
                permission_id=ids[privilege.value],
                content_object_id=object_id,
                effect=given.effect.value,
                starts_at=given.starts,
                ends_at=given.ends,
                grantor=grantor.name,
            )
            for object_id, entries in wanted.items()
            for privilege, given in entries.items()
        ],
        batch_size=1000,
    )


def spelled(entries: Mapping[Privilege, Given]) -> list[str]:
    """The entries as audit rows show them: "allow select_table until 2027-01-01T00:00:00+00:00"."""
    return sorted(
        f"{given.effect} {privilege}"
        + (f" from {given.starts.isoformat()}" if given.starts else "")
        + (f" until {given.ends.isoformat()}" if given.ends else "")
        for privilege, given in entries.items()
    )
