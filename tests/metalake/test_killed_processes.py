"""Clients who ask throughout are answered while processes of the server die or are exchanged.

`python -m benchmarks.killed_processes` does the same for a minute.
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.metalake.killing import Killed, Outcome, Unanswered, ask_throughout, exchange, kill_one, processes
from tests.servers import StartMetalake
from tests.waiting import eventually


@pytest.mark.slow
@pytest.mark.server
def test_only_what_a_killed_process_held_goes_unanswered(start_metalake: StartMetalake) -> None:
    server = start_metalake(METALAKE_WORKERS="2")

    killed = ask_throughout(server, seconds=3.5, every=1.5, disturb=kill_one(server), readers=6, writers=2)
    assert len(killed.killed) == 2
    assert not killed.unexplained
    check(killed)

    before = {process.pid for process in processes(server)}
    exchanged = ask_throughout(server, seconds=2.5, every=1.5, disturb=exchange(server), readers=6, writers=2)
    assert eventually(lambda: len({process.pid for process in processes(server)} - before) == len(before))
    assert not exchanged.unanswered
    check(exchanged)


def check(outcome: Outcome) -> None:
    assert not outcome.refused
    assert not outcome.failures, outcome.answers
    assert any(outcome.acknowledged.values()), "nobody could write"
    assert not outcome.lost


def test_a_killed_process_accounts_for_one_request_of_each_connection_that_it_held() -> None:
    killed = [Killed(4.0, frozenset({1, 3}))]
    lost, again, other, before = Unanswered(1, 5, ""), Unanswered(1, 6, ""), Unanswered(2, 5, ""), Unanswered(3, 1, "")
    assert Outcome(unanswered=[lost, again, other, before], killed=killed).unexplained == [again, other, before]


@pytest.mark.long
@pytest.mark.server
@pytest.mark.timeout(600)
def test_a_process_that_hangs_is_replaced(start_metalake: StartMetalake) -> None:
    """It is given the time that gunicorn gives every process to show that it lives, a minute."""
    server = start_metalake(METALAKE_WORKERS="2")
    assert eventually(lambda: (len(server.doors()), len(server.processes())) == (2, 3)), "one answers large requests"
    before = set(server.processes())
    hung = server.doors()[0]
    os.kill(hung, signal.SIGSTOP)
    assert eventually(lambda: hung not in server.processes(), seconds=300)
    assert eventually(lambda: len(server.processes()) == len(before))
    assert before - set(server.processes()) == {hung}, "the others go on"
    assert eventually(server.is_ready)
