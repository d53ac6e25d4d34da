"""Requests made up from the specification: none ends in a 5xx, and every refusal has the wire's shape."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from schemathesis.core import NotSet

from iceberg_rest.routes import Route
from iceberg_rest.urls import ROUTES
from tests.iceberg_rest.world import Caller
from tests.parts import reference
from tests.profiles import weighing


@pytest.fixture(scope="module")
def specification() -> Any:
    return schemathesis.openapi.from_path(reference("iceberg-rest-catalog-open-api.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("route", [route for route in ROUTES if route.method != "HEAD"], ids=str)
def test_made_up_requests(specification: Any, owner: Caller, route: Route) -> None:
    owner.make_namespace("a")
    owner.make_table("a", "t")
    owner.make_view("a", "v")

    @weighing(
        0.2,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(specification[route.path][route.method].as_strategy())
    def ask(case: Any) -> None:
        names = {name: quote(str(value), safe="") for name, value in (case.path_parameters or {}).items()}
        # Half of the requests meet what is there.
        if len(str(case.body)) % 2:
            names |= {"namespace": "a", "table": "t", "view": "v"}
        path = route.path.format(**(names | {"prefix": "lake"}))
        query = urlencode(case.query or {}, doseq=True)
        body = b"" if isinstance(case.body, NotSet) else json.dumps(case.body).encode()
        answer = owner.ask(route.method, f"/iceberg/demo{path}?{query}", body)
        assert answer.status < 500, answer.content
        if answer.status >= 400:
            assert answer.error

    ask()
