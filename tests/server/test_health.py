"""What anybody may ask names nobody and nothing; a credential that is sent is a good one."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families as parser

from authz.models import User
from benchmarks.http import basic

pytestmark = [pytest.mark.store, pytest.mark.django_db]

TOKEN = "a token of many letters"
ADMINS = "gravitino.authorization.serviceAdmins"


@pytest.mark.parametrize(
    "given", ["Bearer a token of many letterz", f"Basic {TOKEN}", "Bearer ", "Bearer", "Bearer \u00e9", "", TOKEN]
)
def test_a_wrong_token_of_metrics_is_refused(settings: Any, given: str) -> None:
    settings.METALAKE_METRICS_TOKEN = TOKEN
    refused = Client().get("/metrics", headers={"Authorization": given})
    assert (refused.status_code, refused["WWW-Authenticate"]) == (401, 'Bearer realm="Metalake metrics"')
    assert "METALAKE_METRICS_TOKEN" in refused.json()["message"]
    settings.METALAKE_METRICS_TOKEN = ""
    assert Client().get("/metrics", headers={"Authorization": given}).status_code == 401


def test_metrics_are_for_anybody_and_for_who_has_the_token(settings: Any) -> None:
    settings.METALAKE_METRICS_TOKEN = TOKEN
    for headers in ({}, {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"bearer  {TOKEN}"}):
        answer = Client().get("/metrics", headers=headers)
        assert (answer.status_code, b"metalake_outbox_rows" in answer.content) == (200, True)


def test_metrics_are_told_while_the_database_is_down(settings: Any) -> None:
    settings.METALAKE_METRICS_TOKEN = TOKEN
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def down(*_: Any) -> Any:
        raise OperationalError("connection refused")

    with connection.execute_wrapper(down):
        answer = Client().get("/metrics", headers=headers)
        alive = Client().get("/health")
    assert (answer.status_code, alive.status_code) == (200, 200)
    told = families(answer)
    assert told["metalake_database_up"] == [0.0]
    assert "python_info" in told, "what the process knows by itself"
    assert "metalake_outbox_rows" not in told, "no number of before"
    told = families(Client().get("/metrics", headers=headers))
    assert (told["metalake_database_up"], told["metalake_outbox_rows"]) == ([1.0], [0.0])
    assert {"metalake_outside_catalog", "metalake_writes_stuck", "metalake_writes_looked_for"} <= told.keys()


def families(answer: Any) -> dict[str, list[float]]:
    """The values of each family, of an answer that is valid exposition format and tells of none twice."""
    text = answer.content.decode()
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    return {family.name: [sample.value for sample in family.samples] for family in parser(text)}


def test_who_administers_is_told_to_callers_alone() -> None:
    User.objects.create_user("ana", password="correct horse battery")
    assert ADMINS not in Client().get("/configs").json()
    assert Client().get("/configs", headers={"Authorization": basic("ana", "wrong")}).status_code == 401
    ana = basic("ana", "correct horse battery")
    assert Client().get("/configs", headers={"Authorization": ana}).json()[ADMINS] == "admin"
