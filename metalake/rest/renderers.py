"""Replies as JSON."""

from __future__ import annotations

from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer

from metalake.bodies import JSON


class JSONRenderer(BaseRenderer):
    """By orjson; the bytes are UTF-8, which the media type implies."""

    media_type = JSON
    format = "json"
    charset = None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return orjson.dumps(data)
