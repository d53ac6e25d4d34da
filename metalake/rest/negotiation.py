"""Content negotiation: chooses parser and renderer, and checks the requested API version."""

from __future__ import annotations

import re
from typing import Any

from rest_framework.negotiation import BaseContentNegotiation

from metalake.errors import Invalid

_VERSIONED = re.compile(r"application/vnd\.gravitino\.v(\d+)\+json")


def asks_for_gravitino(accept: str) -> bool:
    """Whether Accept requests Gravitino's versioned media type, as Gravitino's clients do."""
    return _VERSIONED.search(accept) is not None


class VersionedJSON(BaseContentNegotiation):
    """Responses are always JSON; a client that requests an API version must request ours.

    An endpoint has one parser, which rejects other types itself.
    """

    def select_parser(self, request: Any, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Any, renderers: Any, format_suffix: str | None = None) -> tuple[Any, str]:
        """Raises Invalid for another version."""
        accepted = request.META.get("HTTP_ACCEPT", "")
        if (version := _VERSIONED.search(accepted)) and version[1] != "1":
            raise Invalid(f"Version {version[1]} of the wire is not supported; 1 is.")
        return renderers[0], renderers[0].media_type
