"""Hot reads without Django's request and response, by the same endpoints, services and permission checks.

One statement reads the caller and the object that the endpoint's service looks up first. Everything unusual falls back
to `urls.answer`.
"""

from __future__ import annotations

from collections.abc import Mapping

from catalogs.caller_lookup import caller_at
from iceberg_rest import names
from iceberg_rest.replies import Reply
from iceberg_rest.routes import Call, Route, Sent, call_of, perform
from metalake.errors import MetalakeError, NotFound
from metalake.kinds import Kind


def answer(route: Route, sent: Sent, raw: Mapping[str, str]) -> Reply | None:
    """The reply to a hot read, `raw` being the segments of its path; None if it has to fall back to Django.

    Call it inside metalake.statements.only_by, whose BeginAgain means None too.
    """
    try:
        call = _call(route, sent, **raw)
        address = route.looks_up(call) if route.looks_up else None
    except MetalakeError:
        return None
    arrived = caller_at(sent.META, address) if address else None
    if arrived is None:
        return None
    call.actor, ahead = arrived
    with ahead:
        return _perform(route, call)


def _call(route: Route, sent: Sent, metalake: str, **others: str) -> Call:
    return call_of(sent, route.needs, names.name_in(metalake, Kind.METALAKE), **others)


def _perform(route: Route, call: Call) -> Reply | None:
    try:
        return perform(route, call)
    except NotFound as missing:
        return route.error(call.in_dots(call.subject.reported(missing)))
    except MetalakeError:
        return None  # including refusals, which Django's path audits
