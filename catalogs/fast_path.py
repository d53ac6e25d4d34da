"""Fast path for hot reads of the native API: calls the same endpoint methods without the framework's dispatch.

One statement reads the caller and the object that the endpoint's service looks up first. Anything unusual falls back
to normal dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import orjson

from catalogs.caller_lookup import caller_at
from metalake.errors import MetalakeError, NotFound
from metalake.logs import note_failure
from metalake.rest.exceptions import error_body, shape_of
from metalake.rest.negotiation import VersionedJSON
from metalake.rest.renderers import JSONRenderer
from metalake.rest.replies import age_of
from metalake.rest.views import HOT_READS, Endpoint, HotRead

_NEGOTIATION, _RENDERERS = VersionedJSON(), (JSONRenderer(),)


class Answer(NamedTuple):
    """A status, a body, and the headers that only this answer has."""

    status: int
    body: bytes
    headers: dict[str, str]


def hot_read(method: str, below: str) -> tuple[HotRead, dict[str, str]] | None:
    """The hot read of a path below /api/, and the parts of the path; None for every other request."""
    if method == "GET":
        for read in HOT_READS:
            if matched := read.path.match(below):
                return read, matched.groupdict()
    return None


def answer(asked: HotRead, sent: Any, raw: Mapping[str, str]) -> Answer | None:
    """The answer to a hot read, `raw` being the parts of its path; None to fall back to normal dispatch.

    Call it inside metalake.statements.only_by, whose BeginAgain also means None.
    """
    endpoint = asked.endpoint()
    endpoint.request, endpoint.kwargs = sent, dict(raw)
    try:
        renderer, media_type = _NEGOTIATION.select_renderer(sent, _RENDERERS)
        assert asked.declared.looks_up is not None
        arrived = caller_at(sent.META, asked.declared.looks_up(endpoint))
        if arrived is None:
            return None
        endpoint.actor, ahead = arrived
        with ahead:
            payload = _method_of(asked.endpoint)(endpoint, endpoint.actor, **endpoint.names)
    except NotFound as missing:
        note_failure(missing)
        return Answer(shape_of(missing)[0], orjson.dumps(error_body(missing)), endpoint.default_response_headers)
    except MetalakeError:
        return None  # includes refusals, which normal dispatch records
    age = age_of(endpoint.taken_at) if endpoint.taken_at else {}
    return Answer(200, renderer.render({"code": 0, **payload}, media_type), age | endpoint.default_response_headers)


def _method_of(endpoint: type[Endpoint]) -> Callable[..., dict[str, Any]]:
    """The method that `answers` decorates, without its wrapper for the framework."""
    return cast(Any, endpoint).get.__wrapped__
