"""The API's description, built from what each endpoint declares with @answers."""

from __future__ import annotations

from drf_spectacular.openapi import AutoSchema


class NativeSchema(AutoSchema):
    """One operation of the description."""
