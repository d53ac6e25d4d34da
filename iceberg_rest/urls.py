"""Below /iceberg/{metalake}: every path of the table of routes, matched while it is still encoded."""

from __future__ import annotations

import re
from collections import defaultdict

from django.http import HttpRequest, HttpResponse
from django.urls import re_path

from iceberg_rest import api, api_tables  # noqa: F401  (they fill the table of routes)
from iceberg_rest.errors import render_error
from iceberg_rest.routes import ROUTES, Route, view_of
from metalake.errors import NotFound


def nothing_here(request: HttpRequest) -> HttpResponse:
    return render_error(NotFound("There is nothing at this path."))


def _pattern(path: str) -> str:
    return "^(?P<metalake>[^/]+)" + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path) + "$"


_by_path: defaultdict[str, dict[str, Route]] = defaultdict(dict)
for _route in ROUTES:
    _by_path[_route.path][_route.verb] = _route

_hot_first = sorted(_by_path.items(), key=lambda item: not item[0].endswith("/tables/{table}"))

urlpatterns = [
    *(re_path(_pattern(path), view_of(routes)) for path, routes in _hot_first),
    re_path("", nothing_here),
]
