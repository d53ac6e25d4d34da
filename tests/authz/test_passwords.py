"""Guessing passwords: counted before they are hashed, on every door, and in nobody else's way."""

from __future__ import annotations

import base64
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest
from django.db.models import F
from django.test import Client
from gravitino.dto.responses.error_response import ErrorResponse
from gravitino.exceptions import handlers
from gravitino.exceptions.base import RESTException

from authz import passwords, throttling
from authz.models import AuditEntry, Remembered, User
from metalake import refusal_audit
from metalake.client_address import parse_proxies
from metalake.errors import TooManyRequests
from metalake.rest.exceptions import error_body
from tests.authz.small_world import PASSWORD, World
from tests.servers import REPOSITORY

pytestmark = pytest.mark.store
HERE, THERE = "203.0.113.7", "198.51.100.9"
ME = "/api/authn/me"


class Reply(NamedTuple):
    status: int
    headers: Any
    body: Any


def ask(password: str, name: str = "olga", *, address: str = HERE, path: str = ME, **meta: str) -> Reply:
    credential = base64.b64encode(f"{name}:{password}".encode()).decode()
    answer = Client(REMOTE_ADDR=address, **meta).get(path, headers={"Authorization": f"Basic {credential}"})  # type: ignore[arg-type]
    return Reply(answer.status_code, answer.headers, json.loads(answer.content))


def submit(password: str, name: str = "olga", *, path: str = "/login", address: str = HERE):
    return Client(REMOTE_ADDR=address).post(path, {"username": name, "password": password})


def guess(times: int, name: str = "olga", **where: Any) -> list[int]:
    return [ask(f"guess {n}", name, **where).status for n in range(times)]


def another_process() -> None:
    """What a process that starts knows of passwords."""
    passwords._verified.clear()


@pytest.fixture(autouse=True)
def forgotten() -> None:
    refusal_audit.forget()
    another_process()


