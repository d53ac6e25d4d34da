"""The API's description, built from what each endpoint declares with @answers."""

from __future__ import annotations

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.views import SpectacularAPIView


class NativeSchema(AutoSchema):
    pass


class SchemaEndpoint(SpectacularAPIView):
    pass
