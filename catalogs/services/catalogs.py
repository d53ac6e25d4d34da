"""Catalogs: list, register, load, alter, enable, disable and drop them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import QuerySet

from authz import operations, policy
from authz.actor import Actor
from authz.callers.accounts import account_of
from authz.locks import Lock
from catalogs import vault
from catalogs.lookup import find
from catalogs.models import Catalog
from catalogs.secrets import MASK, mask, require_values
from catalogs.services import catalog_places, containers, nesting, storage_identity, systems
from catalogs.services.alterations import (
    Alteration,
    event,
    named,
    require_enabled,
    require_settled,
    require_unreserved,
    row_of,
    save,
)
from catalogs.services.provider_of import provider_with_locations
from catalogs.services.systems import System
from catalogs.services.writes import Target, Write, write_to
from catalogs.stores import catalog_store_by, store_for
from formats.iceberg.forbidden_properties import check_limits
from metalake.errors import AlreadyExists, Invalid, Unsupported
from metalake.events import event_of, record, stands
from metalake.hierarchy import check_strict
from metalake.kinds import CatalogType, Kind
from metalake.lineage import Address, Located
from metalake.models import Metalake, new_id
from providers import circuit_breaker, remote
from providers.base import Provider
from providers.registry import PROVIDERS, provider_class, provider_for, providers_of

T = TypeVar("T")

TRIAL = "testConnection"  # a path of the native API where others have a catalog's name
ANY_TIME = frozenset({"cache-ttl", "refresh-interval"})  # may change while a write to the outside system is pending


def list_catalogs(actor: Actor, metalake: str) -> QuerySet[Catalog]:
    located = find(actor, Address(metalake=metalake))
    policy.require(actor, operations.LIST_CATALOGS, located)
    require_enabled(located)
    rows = Catalog.objects.filter(parent_id=located.id)
    return policy.visible_catalogs(actor, located, rows).order_by("name")


def create_catalog(
    actor: Actor,
    metalake: str,
    name: str,
    type_: str,
    provider: str | None,
    comment: str | None,
    properties: dict[str, str],
    also: Callable[[Catalog], object] = lambda row: None,  # called in the transaction that makes the row
) -> Catalog:
    provider, checked = check_registration(name, type_, provider, properties)
    target = Target(
        Address(metalake=metalake),
        operations.CREATE_CATALOG,
        Lock.HANGS,
        makes=Kind.CATALOG,
        then=systems.lock_registrations,
    )
    registered, system = _looked_up(checked, properties, target.permitted(actor).id)
    described = {"name": name, "type": type_, "provider": provider, "comment": comment}
    return write_to(actor, target, _create, described, registered, system, also)


def _create(
    write: Write,
    described: Mapping[str, Any],
    registered: Provider,
    system: System,
    also: Callable[[Catalog], object],
) -> Catalog:
    actor, top, name = write.actor, write.located, described["name"]
    if Catalog.objects.filter(parent_id=top.id, name=name).exists():
        raise AlreadyExists(f"Catalog {name} already exists.", kind=Kind.CATALOG)
    row = Catalog.made(
        Kind.CATALOG,
        parent=row_of(Metalake, top),
        id=registered.catalog_id,
        owner_user_id=account_of(actor),
        creator=actor.name,
        **described,
    )
    _insert(actor, row, registered, system)
    facts, provider = [stands(row)], described["provider"]
    record(event_of(actor, "catalog.created", Kind.CATALOG, row.id, [name], top.id, facts, provider=provider))
    also(row)
    return row


def _looked_up(chosen: type[Provider], properties: dict[str, str], metalake_id: int) -> tuple[Provider, System]:
    """The provider of a new catalog, and the system that it leads to.

    Looks hosts up, so call it only for who may register, and not in a transaction. Raises Invalid, ProviderUnavailable.
    """
    catalog_id = new_id()
    registered = chosen(catalog_id, chosen.completed(catalog_id, properties))
    run_trial(registered, metalake_id, registered.check_locations)
    system = replace(systems.look_up(registered, metalake_id), storages=_reached(registered, metalake_id))
    catalog_store_by(registered).require_no_clash(registered, metalake_id)
    return registered, system


def _insert(actor: Actor, row: Catalog, registered: Provider, system: System) -> None:
    """Store a new catalog, with its provider's defaults, its places, its system and its secrets.

    Raises Invalid and Forbidden if another catalog has its places or its system.
    """
    opened = registered.properties
    row.properties = mask(opened, registered.settings.declares_secret())
    row.nested = row.properties.get(nesting.PROPERTY) == "true"
    schemas = registered.offered.get(Kind.SCHEMA)
    row.folds_case = schemas is not None and schemas.folds_case
    row.systems, row.storages = sorted(system.words), system.storages
    catalog_places.claim(actor, row, registered, system)
    systems.require_alone(actor, row.id, row.lineage_ids[0], system)
    row.save(force_insert=True)
    if secrets := _masked(row.properties, opened):
        vault.seal(row.id, secrets)


def check_registration(
    name: str, type_: str, provider: str | None, properties: dict[str, str]
) -> tuple[str, type[Provider]]:
    """The provider, with its class. Raises Invalid or Unsupported for values that cannot be registered."""
    _check_name(name)
    check_limits(properties)
    if type_ not in set(CatalogType):
        raise Invalid(f"{type_!r} is not a catalog type; known are {', '.join(CatalogType)}.", kind=Kind.CATALOG)
    provider = provider or CatalogType(type_).default_provider
    fits = provider in PROVIDERS and provider_class(provider).catalog_type == type_
    if not fits and not providers_of(type_):
        served = ", ".join(each for each in CatalogType if providers_of(each))
        raise Unsupported(f"Catalogs of type {type_} are not supported yet; supported: {served}.", kind=Kind.CATALOG)
    if not provider:
        listed = ", ".join(providers_of(type_))
        raise Invalid(f"A {type_} catalog requires a provider: {listed}.", kind=Kind.CATALOG)
    require_unreserved(properties, Kind.CATALOG)
    require_values(properties, kind=Kind.CATALOG)
    chosen = provider_class(provider)
    if not fits:
        raise Invalid(
            f"Catalogs of provider {provider} have type {chosen.catalog_type}, not {type_}.", kind=Kind.CATALOG
        )
    chosen.check(properties)
    chosen.check_given(properties)
    return provider, chosen


def run_trial(provider: Provider, metalake_id: int, act: Callable[[], T]) -> T:
    """Run `act` with the deadline of outside calls, in this process: a message to a worker must not have secrets."""
    if provider.reaches_out:
        result: T = remote.trial(provider, act, metalake_id=metalake_id)
        return result
    return act()


def load_catalog(actor: Actor, metalake: str, name: str) -> Catalog:
    return row_of(Catalog, locate_catalog(actor, metalake, name))


def locate_catalog(actor: Actor, metalake: str, name: str) -> Located:
    """A catalog that the actor may load, also a disabled one. Raises NotInUse if its metalake is disabled."""
    located = find(actor, Address(metalake=metalake, catalog=name))
    policy.require(actor, operations.LOAD_CATALOG, located)
    require_enabled(located.above())
    return located


def alter_catalog(actor: Actor, metalake: str, name: str, alteration: Alteration) -> Catalog:
    """Change a catalog; new properties are tested against the outside system first, before any lock.

    Raises InUse while a write to the outside system is under way, if the catalog may lead elsewhere afterwards.
    """
    system = _try_out(actor, metalake, name, alteration) if alteration.properties else systems.NO_SYSTEM
    return write_to(actor, _to_alter(metalake, name, alteration), _alter, alteration, system)


def _to_alter(metalake: str, name: str, alteration: Alteration) -> Target:
    lock = Lock.CHANGES if alteration.new_name is None else Lock.MOVES
    return Target(Address(metalake=metalake, catalog=name), operations.ALTER_CATALOG, lock)


def _alter(write: Write, alteration: Alteration, system: System) -> Catalog:
    actor, located = write.actor, write.located
    row = row_of(Catalog, located)
    before = row.properties
    fields, opened = _apply(alteration, row)
    if elsewhere := _leads_elsewhere(before, row.properties):
        require_settled(located)
    if opened is not None:
        catalog_places.claim_again(actor, row, before, opened, system)
        _store_system(actor, row, opened, system)
    if fields:
        save(row, actor, fields)
        Catalog.objects.filter(pk=row.pk).exclude(nested=row.nested).update(nested=row.nested)
        if opened is not None:
            vault.seal(row.pk, _masked(row.properties, opened))
        record(event(actor, "catalog.altered", located, named(row, fields), changed=sorted(fields)))
    if elsewhere:
        transaction.on_commit(partial(circuit_breaker.forget, row.pk))
        reason = f"{actor.name} altered where the catalog leads; start the refresh again."
        store_for(located, Kind.CATALOG).forget_answers(row.pk, reason)
    return row


def _try_out(actor: Actor, metalake: str, name: str, alteration: Alteration) -> System:
    """Test a catalog's new properties outside any transaction; returns the system that they lead to."""
    altered, metalake_id = altered_provider(actor, metalake, name, alteration)
    run_trial(altered, metalake_id, altered.check_locations)
    system = look_up_again(altered, metalake_id)
    if altered.properties.get(nesting.PROPERTY) == "true":
        nesting.require_nestable(actor, find(actor, Address(metalake=metalake, catalog=name)))
    return system


