"""What benchmarks.listeners starts servers with: a trivial listener, and the server without the hook of listeners."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def ignore(notice: Any) -> None:
    """The listener that costs the least."""


def remove_hook() -> None:
    """Answer requests of both wires as if nobody could listen to them."""
    from iceberg_rest import routes
    from metalake.rest.views import Endpoint

    del Endpoint.dispatch, Endpoint.handle_exception

    def perform_authentication(self: Any, request: Any) -> None:
        self.actor = request.user

    def view_of(by_method: Any) -> Callable[..., Any]:
        def view(request: Any, **raw: str) -> Any:
            asked = by_method.get(request.method or "")
            if asked is None:
                return routes._not_allowed(request, sorted(by_method)).as_response()
            return routes._answer(asked, request, raw).as_response()

        return view

    Endpoint.perform_authentication = perform_authentication
    routes.view_of = view_of  # type: ignore[assignment]


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "metalake.settings"
    import django
    from django.core.management import execute_from_command_line

    from metalake import metrics

    metrics.share()
    django.setup()
    remove_hook()
    execute_from_command_line(["manage.py", "serve"])


if __name__ == "__main__":
    main()
