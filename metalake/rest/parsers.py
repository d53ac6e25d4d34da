"""Parses JSON bodies, within the limits of metalake.bodies."""

from __future__ import annotations

from typing import IO, Any

from django.utils.http import parse_header_parameters
from rest_framework.parsers import BaseParser

from metalake.bodies import JSON, read_json, require_json_type


class JSONParser(BaseParser):
    """By orjson."""

    media_type = JSON

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Raises TooLarge for too many values; Invalid for another type, non-JSON and NUL."""
        require_json_type(plain_type(media_type))
        return read_json(stream.read())


def plain_type(media_type: str | None) -> str:
    """The type without its parameters, in lower case."""
    return parse_header_parameters(media_type or "")[0]
