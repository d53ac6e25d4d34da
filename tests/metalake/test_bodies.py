"""What a body may hold: values are counted before they are made, and no body that is read takes much memory."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, RequestFactory

from access.plans import plan_file
from authz import snapshot
from authz.callers.identity import actor_of
from authz.models import User
from benchmarks.http import basic
from catalogs.services import catalogs, metalakes
from iceberg_rest.wire import Commit
from metalake.bodies import holds_nul, parse, require_few_values
from metalake.errors import Invalid, MetalakeError, TooLarge

PASSWORD = "correct horse battery"
MIB = 1024 * 1024
MOST = 160 * MIB
PEAK = Path("/proc/self/clear_refs")


def is_few(body: bytes, limit: int) -> bool:
    try:
        require_few_values(body, limit)
    except TooLarge:
        return False
    return True


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"{}", 1),
        (b"[1,2,3]", 3),
        (b'{"a":{"b":[]},"c":""}', 4),
        (b'["a,b{[,,,,","\\",,,,","\\\\"]', 3),
        (b'["\\\\\\",,,,,"]', 1),
        (b'{"a,,":"{{"}', 1),
    ],
)
def test_values_are_counted_and_what_texts_hold_is_not(body: bytes, count: int) -> None:
    assert is_few(body, count)
    assert count == 1 or not is_few(body, count - 1)


@pytest.mark.parametrize("body", [b"[" * 50, b'"' * 1000, b'"\\' + b"," * 100, b"{" + b'"",' * 40, b'["' + b"," * 100])
def test_what_is_no_json_is_counted_too(body: bytes) -> None:
    is_few(body, 10)
    assert is_few(body, 2000)


@pytest.mark.parametrize(
    ("body", "held"),
    [
        (b'"\\u0000"', True),
        (b'"a\\\\\\u0000"', True),
        (b'"\\\\u0000"', False),
        (b'"\\u00000"', True),
        (b'"u0000"', False),
        (b'"\\\\\\\\u0000"', False),
    ],
)
def test_a_nul_is_found(body: bytes, held: bool) -> None:
    assert holds_nul(body) == held


@contextmanager
def bounded_growth() -> Iterator[None]:
    """What is done within grows the process by MOST at its peak."""
    if not PEAK.exists():
        pytest.skip("not offered: the system does not tell the peak of a process's memory")
    PEAK.write_text("5")
    before = _told("VmRSS")
    yield
    grown = _told("VmHWM") - before
    assert grown < MOST, f"{grown / MIB:.0f} MiB"


def _told(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def commit(updates: bytes) -> bytes:
    """A commit of the largest size, filled up with text."""
    begun = b'{"updates":[' + updates + b'],"padding":"'
    return begun + b"x" * (16 * MIB - len(begun) - 2) + b'"}'


WORST: dict[str, Callable[[], bytes]] = {
    "small objects": lambda: commit(b",".join([b'{"a":{}}'] * 1_500_000)),
    "nested objects": lambda: commit(b",".join([b'{"a":' * 50 + b"{}" + b"}" * 50] * 3900)),
    "mistakes": lambda: commit(b",".join([b"7"] * 790_000)),
    "names": lambda: b'{"identifier":{"name":"t","namespace":[' + b",".join([b"7"] * 790_000) + b"]}}",
    "backslashes": lambda: b'{"updates":[{"a":"' + b"\\\\" * (8 * MIB - 20) + b'"}]}',
    "wide text": lambda: b'{"updates":[{"a":"\xf0\x9f\x98\x80' + b"x" * (16 * MIB - 40) + b'"}]}',
}


@pytest.mark.parametrize("worst", WORST)
def test_reading_a_commit_takes_little_memory(worst: str) -> None:
    sent = WORST[worst]()
    request = RequestFactory().post("/", sent, content_type="application/json")
    with bounded_growth():
        try:
            parse(request, Commit)
        except MetalakeError as refusal:
            assert isinstance(refusal, Invalid)
            assert len(refusal.message) < 200


def test_the_commit_that_expires_a_hundred_thousand_snapshots_is_read() -> None:
    update = b'{"action":"remove-snapshots","snapshot-ids":[1234567890123456789]}'
    request = RequestFactory().post("/", commit(b",".join([update] * 110_000)), content_type="application/json")
    with bounded_growth():
        assert len(parse(request, Commit).updates or ()) == 110_000


@pytest.mark.long
def test_reading_a_plan_takes_little_memory() -> None:
    lines = (f"  - {{type: table, fullName: lake.a.t{n:07}, allow: [select_table]}}\n" for n in range(49_000))
    file = f"metalake: demo\nroles:\n- name: r\n  grants:\n{''.join(lines)}".encode()
    with bounded_growth():
        assert len(plan_file.read_file(file).roles[0].grants) == 49_000


def test_a_plan_of_too_many_values_is_refused_before_they_are_made(settings: Any) -> None:
    settings.METALAKE_MAX_PLAN_VALUES = 20
    role = '{"name":"r","users":["a","b"]}'
    many = ",".join([role] * 10)
    with pytest.raises(TooLarge, match="20 may be sent"):
        plan_file.read_file(f'{{"metalake":"demo","roles":[{many}]}}'.encode(), plan_file.JSON)
    with pytest.raises(TooLarge, match="20 may be sent"):
        plan_file.read_file(b"metalake: demo\nroles:\n" + b"- {name: r, users: [a, b]}\n" * 10)
    few = plan_file.read_file(b"metalake: demo\nroles:\n" + b"- {name: r, users: [a, b]}\n" * 3)
    assert len(few.roles) == 3


def test_a_key_that_is_repeated_behind_many_others_is_found_at_once() -> None:
    """Looking through all keys for each of them took minutes."""
    keys = ",".join(f'"k{n}":1' for n in range(240_000))

    def too_slow(*_: Any) -> None:
        raise AssertionError("each key is compared with every other")

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(45)
    try:
        with pytest.raises(Invalid, match="'k239999' is said twice"):
            plan_file.read_file(f'{{{keys},"k239999":1}}'.encode(), plan_file.JSON)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.django_db
def test_a_body_of_too_many_values_is_too_large_on_both_wires(settings: Any, admin_caller: str) -> None:
    settings.METALAKE_MAX_BODY_VALUES = 50
    client = Client(headers={"Authorization": admin_caller})
    many = "[" + ",".join(["{}"] * 60) + "]"
    native = client.post("/api/tokens", f'{{"name":{many}}}', content_type="application/json")
    assert (native.status_code, native.json()["code"]) == (413, 1001)
    assert native.json()["message"] == "The request body holds too many values; 50 may be sent at once."
    path = "/iceberg/demo/v1/lake/namespaces"
    iceberg = client.post(path, f'{{"namespace":{many}}}', content_type="application/json")
    assert (iceberg.status_code, iceberg.json()["error"]["type"]) == (413, "BadRequestException")


@pytest.fixture
def admin_caller(db: None) -> str:
    snapshot.forget()
    account = User.objects.create_superuser("admin", PASSWORD)
    metalakes.create_metalake(actor_of(account), "demo", None, {})
    catalogs.create_catalog(actor_of(account), "demo", "lake", "relational", "lakehouse-iceberg", None, {})
    return basic("admin", PASSWORD)
