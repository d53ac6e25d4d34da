"""Hot reads that bypass Django's request and response, with the same endpoints, services and permission checks.

One SQL statement reads the caller and the object that the service looks up first. Everything unusual falls back to
`urls.answer`.
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
    """The reply to a hot read with the path segments `raw`; None to fall back to Django.

    Call it inside metalake.statements.only_by; its BeginAgain also means a fallback.
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
        return None  # including Forbidden, which the fallback audits