def look_up_again(altered: Provider, metalake_id: int) -> System:
    """Where a catalog leads after an alteration. Do not call in a transaction. Raises Invalid, ProviderUnavailable."""
    system = systems.look_up_again(altered, metalake_id)
    return replace(system, storages=_reached(altered, metalake_id))


def _reached(provider: Provider, metalake_id: int) -> list[str]:
    provider.load_clients()  # not within the storage's time
    return run_trial(provider, metalake_id, provider.reach_storages)


def _store_system(actor: Actor, row: Catalog, opened: Mapping[str, str], system: System) -> None:
    """Store the catalog's system. Raises Forbidden if it moves to a system that another owner's catalog leads to."""
    systems.require_as_seen(system, provider_for(row.provider, row.pk, opened))
    if systems.has_moved(row, system):
        systems.lock_registrations()
        systems.require_alone(actor, row.pk, row.lineage_ids[0], system)
    if system is not systems.NO_SYSTEM:
        Catalog.objects.filter(pk=row.pk).update(systems=sorted(system.words), storages=system.storages)


def _apply(alteration: Alteration, row: Catalog) -> tuple[set[str], dict[str, str] | None]:
    """Change the row in memory, after checking the change.

    Returns the names of the changed fields and, if the properties changed, all of them with open secrets.
    """
    before = row.properties
    fields = alteration.apply_to(row, declared_secrets(row.provider))
    if "name" in fields:
        _check_new_name(row)
    return fields, _check_new_properties(row, before) if "properties" in fields else None


