"""What every request passes: which wire it is on, its path as it was sent, its id."""

from __future__ import annotations

import pytest
from django.test import Client, RequestFactory
from prometheus_client import REGISTRY

from metalake.request_target import read_target, wire_of
from tests.cases import each


@each(
    "path, wire",
    [
        ("/api/metalakes", "api"),
        ("/api", "api"),
        ("/iceberg/demo/v1/config", "iceberg"),
        ("/configs", "configs"),
        ("/health/ready", "health"),
        ("/metrics", "metrics"),
        ("/", "page"),
        ("", "page"),
        ("*", "page"),
        ("/metrics-of-mine", "page"),
        ("/configs.json", "page"),
        ("/healthy", "page"),
        ("/apis", "page"),
        ("//api/metalakes", "page"),
        ("/login", "page"),
    ],
)
def test_the_wire_is_the_whole_first_segment(path: str, wire: str) -> None:
    assert wire_of(path) == wire


@pytest.mark.django_db
def test_nobody_can_add_to_the_labels_of_the_counters() -> None:
    for number in range(20):
        Client().get(f"/metrics{number}")
        Client().get(f"/health{number}/x")
    wires = {
        sample.labels["wire"]
        for metric in REGISTRY.collect()
        if metric.name == "metalake_requests"
        for sample in metric.samples
    }
    assert wires <= {"api", "iceberg", "configs", "health", "metrics", "page"}


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        ("/api/a%2Fb", "/api/a%2Fb"),
        ("/api/a?b=c%2F", "/api/a"),
        ("http://host:8090/api/a%3Fb?c", "/api/a%3Fb"),
        ("http://host", "/"),
        ("HTTPS://host?c/d", "/"),
        ("/api/\u00c3\u00a9", "/api/%C3%A9"),  # bytes that a client did not encode, as a server passes them on
        ("/api/%C3%A9", "/api/%C3%A9"),
    ],
)
def test_the_path_is_kept_as_it_was_sent(sent: str, path: str) -> None:
    assert read_target({"RAW_URI": sent}) == path


def test_a_decoded_path_is_encoded_again() -> None:
    assert read_target(RequestFactory().get("/api/%C3%A9%20%25").META) == "/api/%C3%A9%20%25"


@each("given", ["", "a b", "a\x00b", "a\x1b[31m", "é", "x" * 65, '"', "a\\b"])
def test_an_id_that_is_no_id_is_replaced(given: str) -> None:
    answered = Client().get("/health", headers={"X-Request-Id": given})["X-Request-Id"]
    assert answered != given
    assert answered.isalnum()


@pytest.mark.parametrize("given", ["x", "x" * 64, "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "Root=1-67891233:abc/def.+"])
def test_an_id_is_kept(given: str) -> None:
    assert Client().get("/health", headers={"X-Request-Id": given})["X-Request-Id"] == given


@pytest.mark.parametrize("length", ["abc", "-1", "1e9"])
def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    answer = Client(raise_request_exception=False).get("/api/version", CONTENT_LENGTH=length)
    assert answer.status_code in (200, 400)
