"""The URLs below /iceberg/{metalake}: the paths of the route table, matched while still encoded."""

from __future__ import annotations

import re
from collections import defaultdict

from django.http import HttpRequest, HttpResponse
from django.urls import re_path

from iceberg_rest import api, api_tables, api_views  # noqa: F401  (they add the routes)
from iceberg_rest.errors import render_error
from iceberg_rest.routes import ROUTES, Route, view_of
from metalake.errors import NotFound


def _pattern(path: str) -> str:
    return "^(?P<metalake>[^/]+)" + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path) + r"\Z"


_by_path: defaultdict[str, dict[str, Route]] = defaultdict(dict)
for _route in ROUTES:
    _by_path[_route.path][_route.method] = _route

# The most frequent reads first: engines look for a view before the table of that name. Django's URL resolver would take
# as long as the rest of a load.
FREQUENT = ("/tables/{table}", "/views/{view}")
PATHS = [
    (re.compile(_pattern(path)), view_of(routes), routes)
    for path, routes in sorted(_by_path.items(), key=lambda item: not item[0].endswith(FREQUENT))
]


def hot_read(method: str, below: str) -> tuple[Route, dict[str, str]] | None:
    """The hot read for a path below /iceberg/, with its path segments; None for every other request."""
    for pattern, _, routes in PATHS:
        if matched := pattern.match(below):
            declared = routes.get(method)
            return (declared, matched.groupdict()) if declared and declared.looks_up else None
    return None


def answer(request: HttpRequest) -> HttpResponse:
    """Answer any request below /iceberg/, by its raw path."""
    below = request.path_info.removeprefix("/iceberg/")
    for pattern, view, _ in PATHS:
        if matched := pattern.match(below):
            return view(request, **matched.groupdict())
    return render_error(NotFound("There is nothing at this path.")).as_response()


urlpatterns = [re_path("", answer)]
