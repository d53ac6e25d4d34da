"""What a request says to grant, checked, and the rows that roles' grants are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from django.contrib.auth.models import Permission

from authz.models import Grant, Role
from authz.objects import Address, Located, address_of, finder
from authz.policy import Actor
from metalake.errors import Invalid, TooLarge
from metalake.privileges import CatalogType, Effect, Kind, Privilege, family, parse_privilege

MAX_OBJECTS = 5000
EFFECTS = {effect.value: effect for effect in Effect}

Entries = dict[Privilege, Effect]
Pairs = Iterable[tuple[str, str]]
"""Names and conditions, in any case: ("select_table", "allow")."""


class Ask(NamedTuple):
    """What is asked for one object."""

    kind: Kind
    full_name: str
    privileges: Pairs


class Held(NamedTuple):
    """One grant that a role holds."""

    id: int
    object_id: int
    privilege: Privilege
    effect: Effect


def read_entries(kind: Kind, pairs: Pairs) -> Entries:
    """Raises Invalid of kind "privilege" for a name, a condition, an object's kind or a repetition that is wrong."""
    entries: Entries = {}
    for name, condition in pairs:
        privilege, effect = parse_privilege(name), EFFECTS.get(condition.lower())
        if privilege is None or effect is None:
            raise Invalid(f"{condition} {name} is not allow or deny and a known privilege.", kind="privilege")
        if privilege in entries:
            raise Invalid(f"Privilege {privilege} is given twice; say it once.", kind="privilege")
        if kind not in privilege.grantable_on:
            kinds = ", ".join(sorted(privilege.grantable_on))
            raise Invalid(f"Privilege {privilege} cannot be granted on a {kind}, but on: {kinds}.", kind="privilege")
        entries[privilege] = effect
    if not entries:
        raise Invalid("Name at least one privilege.", kind="privilege")
    return entries


def read_asks(asks: Sequence[Ask]) -> dict[Address, Entries]:
    """Raises Invalid for an object given twice, TooLarge for too many."""
    if len(asks) > MAX_OBJECTS:
        raise TooLarge(f"A role may be given {MAX_OBJECTS} objects at once, not {len(asks)}.", kind="role")
    wanted: dict[Address, Entries] = {}
    for ask in asks:
        entries, address = read_entries(ask.kind, ask.privileges), address_of(ask.kind, ask.full_name)
        if address in wanted:
            raise Invalid(f"{ask.kind.capitalize()} {ask.full_name} is given twice; say it once.", kind="object")
        wanted[address] = entries
    return wanted


def check_families(wanted: Sequence[tuple[Located, Entries]]) -> None:
    """Raise Invalid for a privilege about tables on a catalog of files, and the like; one statement."""
    about = [
        (found, privilege, only)
        for found, entries in wanted
        if found.kind in (Kind.CATALOG, Kind.SCHEMA)
        for privilege in entries
        if (only := family(privilege))
    ]
    types = finder().catalog_types(found.nodes[1].id for found, _, _ in about) if about else {}
    for found, privilege, only in about:
        if CatalogType(types[found.nodes[1].id]) is not only:
            raise Invalid(
                f"Privilege {privilege} is for {only} catalogs, and {found.nodes[1].name} is none.", kind="privilege"
            )


def held_by(role: Role, object_id: int | None = None) -> list[Held]:
    """A role's grants, all or those on one object; one statement."""
    rows = Grant.objects.filter(group_id=role.group_id)
    if object_id is not None:
        rows = rows.filter(content_object_id=object_id)
    return [
        Held(id, on, Privilege(codename), Effect(effect))
        for id, on, codename, effect in rows.values_list("id", "content_object_id", "permission__codename", "effect")
    ]


def by_object(held: Iterable[Held]) -> dict[int, Entries]:
    found: dict[int, Entries] = defaultdict(dict)
    for grant in held:
        found[grant.object_id][grant.privilege] = grant.effect
    return dict(found)


def insert(role: Role, wanted: Mapping[int, Entries], grantor: Actor) -> None:
    """Two statements, however many grants; guardian's own functions know no effect."""
    ids = dict(
        Permission.objects.filter(
            content_type__app_label="metalake",
            content_type__model="securable",
            codename__in={privilege.value for entries in wanted.values() for privilege in entries},
        ).values_list("codename", "pk")
    )
    Grant.objects.bulk_create(
        [
            Grant(
                group_id=role.group_id,
                permission_id=ids[privilege.value],
                content_object_id=object_id,
                effect=effect.value,
                grantor=grantor.name,
            )
            for object_id, entries in wanted.items()
            for privilege, effect in entries.items()
        ],
        batch_size=1000,
    )


def spelled(entries: Mapping[Privilege, Effect]) -> list[str]:
    """As audit rows have them: "allow select_table"."""
    return sorted(f"{effect} {privilege}" for privilege, effect in entries.items())
