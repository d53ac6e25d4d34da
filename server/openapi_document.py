"""Serves the OpenAPI document, rendered once per process.

Rendering takes a second, and drf-spectacular's generator fails if two threads use it for the first time concurrently.
The content, routes and their declarations, is fixed when a process starts.
"""

from __future__ import annotations

import hashlib
import threading
from functools import cache
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request

_making = threading.Lock()


class Rendered(NamedTuple):
    body: bytes
    etag: str


class Description(SpectacularAPIView):
    """Sends the document as YAML or JSON, by Accept; no parameter but `format` changes it."""

    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        renderer = request.accepted_renderer
        with _making:
            rendered = _rendered()[renderer.format]
        charset = f"; charset={renderer.charset}" if renderer.charset else ""
        response = HttpResponse(rendered.body, content_type=f"{renderer.media_type}{charset}")
        response["ETag"] = rendered.etag
        response["Content-Disposition"] = f'inline; filename="{self._get_filename(request, None)}"'
        response["Cache-Control"] = "public, no-cache"  # it is the same for every caller
        patch_vary_headers(response, ["Accept"])
        return get_conditional_response(request, etag=rendered.etag, response=response) or response


@cache
def _rendered() -> dict[str, Rendered]:
    description = SchemaGenerator().get_schema(public=True)
    renderers = (OpenApiYamlRenderer(), OpenApiJsonRenderer())
    return {renderer.format: _with_etag(renderer.render(description, renderer_context={})) for renderer in renderers}


def _with_etag(body: bytes) -> Rendered:
    return Rendered(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
