"""What the processes of a server agree on: who takes a new connection, and who is there for large requests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from server.http import process
from server.http.process import Balance, Roles, ServerWorker


def test_the_fewest_connections_are_of_those_that_are_there() -> None:
    balance = Balance()
    assert balance.fewest() == 0
    for place, count in ((1, 5), (2, 3), (3 + Balance.PLACES, 4)):
        balance.put(place, count)
    assert balance.fewest() == 3
    balance.put(2, Balance.NOBODY)
    assert balance.fewest() == 4
    balance.put(3, 0)  # the same place, once it is given again
    assert balance.fewest() == 0


class Loop:
    def __init__(self) -> None:
        self.later: list[tuple[float, Any, Any]] = []
        self.readers: list[Any] = ["listener"]

    def call_later(self, seconds: float, act: Any, listener: Any) -> None:
        self.later.append((seconds, act, listener))

    def remove_reader(self, listener: Any) -> None:
        self.readers.remove(listener)

    def add_reader(self, listener: Any, act: Any, *_: Any) -> None:
        self.readers.append(listener)


def test_who_has_more_connections_leaves_a_new_one_to_the_others_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    balance, let_in = Balance(), []
    monkeypatch.setattr(process, "BALANCE", balance)
    monkeypatch.setattr(ServerWorker, "_accept", lambda self, listener: let_in.append(listener))
    one = ServerWorker.__new__(ServerWorker)
    loop = one.loop = Loop()  # type: ignore[assignment]
    one.alive = True
    one.server = SimpleNamespace(connections=range(3))  # type: ignore[assignment]
    balance.put(1, 3)
    balance.put(2, 3)
    one._on_connection("listener")  # type: ignore[arg-type]
    assert (let_in, loop.later) == (["listener"], [])
    balance.put(2, 2)
    one._on_connection("listener")  # type: ignore[arg-type]
    assert (let_in, loop.readers) == (["listener"], [])
    [(seconds, act, listener)] = loop.later
    assert seconds == process.ASIDE
    act(listener)
    assert (let_in, loop.readers) == (["listener"] * 2, ["listener"])


def fork(roles: Roles, arbiter: Any) -> ServerWorker:
    made = ServerWorker.__new__(ServerWorker)
    made.is_for_large = made.is_alone = False
    roles.choose(arbiter, made)
    arbiter.WORKERS[id(made)] = made
    return made


def test_one_of_each_generation_is_for_large_requests() -> None:
    roles = Roles()
    arbiter = SimpleNamespace(WORKERS={}, cfg=SimpleNamespace(workers=3))
    first, *others = [fork(roles, arbiter) for _ in range(3)]
    assert first.is_for_large
    assert not any(each.is_for_large for each in others)
    del arbiter.WORKERS[id(first)]
    assert fork(roles, arbiter).is_for_large, "as the one that died was"
    roles.renew(arbiter)
    assert [fork(roles, arbiter).is_for_large for _ in range(3)] == [True, False, False]


def test_one_process_alone_does_them_too() -> None:
    alone = fork(Roles(), SimpleNamespace(WORKERS={}, cfg=SimpleNamespace(workers=1)))
    assert (alone.is_for_large, alone.is_alone) == (False, True)