@pytest.fixture
def slow_hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that were hashed."""
    hashed: list[str] = []
    real = passwords.check_password

    def check(password: str, stored: str) -> bool:
        hashed.append(password)
        return real(password, stored)

    monkeypatch.setattr(passwords, "check_password", check)
    return hashed


@pytest.mark.parametrize("name", ["olga", "nobody at all"])
def test_ten_wrong_passwords_for_an_account_from_one_address(world: World, name: str, slow_hashes: list[str]) -> None:
    assert guess(10, name) == [401] * 10
    refused = ask("guess 11", name)
    assert refused.status == 429
    assert 800 < int(refused.headers["Retry-After"]) <= 900
    assert refused.body == {
        "code": 1000,
        "type": "TooManyRequestsException",
        "message": "Too many sign-ins failed. Try again in 15 minutes.",
    }
    assert len(slow_hashes) == 10, "what is refused is not hashed"
    if name == "olga":
        assert ask(PASSWORD).status == 429, "or the eleventh guess would still tell"
        assert ask(PASSWORD, address=THERE).status == 200


def test_the_iceberg_wire_says_it_in_its_shape(world: World) -> None:
    path = "/iceberg/acme/v1/config"
    guess(10, path=path)
    refused = ask("guess 11", path=path)
    assert refused.status == 429
    assert int(refused.headers["Retry-After"]) > 800
    message = "Too many sign-ins failed. Try again in 15 minutes."
    assert refused.body == {"error": {"message": message, "type": "TooManyRequestsException", "code": 429}}


def test_fifty_wrong_passwords_from_one_address(world: World) -> None:
    for n in range(10):
        assert guess(5, f"name {n}") == [401] * 5
    assert ask("guess", "yet another name").status == 429
    assert ask(PASSWORD).status == 429
    assert ask(PASSWORD, address=THERE).status == 200


def test_all_doors_count_together(world: World) -> None:
    User.objects.create_superuser("root", PASSWORD)
    guess(4, "root")
    assert [submit("wrong", "root").status_code for _ in range(3)] == [400] * 3
    assert [submit("wrong", "root", path="/admin/login/").status_code for _ in range(3)] == [200] * 3
    for path in ("/login", "/admin/login/"):
        page = submit(PASSWORD, "root", path=path)
        assert page.status_code == 429
        assert int(page.headers["Retry-After"]) > 800
        assert "Too many sign-ins failed. Try again in 15 minutes." in page.content.decode()
        assert "sessionid" not in page.cookies
        assert submit(PASSWORD, "root", path=path, address=THERE).status_code == 302


def test_nobody_locks_out_a_client_that_works(world: World, slow_hashes: list[str]) -> None:
    assert ask(PASSWORD).status == 200
    guess(11)  # from the same address, as behind one router
    for n in range(8):
        guess(5, f"name {n}")
    guess(11, address=THERE)
    assert ask(PASSWORD).status == 200
    another_process()
    assert ask(PASSWORD).status == 200
    assert submit(PASSWORD).status_code == 302, "on the pages too"
    assert slow_hashes.count(PASSWORD) == 1
    assert ask("guess").status == 429


def test_what_the_store_knows_is_not_written_again(world: World) -> None:
    """On SQLite a process that meets it would wait for the writer, and so would whoever only reads."""
    assert ask(PASSWORD).status == 200
    known = dict(Remembered.objects.values_list("digest", "until"))
    Remembered.objects.update(until=F("until") - 1000)
    another_process()
    assert ask(PASSWORD).status == 200
    assert all(until == known[digest] - 1000 for digest, until in Remembered.objects.values_list("digest", "until"))
    Remembered.objects.update(until=int(time.time()) + passwords.REMEMBERED // 2 - 10)
    another_process()
    assert ask(PASSWORD).status == 200
    assert Remembered.objects.filter(until__gt=time.time() + passwords.REMEMBERED - 60).count() == 1


def test_a_credential_that_works_elsewhere_is_no_way_round(world: World) -> None:
    """Otherwise guesses of a password in use would be unlimited, and the right one would be told by its 200."""
    assert ask(PASSWORD).status == 200
    guess(10, address=THERE)
    assert ask(PASSWORD, address=THERE).status == 429


def test_a_disabled_account_and_one_whose_password_changed_are_as_unknown(world: World, slow_hashes: list[str]) -> None:
    assert ask(PASSWORD).status == 200
    User.objects.filter(username="olga").update(is_active=False)
    assert [ask(PASSWORD).status for _ in range(11)] == [401] * 10 + [429]
    User.objects.filter(username="olga").update(is_active=True)
    assert ask(PASSWORD).status == 200
    olga = User.objects.get(username="olga")
    olga.set_password("another long password")
    olga.save()
    assert ask(PASSWORD).status == 429
    assert ask("another long password").status == 429, "new, so it waits like others; from elsewhere it is taken"
    assert ask("another long password", address=THERE).status == 200


def test_counts_end_with_their_window(world: World) -> None:
    guess(11)
    assert ask(PASSWORD).status == 429
    Remembered.objects.update(until=1)
    assert ask(PASSWORD).status == 200
    assert guess(11) == [401] * 10 + [429]
    Remembered.objects.update(until=1)
    throttling.prune()
    assert not Remembered.objects.exists()


def test_what_is_right_is_not_counted(world: World) -> None:
    for _ in range(51):
        another_process()
        Remembered.objects.filter(count=0).delete()
        assert ask(PASSWORD).status == 200
    assert set(Remembered.objects.values_list("count", flat=True)) == {0}


def test_the_store_keeps_neither_names_nor_passwords_nor_addresses(world: World, settings: Any) -> None:
    ask(PASSWORD)
    ask("a password typed for a name", "a name")
    kept = list(Remembered.objects.values_list("digest", flat=True))
    assert len(kept) == 4  # what was right; olga from here, a name from here, anybody from here
    stored = User.objects.get(username="olga").password
    parts = (stored, HERE, "olga", PASSWORD)
    assert throttling.digest("verified", passwords._run_key, *parts) in kept
    assert throttling.digest("verified", *parts) not in kept, "nothing can be tried out by what lies on a disk"
    settings.SECRET_KEY = "another key"
    assert throttling.digest("verified", passwords._run_key, *parts) not in kept


def test_the_key_of_what_was_right_is_drawn_before_a_server_has_processes() -> None:
    script = "import django, sys; django.setup(); sys.exit('authz.passwords' not in sys.modules)"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    assert subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, env=environment, check=False).returncode == 0


def test_addresses_are_believed_of_trusted_proxies_only(world: World, settings: Any) -> None:
    for n in range(10):
        assert ask(f"guess {n}", HTTP_X_FORWARDED_FOR=f"192.0.2.{n}").status == 401
    assert ask("guess", HTTP_X_FORWARDED_FOR="192.0.2.99").status == 429
    settings.METALAKE_TRUSTED_PROXIES = parse_proxies([HERE])
    for n in range(11):
        forged = f"192.0.2.{n}, {THERE}"
        status = ask(f"guess {n}", HTTP_X_FORWARDED_FOR=forged).status
    assert status == 429
    assert ask(PASSWORD, HTTP_X_FORWARDED_FOR="192.0.2.99").status == 200


def test_hashing_leaves_threads_for_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    hall = throttling.Bulkhead("hall", 2, 4, patience=0.01, message="Too many sign in at this moment; try again.")
    monkeypatch.setattr(passwords, "_hashing", hall)
    assert ask(PASSWORD).status == 200
    with ExitStack() as inside:
        inside.enter_context(hall.place())
        inside.enter_context(hall.place())
        busy = ask("a guess", "mia")
        assert (busy.status, busy.headers["Retry-After"]) == (429, "1")
        assert ask(PASSWORD).status == 200, "who is known does not hash"
        # As many wait as hash; the others are told at once.
        hall.patience = 60
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(_pass, hall) for _ in range(2)]
            while hall._line._value:
                threading.Event().wait(0.001)
            assert ask("a guess", "mia").status == 429
            inside.close()
            assert all(each.result() for each in waiting)
    assert ask("a guess", "mia").status == 401, "nothing is left taken"
    assert Remembered.objects.filter(count=1).count() == 2


def _pass(hall: throttling.Bulkhead) -> bool:
    with hall.place():
        return True


@pytest.mark.django_db(transaction=True)
def test_guesses_at_once_are_no_way_round(slow_hashes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them read the counts before any of them is counted."""
    from django.db import connection

    from authz import snapshot

    snapshot.forget()
    User.objects.create_user("olga", PASSWORD)
    start = threading.Barrier(16)
    real = throttling.require

    def all_at_once(*args: Any) -> None:
        start.wait(30)
        real(*args)

    monkeypatch.setattr(throttling, "require", all_at_once)
    monkeypatch.setattr(passwords, "_hashing", throttling.Bulkhead("wide", 16, 32, patience=60, message="busy"))

    def one(n: int) -> int:
        try:
            return ask(f"guess {n}").status
        finally:
            connection.close()

    with ThreadPoolExecutor(16) as pool:
        statuses = sorted(pool.map(one, range(16)))
    assert statuses == [401] * 10 + [429] * 6
    assert len(slow_hashes) == 10
    snapshot.forget()