def _leads_elsewhere(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether the catalog may lead to another outside system now; a change of secrets alone does not count."""
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} - ANY_TIME
    return any(MASK not in (before.get(key), after.get(key)) for key in changed)


def _masked(properties: Mapping[str, str], opened: Mapping[str, str]) -> dict[str, str]:
    """The opened values of the masked properties."""
    return {key: opened[key] for key, value in properties.items() if value == MASK}


def altered_provider(actor: Actor, metalake: str, name: str, alteration: Alteration) -> tuple[Provider, int]:
    """The provider after an alteration, and the metalake's id; nothing is stored."""
    located = _to_alter(metalake, name, alteration).permitted(actor)
    row = row_of(Catalog, located)
    places = provider_with_locations(row.pk, row.provider, row.properties).locations()
    before = storage_identity.of_properties(row.properties)
    with transaction.atomic():
        _, opened = _apply(alteration, row)
    altered = provider_for(row.provider, row.pk, opened or vault.opened(row.pk, row.properties))
    altered.existing_places = places
    altered.reached_places = places if before == storage_identity.of_properties(row.properties) else ()
    return altered, located.metalake.id


def set_catalog_enabled(actor: Actor, metalake: str, name: str, enabled: bool) -> None:
    containers.set_enabled(actor, Address(metalake=metalake, catalog=name), enabled, lock=Lock.CHANGES)


def drop_catalog(actor: Actor, metalake: str, name: str, force: bool) -> bool:
    """As `containers.drop`. The files of its tables stay. Raises NotFound if the metalake is missing."""
    return containers.drop(actor, Address(metalake=metalake, catalog=name), force=force)


def declared_secrets(provider: str) -> dict[str, bool]:
    """The properties that a provider declares, with whether they are secret."""
    return provider_class(provider).settings.declares_secret()


def _check_name(name: str) -> None:
    check_strict(name, Kind.CATALOG)
    if name == TRIAL:
        raise Invalid(f"{name!r} cannot be a catalog name: the API uses it as an action.", kind=Kind.CATALOG)


def _check_new_name(row: Catalog) -> None:
    _check_name(row.name)
    if Catalog.objects.filter(parent_id=row.parent_id, name=row.name).exclude(pk=row.pk).exists():
        raise AlreadyExists(f"Catalog {row.name} already exists.", kind=Kind.CATALOG)


def _check_new_properties(row: Catalog, before: dict[str, str]) -> dict[str, str]:
    """Check the row's properties; all of them with open secrets, while the row's own get the mask."""
    chosen = provider_class(row.provider)
    require_unreserved(row.properties, Kind.CATALOG)
    for key, reason in chosen.immutable.items():
        if row.properties.get(key) != before.get(key):
            raise Invalid(f"Property {key!r} cannot change: {reason}.", kind=Kind.CATALOG)
    masked = {key for key, value in row.properties.items() if value == MASK}
    opened = vault.opened(row.pk, row.properties)
    chosen.check(opened)
    chosen.check_given({key: value for key, value in row.properties.items() if before.get(key) != value})
    opened = chosen.completed(row.pk, opened)
    row.properties = mask(opened, chosen.settings.declares_secret() | dict.fromkeys(masked, True))
    nested = row.properties.get(nesting.PROPERTY) == "true"
    nesting.require_changeable(row, nested)
    row.nested = nested
    return opened
