"""Which outside system a catalog leads to, and who may lead a second catalog there.

Who owns a catalog owns all that is found in its system, so a second one would be a way around every grant and DENY of
the first. Hosts are looked up before the transaction that keeps the catalog; what it compares are words in rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from django.conf import settings

from authz import operations, policy
from authz.actor import Actor
from authz.models import PolicyEpoch
from catalogs import vault
from catalogs.lookup import by_id
from catalogs.models import Catalog
from catalogs.stores import catalog_store_by
from metalake.errors import Conflict, Forbidden, MetalakeError
from metalake.kinds import Kind
from providers import remote
from providers.base import Provider
from providers.reaching.metastores import systems_at, systems_named
from providers.registry import provider_for

SECONDS = 10.0  # for what older rows lead to; the rest of them is compared by what they say of themselves
THRIFT = "thrift://"


@dataclass(frozen=True)
class System:
    """What was found out about a catalog's system before its row is written."""

    names: frozenset[str] = frozenset()  # what the settings say of it
    words: frozenset[str] = frozenset()  # and what they lead to
    shared: frozenset[str] = frozenset()  # of all systems, those that the operator lets metalakes share
    others: Mapping[int, frozenset[str]] = field(default_factory=dict)  # of catalogs that keep none in their row
    moved: bool = False  # from where the settings of before led


NOWHERE = System()


def names_of(provider: Provider) -> frozenset[str]:
    return frozenset(provider.system_names())


def look_up(provider: Provider, metalake_id: int) -> System:
    """Not for use in a transaction. Raises Invalid, ProviderUnavailable."""
    names = names_of(provider)
    if not names:
        return NOWHERE
    older = _older(provider.catalog_id)
    words, shared, others = remote.trial(
        provider, lambda: (provider.system(), _shared(), _words_of(older)), metalake_id=metalake_id
    )
    for catalog_id, found in others.items():
        Catalog.objects.filter(pk=catalog_id, systems__isnull=True).update(systems=sorted(found))
    return System(
        names, names.union(words), frozenset(shared), {each.catalog_id: names_of(each) for each in older} | others
    )


def look_up_again(provider: Provider, metalake_id: int) -> System:
    """Of a catalog that is altered: what its row keeps is good while the settings say the same. As `look_up`."""
    names, row = names_of(provider), Catalog.objects.filter(pk=provider.catalog_id).first()
    if not names or row is None:
        return NOWHERE
    former: frozenset[str] | None = None
    with suppress(MetalakeError):  # a secret of before may not open any more
        former = names_of(provider_for(row.provider, row.pk, vault.opened(row.pk, row.properties)))
    if former == names and row.systems is not None:
        return System(names, frozenset(row.systems))
    return replace(look_up(provider, metalake_id), moved=former != names)


def has_moved(row: Catalog, system: System) -> bool:
    """Whether the row, as it is read in the transaction, led to another system."""
    return system.moved or (row.systems is not None and not system.names.issubset(row.systems))


def _older(besides: int) -> list[Provider]:
    """The catalogs whose rows say nothing of their systems: they were made before rows did."""
    found = []
    rows = Catalog.objects.filter(systems__isnull=True).exclude(pk=besides)
    for catalog_id, name in rows.values_list("pk", "provider"):
        with suppress(MetalakeError):  # its provider is there no more, or its secrets do not open
            provider = provider_for(name, catalog_id, vault.properties_of(catalog_id))
            if catalog_store_by(provider).is_mirrored:
                found.append(provider)
    return found


def _words_of(providers: Sequence[Provider]) -> dict[int, frozenset[str]]:
    """Of those that can be looked up in time."""
    until = time.monotonic() + SECONDS
    found = {}
    for provider in providers:
        if time.monotonic() > until:
            break
        with suppress(MetalakeError):
            found[provider.catalog_id] = names_of(provider).union(provider.system())
    return found


def _shared() -> set[str]:
    found = set(settings.METALAKE_SHARED_SYSTEMS)
    for system in settings.METALAKE_SHARED_SYSTEMS:
        if system.startswith(THRIFT):
            with suppress(MetalakeError):
                found |= {*systems_named(system), *systems_at(system)}
    return found


def one_at_a_time() -> None:
    """Of two registrations, the second sees what the first keeps."""
    PolicyEpoch.objects.select_for_update().get(pk=1)


def require_alone(actor: Actor, catalog_id: int, metalake_id: int, system: System) -> None:
    """Raise Forbidden where another catalog leads to the same system, and who owns it would not be asked.

    For a transaction, after `one_at_a_time`. What is said names nobody, and is the same in this metalake and another.
    """
    if not system.words:
        return
    others = Catalog.objects.exclude(pk=catalog_id).values_list("pk", "parent_id", "systems")
    for other, their_metalake, kept in others:
        common = system.words & _kept(other, kept, system)
        if their_metalake == metalake_id:
            their = by_id(other) if common else None
            if their is None or policy.permits(actor, operations.OWN_CATALOG, their):
                continue
        elif common <= system.shared:
            continue
        raise Forbidden(
            "Another catalog leads to this system already, and owns what is found there. In its metalake its owner may "
            "register a second one; for a catalog in another metalake the server's operator names the system in "
            "METALAKE_SHARED_SYSTEMS.",
            kind=Kind.CATALOG,
        )


def _kept(catalog_id: int, kept: list[str] | None, system: System) -> frozenset[str]:
    return system.others.get(catalog_id, frozenset()) if kept is None else frozenset(kept)


def require_as_seen(system: System, provider: Provider) -> None:
    """Raise Conflict where the settings, as they are to be kept, say something else than what was looked up."""
    if names_of(provider) != system.names:
        raise Conflict("The catalog was altered meanwhile; load it and try again.", kind=Kind.CATALOG)


def may_share_places(system: System, row: Catalog, provider: Provider, other: Catalog, theirs: Provider) -> bool:
    """Whether two catalogs are one owner's views of one system, of which neither shows a table of the other."""
    one_owner = (row.owner_user_id, row.owner_group_id) == (other.owner_user_id, other.owner_group_id)
    if not one_owner or not system.words & _kept(other.pk, other.systems, system):
        return False
    mine, others = provider.only_formats, theirs.only_formats
    return mine is not None and others is not None and mine.isdisjoint(others)