def test_the_audit_tells_it_once_a_minute(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(refusal_audit, "clock", lambda: now[0])
    guess(12)
    guess(3, "my secret, typed in the wrong field", address=THERE)
    refusal_audit.flush()
    rows = AuditEntry.objects.filter(event="sign_in.refused").order_by("id")
    assert not rows.exists()
    now[0] += 60
    refusal_audit.flush()
    refusal_audit.flush()
    (row,) = rows.all()
    assert (row.actor, row.kind, row.full_name) == ("", "user", "15 sign-ins")
    del row.details["since"]
    assert row.details == {
        "wrong": 13,
        "notTried": 2,
        "accounts": {"olga": 12},
        "unknownNames": 3,
        "addresses": {HERE: 12, THERE: 3},
    }
    guess(1, address="192.0.2.1")
    now[0] += 61
    guess(1, address="192.0.2.1")
    refusal_audit.flush(everything=True)
    assert [row.details["wrong"] for row in rows.all()] == [13, 1, 1], "a minute that nobody told is told all the same"


CLIENT_HANDLERS = [name for _, name, _ in pkgutil.iter_modules(handlers.__path__) if name != "error_handler"]


@pytest.mark.parametrize("name", CLIENT_HANDLERS)
def test_the_published_client_says_why(name: str) -> None:
    """Each of its handlers knows other codes; an unknown one would end as a KeyError or without the reason."""
    told = json.dumps(error_body(TooManyRequests("Too many sign-ins failed. Try again in 15 minutes."))).encode()
    handler = getattr(importlib.import_module(f"{handlers.__name__}.{name}"), name.upper())
    with pytest.raises(RESTException, match="Try again in 15 minutes"):
        handler.handle(ErrorResponse.from_json(told, infer_missing=True))
