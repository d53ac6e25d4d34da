"""Which outside system a catalog leads to, and who may register a second catalog for it.

A catalog's owner owns all objects of its system, so a second catalog would be a way around every grant and DENY of the
first. Hosts are looked up before the transaction that stores the catalog, which then compares words stored in rows: the
URLs that identify a system (`Provider.system`).
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
from authz.services.ownership_rules import party_of
from catalogs import vault
from catalogs.lookup import by_id
from catalogs.models import Catalog
from catalogs.services import reserved_denies
from catalogs.stores import catalog_store_by
from metalake.errors import Conflict, Forbidden, MetalakeError
from metalake.kinds import Kind
from providers import remote
from providers.base import Provider
from providers.network.metastores import systems_at, systems_named
from providers.registry import provider_for

SECONDS = 10.0  # to look up the systems of older rows; the rest of them are compared by their names only
THRIFT = "thrift://"


@dataclass(frozen=True)
class System:
    """A catalog's system, as it was looked up before the catalog's row is written."""

    names: frozenset[str] = frozenset()  # words from the settings alone
    words: frozenset[str] = frozenset()  # those, and the ones found by looking hosts up
    shared: frozenset[str] = frozenset()  # words of systems that the operator lets metalakes share
    others: Mapping[int, frozenset[str]] = field(default_factory=dict)  # words of catalogs without any in their row
    moved: bool = False  # whether the former settings led to another system
    storages: list[str] | None = None  # of its places, which have answered


NO_SYSTEM = System()


def names_of(provider: Provider) -> frozenset[str]:
    return frozenset(provider.system_names())


def look_up(provider: Provider, metalake_id: int) -> System:
    """The system of a provider. Not for use in a transaction. Raises Invalid, ProviderUnavailable."""
    names = names_of(provider)
    if not names:
        return NO_SYSTEM
    older = _older(provider.catalog_id)
    words, shared, others = remote.trial(
        provider, lambda: (provider.system(), _shared(), _words_of(older)), metalake_id=metalake_id
    )
    for catalog_id, their_words in others.items():
        Catalog.objects.filter(pk=catalog_id, systems__isnull=True).update(systems=sorted(their_words))
    return System(
        names, names.union(words), frozenset(shared), {each.catalog_id: names_of(each) for each in older} | others
    )


def look_up_again(provider: Provider, metalake_id: int) -> System:
    """The system of a catalog after an alteration; its row's words are reused while the settings give the same names.

    Not for use in a transaction. Raises Invalid, ProviderUnavailable.
    """
    names, row = names_of(provider), Catalog.objects.filter(pk=provider.catalog_id).first()
    if not names or row is None:
        return NO_SYSTEM
    former: frozenset[str] | None = None
    with suppress(MetalakeError):  # a former secret may not open any more
        former = names_of(provider_for(row.provider, row.pk, vault.opened(row.pk, row.properties)))
    if former == names and row.systems is not None:
        return System(names, frozenset(row.systems))
    return replace(look_up(provider, metalake_id), moved=former != names)


def has_moved(row: Catalog, system: System) -> bool:
    """Whether the row, as read in the transaction, leads to another system than this one."""
    return system.moved or (row.systems is not None and not system.names.issubset(row.systems))


def _older(besides: int) -> list[Provider]:
    """The catalogs without words in their rows, since older versions did not store any."""
    providers = []
    rows = Catalog.objects.filter(systems__isnull=True).exclude(pk=besides)
    for catalog_id, name in rows.values_list("pk", "provider"):
        with suppress(MetalakeError):  # its provider is not installed any more, or its secrets do not open
            provider = provider_for(name, catalog_id, vault.properties_of(catalog_id))
            if catalog_store_by(provider).is_mirrored:
                providers.append(provider)
    return providers


def _words_of(providers: Sequence[Provider]) -> dict[int, frozenset[str]]:
    """The words of the providers that can be looked up within SECONDS."""
    until = time.monotonic() + SECONDS
    words = {}
    for provider in providers:
        if time.monotonic() > until:
            break
        with suppress(MetalakeError):
            words[provider.catalog_id] = names_of(provider).union(provider.system())
    return words


def _shared() -> set[str]:
    names = set(settings.METALAKE_SHARED_SYSTEMS)
    for system in settings.METALAKE_SHARED_SYSTEMS:
        if system.startswith(THRIFT):
            with suppress(MetalakeError):
                names |= {*systems_named(system), *systems_at(system)}
    return names


def lock_registrations() -> None:
    """Serialize registrations, so that the second sees what the first has stored."""
    PolicyEpoch.objects.select_for_update().get(pk=1)


def require_alone(actor: Actor, catalog_id: int, metalake_id: int, system: System) -> None:
    """Raise Forbidden if another catalog leads to the same system, unless the actor owns it or metalakes may share it.

    In a transaction, after `lock_registrations`. The message names no catalog, and is the same for one of another
    metalake.
    """
    if not system.words:
        return
    others = Catalog.objects.exclude(pk=catalog_id).values_list("pk", "parent_id", "systems")
    for other, their_metalake, stored in others:
        common = system.words & _words_of_catalog(other, stored, system)
        if their_metalake == metalake_id:
            their = by_id(other) if common else None
            if their is None:
                continue
            if policy.permits(actor, operations.OWN_CATALOG, their):
                reserved_denies.require_lift_on(
                    actor, their, f"Registering the system of catalog {their.name} once more"
                )
                continue
        elif common <= system.shared:
            continue
        raise Forbidden(
            "Another catalog is already connected to this system, whose objects its owner owns. In its metalake that "
            "owner may register a second one; for a catalog in another metalake the server's operator lists the system "
            "in METALAKE_SHARED_SYSTEMS.",
            kind=Kind.CATALOG,
        )


def _words_of_catalog(catalog_id: int, stored: list[str] | None, system: System) -> frozenset[str]:
    return system.others.get(catalog_id, frozenset()) if stored is None else frozenset(stored)


def require_as_seen(system: System, provider: Provider) -> None:
    """Raise Conflict if the settings to be stored give other names than those that were looked up."""
    if names_of(provider) != system.names:
        raise Conflict("The catalog was altered meanwhile; load it and try again.", kind=Kind.CATALOG)


def may_share_places(system: System, row: Catalog, provider: Provider, other: Catalog, theirs: Provider) -> bool:
    """Whether two catalogs have the same owner and system, and show different table formats."""
    one_owner = party_of(row) == party_of(other)
    if not one_owner or not system.words & _words_of_catalog(other.pk, other.systems, system):
        return False
    mine, others = provider.only_formats, theirs.only_formats
    return mine is not None and others is not None and mine.isdisjoint(others)
