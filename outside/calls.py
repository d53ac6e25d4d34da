"""Reads from an outside system on behalf of an actor: in this process, or by a worker if a broker is set."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from authz import policy
from authz.actor import NOBODY, Actor, actor_from
from catalogs.leaf_stores import listed_until
from catalogs.lookup import by_id
from catalogs.services.alterations import require_enabled
from catalogs.services.provider_of import provider_at
from catalogs.stores import store_for
from metalake.errors import Forbidden, NotFound, ProviderBusy, ProviderTimeout, ProviderUnavailable
from metalake.kinds import Kind
from metalake.lineage import Located
from outside import worker_calls
from providers import remote
from providers.base import Provider
from providers.remote_objects import Levels, Remote
from providers.verbs import READS

BY_WORKER = remote.TOTAL + 5  # seconds for a call by a worker
MOST_PAGES = 20_000  # per listing
PATIENCE = 90  # seconds that a walk retries while the outside system is busy


def ask(actor: Actor, located: Located, provider: Provider, verb: str, **arguments: Any) -> Any:
    """A read's answer as JSON. Raises what the verb raises, and ProviderUnavailable.

    A read by the system actor, which no request waits for, is retried for PATIENCE seconds while the system is busy.
    """
    until = time.monotonic() + (PATIENCE if actor.id == NOBODY else 0)
    while True:
        try:
            return _ask_once(actor, located, provider, verb, arguments)
        except ProviderBusy as busy:
            if time.monotonic() + busy.retry_after > until:
                raise
            time.sleep(busy.retry_after)


def _ask_once(actor: Actor, located: Located, provider: Provider, verb: str, arguments: dict[str, Any]) -> Any:
    if not worker_calls.make_calls():
        return remote.run(provider, verb, arguments)
    call = partial(worker_calls.call, located.catalog.id, actor)
    return remote.run(remote.ByWorker(provider.catalog_id, provider.label, call), verb, arguments, total=BY_WORKER)


def levels_of(schema: Located) -> Levels | None:
    """A schema's levels in its tables' system; None for one that exists only here, as a parent of others."""
    return store_for(schema, Kind.SCHEMA).levels(schema)


def load_schema(actor: Actor, located: Located, provider: Provider, schema: Levels) -> Remote:
    """A schema as its system has it now. Raises NotFound."""
    return Remote(**ask(actor, located, provider, "load_schema", schema=schema))


def load_leaf(actor: Actor, located: Located, provider: Provider, listing: Kind, schema: Levels, name: str) -> Remote:
    """The object of this name, of any kind in the `listing`, as its system has it now. Raises NotFound."""
    return Remote(**ask(actor, located, provider, f"load_{listing}", **{"schema": schema, str(listing): name}))


def pages(actor: Actor, located: Located, provider: Provider, verb: str, **arguments: Any) -> Iterator[list[Remote]]:
    """A listing, page by page, with the next one prefetched. Raises ProviderTimeout, ProviderUnavailable if endless."""

    def fetch(page: str | None) -> tuple[list[Remote], str | None]:
        answer = ask(actor, located, provider, verb, page=page, **arguments)
        return [Remote(**item) for item in answer["items"]], answer["next"]

    seen = set[int]()
    items, following = fetch(None)
    if following is None:
        yield items
        return
    ahead = ThreadPoolExecutor(1, thread_name_prefix=f"{verb} ahead")
    try:
        while following is not None:
            if time.monotonic() > listed_until.get():
                message = (
                    f"{provider.label} did not come to the end of {verb} in time. Refresh the catalog, and try again."
                )
                raise ProviderTimeout(message, kind=Kind.CATALOG)
            coming = ahead.submit(copy_context().run, fetch, following)
            yield items
            seen.add(hash(following))
            items, following = coming.result()
            if hash(following) in seen or len(seen) > MOST_PAGES:
                message = f"{provider.label} does not come to the end of {verb}: its pages go round, or are too many."
                raise ProviderUnavailable(message, kind=Kind.CATALOG, retryable=False)
        yield items
    finally:
        ahead.shutdown(wait=False)


def answer(catalog_id: int, who: dict[str, Any], verb: str, arguments: dict[str, Any]) -> Any:
    """Do a read for a message, if its sender still sees the catalog. Raises Forbidden, NotFound."""
    located = by_id(catalog_id)
    if located is None:
        raise NotFound("The catalog does not exist.", kind=Kind.CATALOG)
    require_enabled(located)
    if verb not in READS:
        raise Forbidden(f"{verb} is not for messages.", kind=Kind.CATALOG)
    if who["id"] != NOBODY and not policy.sees(actor_from(who), located):
        raise Forbidden(f"{who['name']} may not use catalog {located.catalog.name}.", kind=Kind.CATALOG)
    return remote.run(provider_at(located), verb, arguments)
