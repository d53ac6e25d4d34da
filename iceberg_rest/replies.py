"""The reply of an Iceberg REST endpoint, converted to Django's response last."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson
from django.http import HttpResponse

from metalake.bodies import JSON


@dataclass(slots=True)
class Reply:
    """A status, a JSON body or none, and the headers specific to this reply."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    def as_response(self) -> HttpResponse:
        response = HttpResponse(self.body, status=self.status, content_type=JSON)
        if not self.body:
            del response["Content-Type"]
        for name, value in self.headers.items():
            response[name] = value
        return response


def reply(data: object) -> Reply:
    return Reply(body=orjson.dumps(data))


def done() -> Reply:
    return Reply(204)
