"""Requests made from the API's own description, fitting and not: the server never fails and answers as it says."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from metalake.wsgi import application
from tests.catalogs.callers import Caller
from tests.demo import PASSWORD
from tests.profiles import weighing

# What does not fit is refused before the store is asked, so PostgreSQL gets what fits.
pytestmark = [pytest.mark.store(once=True), pytest.mark.slow, pytest.mark.django_db, pytest.mark.timeout(300)]

CHECKS = [not_a_server_error, response_schema_conformance, content_type_conformance, status_code_conformance]
# So that some requests reach what is there.
THERE = {"metalake": "demo", "catalog": "lake", "schema": "A:B", "table": "t", "user": "admin", "role": "none"}


@pytest.fixture
def filled(admin: Caller) -> None:
    schemas = "metalakes/demo/catalogs/lake/schemas"
    admin.post(schemas, {"name": "A:B"})
    admin.post(f"{schemas}/A:B/tables", {"name": "t", "columns": [{"name": "id", "type": "long"}]})


@pytest.fixture
def one_connection(filled: None) -> Iterator[None]:
    """The test's own transaction outlives the requests, as under Django's test client."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def description(one_connection: None) -> Any:
    return schemathesis.openapi.from_wsgi("/api/schema/?format=json", app=application)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_operation(description: Any, mode: GenerationMode) -> None:
    tried = 0
    for result in description.get_all_operations():
        operation = result.ok()
        if mode is GenerationMode.POSITIVE or operation.body:
            send_some(operation, mode)
            tried += 1
    assert tried > 20


def send_some(operation: Any, mode: GenerationMode) -> None:
    credential = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()

    @seed(20240101)
    @weighing(
        0.04,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), there=st.booleans())
    def send(case: Any, there: bool) -> None:
        if there and case.path_parameters:
            case.path_parameters = {name: THERE.get(name, value) for name, value in case.path_parameters.items()}
        with transaction.atomic():
            case.call_and_validate(headers={"Authorization": f"Basic {credential}"}, checks=CHECKS)
            transaction.set_rollback(True)

    send()
