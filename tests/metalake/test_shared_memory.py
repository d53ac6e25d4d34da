"""What the processes of a server share: nobody who is killed keeps a place, blocks others or leaves half a turn."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread

import pytest

from metalake import shared_memory
from tests.waiting import eventually

FORK = get_context("fork")  # as a server's processes come to be


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> shared_memory.Board:
    """As after share()."""
    made = shared_memory.Board(tmp_path)
    monkeypatch.setattr(shared_memory, "_board", made)
    return made


@pytest.fixture
def fork() -> Iterator[Callable[..., BaseProcess]]:
    """Do something in another process, which waits to be killed afterwards; it has begun when this comes back."""
    running: list[BaseProcess] = []

    def start(act: Callable[[], object]) -> BaseProcess:
        did = FORK.Event()

        def work() -> None:
            act()
            did.set()
            signal.pause()

        process = FORK.Process(target=work)
        process.start()
        running.append(process)
        assert did.wait(30)
        return process

    yield start
    for process in running:
        process.kill()
        process.join()


def kill(process: BaseProcess) -> None:
    process.kill()
    process.join()


def test_places_are_held_by_all_processes_together_and_given_back_by_the_dead(fork: Callable[..., BaseProcess]) -> None:
    places, others = shared_memory.Places("calls", 3), shared_memory.Places("other calls", 1)
    mine = places.take()
    other = fork(lambda: (places.take(), places.take()))
    assert mine == 0 and places.take() is None
    assert others.take() == 0, "another name's places are its own"
    kill(other)
    assert [places.take(), places.take(), places.take()] == [1, 2, None]
    places.leave(0)
    places.leave(2)
    kill(fork(lambda: places.take()))
    assert places.take() == 0


def test_a_place_that_another_process_leaves_is_waited_for(fork: Callable[..., BaseProcess]) -> None:
    places = shared_memory.Places("hall", 1)
    assert places.take(patience=0.0) == 0
    places.leave(0)
    other = fork(places.take)
    found: list[int | None] = []
    waiting = Thread(target=lambda: found.append(places.take(patience=30.0)))
    waiting.start()
    assert places.take(patience=0.05) is None
    kill(other)
    waiting.join()
    assert found == [0]


def test_threads_of_one_process_do_not_share_a_place(shared: shared_memory.Board) -> None:
    """The kernel's locks are the process's; they alone would let every thread of it in."""
    places = shared_memory.Places("calls", 16)
    taken: list[int | None] = []
    threads = [Thread(target=lambda: taken.append(places.take())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each for each in taken if each is not None) == list(range(16))


def test_notes_are_everybodys(fork: Callable[..., BaseProcess]) -> None:
    notes, others = shared_memory.SharedDict("lines"), shared_memory.SharedDict("refusals")
    notes["a"] = {"failures": 1}

    def change() -> None:
        notes["a"] = {"failures": notes["a"]["failures"] + 1}
        notes["b"] = ["\0", "é"]
        others["a"] = 1

    kill(fork(change))
    assert notes.everything() == {"a": {"failures": 2}, "b": ["\0", "é"]}
    del notes["a"]
    assert ("a" in notes, len(notes), notes.get("a"), dict(others)) == (False, 1, None, {"a": 1})
    with pytest.raises(KeyError):
        del notes["a"]


def test_turns_are_one_after_the_other() -> None:
    notes = shared_memory.SharedDict("counts")

    def count() -> None:
        for _ in range(200):
            with shared_memory.turn():
                notes["a"] = notes.get("a", 0) + 1

    processes = [FORK.Process(target=count) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert ([process.exitcode for process in processes], notes["a"]) == ([0] * 4, 800)


def test_who_is_killed_in_a_turn_changed_nothing_and_blocks_nobody(fork: Callable[..., BaseProcess]) -> None:
    notes = shared_memory.SharedDict("counts")
    notes["a"] = notes["b"] = 0

    begun = []

    def stop_half_way() -> None:
        begun.append(shared_memory.turn())
        begun[0].__enter__()
        notes["a"] = 1

    other = fork(stop_half_way)
    assert notes["a"] == 0, "who only reads waits for nobody"
    with pytest.raises(shared_memory.Unavailable):
        notes["b"] = 1
    kill(other)
    notes["b"] = 1
    assert notes.everything() == {"a": 0, "b": 1}


def test_kills_at_any_moment_leave_what_was_whole() -> None:
    notes = shared_memory.SharedDict("pairs")
    notes["left"] = notes["right"] = 0

    def write() -> None:
        while True:
            with shared_memory.turn():
                number = notes["left"] + 1
                notes["left"] = number
                notes["right"] = number

    for _ in range(10):
        process = FORK.Process(target=write)
        process.start()
        before = notes["left"]
        assert eventually(lambda before=before: notes["left"] > before + 3)  # type: ignore[misc]
        kill(process)
        with shared_memory.turn():
            assert notes["left"] == notes["right"]


def test_a_turn_that_fails_changes_nothing() -> None:
    notes = shared_memory.SharedDict("counts")
    with pytest.raises(ZeroDivisionError), shared_memory.turn():
        notes["a"] = 1
        with shared_memory.turn():
            notes["b"] = 1 // 0
    with shared_memory.turn():
        assert not notes


def test_who_comes_takes_the_seat_of_one_that_went(fork: Callable[..., BaseProcess]) -> None:
    seats = FORK.Array("i", 4)

    def sit(place: int) -> Callable[[], None]:
        return lambda: seats.__setitem__(place, shared_memory.seat())

    first, _ = fork(sit(0)), fork(sit(1))
    assert (seats[0], seats[1], shared_memory.seat(), shared_memory.seat()) == (0, 1, 2, 2)
    kill(first)
    fork(sit(2))
    assert seats[2] == 0


def test_a_process_of_its_own_needs_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "_board", shared_memory.Board())
    places, notes = shared_memory.Places("calls", 1), shared_memory.SharedDict("lines")
    assert (places.take(), places.take(), shared_memory.folder()) == (0, None, None)
    notes["a"] = 1
    assert dict(notes) == {"a": 1}


def test_the_folder_is_private_and_goes_with_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "HOMES", (tmp_path,))
    abandoned, young, foreign = (tmp_path / f"{shared_memory.PREFIX}{name}" for name in ("old", "young", "kept"))
    for each in (abandoned, young, foreign):
        each.mkdir()
    (abandoned / "notes").touch()
    for old in (abandoned, foreign):
        os.utime(old, (time.time() - 3600,) * 2)
    held = os.open(foreign, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)  # as by another server
    made = FORK.Queue()

    def serve() -> None:
        made.put(str(shared_memory.share()))
        signal.pause()

    server = FORK.Process(target=serve)
    server.start()
    own = Path(made.get(timeout=30))
    assert own.stat().st_mode & 0o777 == 0o700
    assert {each.name for each in tmp_path.glob(f"{shared_memory.PREFIX}*")} == {own.name, young.name, foreign.name}
    kill(server)
    os.utime(own, (time.time() - 3600,) * 2)
    shared_memory._remove_abandoned(tmp_path)
    assert not own.exists(), "what a server that was killed left is removed by the next"
    os.close(held)
