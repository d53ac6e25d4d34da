"""Hot reads without Django's request and response: the same endpoints, and so the same services and rights.

One statement reads who calls and the object that the endpoint's service looks up first. Whatever is out of the ordinary
is left to the way of all requests (`urls.answer`).
"""

from __future__ import annotations

from collections.abc import Mapping

from catalogs.caller_lookup import caller_at
from iceberg_rest import names
from iceberg_rest.replies import Reply
from iceberg_rest.routes import Call, Route, Sent, call_of, perform
from metalake.errors import MetalakeError, NotFound
from metalake.kinds import Kind


def answer(asked: Route, sent: Sent, raw: Mapping[str, str]) -> Reply | None:
    """The reply to a hot read, `raw` being the parts of its path; None if it has to go the way of all requests.

    To be called inside metalake.statements.only_by, whose BeginAgain means None, too.
    """
    try:
        call = _call(asked, sent, **raw)
        address = asked.looks_up(call) if asked.looks_up else None
    except MetalakeError:
        return None
    arrived = caller_at(sent.META, address) if address else None
    if arrived is None:
        return None
    call.actor, ahead = arrived
    with ahead:
        return _perform(asked, call)


def _call(asked: Route, sent: Sent, metalake: str, **others: str) -> Call:
    return call_of(sent, asked.needs, names.name_in(metalake, Kind.METALAKE), **others)


def _perform(asked: Route, call: Call) -> Reply | None:
    try:
        return perform(asked, call)
    except NotFound as missing:
        return asked.error(call.in_dots(call.subject.reported(missing)))
    except MetalakeError:
        return None  # among them refusals, which are noted
