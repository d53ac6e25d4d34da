"""Choose the everyday sample of the crash matrix anew, and write tests/outside/sample.json.

    python -m tests.outside.choosing [word]

With a word, such as "view" or "(glue)", only the cells of writes that have it in their names are chosen anew. Every
candidate is run with the lines noted that it reaches in `outside` and `providers`, and how it came to each. The
sample is the cheapest that reaches in each system all that its candidates reach, stops each write at each of its
points, and spoils each kind of change in the ways of SPOILT.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

FOLDERS = ("outside", "providers")
SPOILT = ("lost", "dropped", "late", "denied")
START = 0.3  # seconds that any cell takes, added so that cheap cells are no better than they are

Goal = tuple[Hashable, ...]


@dataclass
class Candidate:
    name: str  # of its write, as in the sample
    given: dict[str, Any]
    seconds: float
    goals: set[Goal]
    stays: bool = False  # in the sample, whatever it reaches


class Reached:
    """The steps from line to line that all threads take inside the folders, while it is listened to."""

    def __init__(self, root: str) -> None:
        self._folders = tuple(f"{root}/{folder}/" for folder in FOLDERS)
        self._steps: set[Goal] = set()

    @contextmanager
    def noted(self) -> Iterator[set[Goal]]:
        steps = self._steps = set[Goal]()
        threading.settrace(self._entered)
        sys.settrace(self._entered)
        try:
            yield steps
        finally:
            sys.settrace(None)

    def _entered(self, frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(self._folders):
            return None
        before = 0

        def step(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal before
            if event == "line":
                self._steps.add((file, before, frame.f_lineno))
                before = frame.f_lineno
            return step

        return step


class Chooser:
    """A plugin of pytest: it runs the candidates in place of the sample, of the writes with the word in their names.

    The other writes in the same systems run their present sample, and those in other systems are left out.
    """

    def __init__(self, word: str) -> None:
        self.word = word
        self.candidates: list[Candidate] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        from tests.outside import cells, test_crashes
        from tests.outside.writes import EVERY_WRITE

        reached, run_cell = Reached(str(session.config.rootpath)), test_crashes.run_cell
        sample_of = test_crashes.sample_of
        name = ""

        def candidates_of(asked: str) -> Any:
            nonlocal name
            name = asked
            if self.word in asked:
                return cells.candidates
            if system_of(asked) not in {system_of(str(write)) for write in EVERY_WRITE if self.word in str(write)}:
                pytest.skip("of another system")
            return sample_of(asked)

        def run_and_note(bench: Any, write: Any, cell: Any, after: Any) -> Any:
            started = time.process_time()
            with reached.noted() as steps:
                ending = run_cell(bench, write, cell, after)
            system = system_of(name)
            goals = {(system, *step) for step in steps} | goals_of(name, system, cell, ending.told, bench.outside)
            seconds, stays = time.process_time() - started, self.word not in name
            self.candidates.append(Candidate(name, cell.given(), seconds, goals, stays))
            return ending

        patch = pytest.MonkeyPatch()  # for all the tests of this process
        patch.setattr(test_crashes, "sample_of", candidates_of)
        patch.setattr(test_crashes, "run_cell", run_and_note)


def system_of(name: str) -> str:
    return name.rpartition("(")[2]


def goals_of(name: str, system: str, cell: Any, told: Any, outside: Any) -> set[Goal]:
    """What a cell is good for besides the lines that it reaches."""
    if not cell.faults:
        return {(name, "stopped at", cell.killed_at)} if told.was_killed else set()
    if len(cell.given()) > 1 or not told.was_spoilt:
        return set()
    number, fault = cell.faults[0]
    request = told.requests[number]
    return {(system, request, fault)} if fault in SPOILT and outside.changes(request) else set()


def chosen(candidates: list[Candidate]) -> list[Candidate]:
    """Greedily those that reach most for their time, in the order in which they were run."""
    sample = [each for each in candidates if each.stays]
    goals = set[Goal]().union(*(each.goals for each in candidates)).difference(*(each.goals for each in sample))
    while goals:
        best = max(candidates, key=lambda each: len(each.goals & goals) / (START + each.seconds))
        sample.append(best)
        goals -= best.goals
    return [each for each in candidates if each in sample]


def written(sample: list[Candidate], before: dict[str, list[dict[str, Any]]]) -> str:
    """One cell a line, so that a change shows what it changes; `before` has the cells of writes that were left out."""
    writes = before | {each.name: [one.given for one in sample if one.name == each.name] for each in sample}
    lines = {name: ",\n    ".join(map(json.dumps, cells)) for name, cells in writes.items()}
    parts = [f"  {json.dumps(name)}: [\n    {cells}\n  ]" for name, cells in lines.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(word: str = "") -> int:
    chooser = Chooser(word)
    code = pytest.main(
        ["tests/outside/test_crashes.py", "-k", "sample", "-n", "0", "--timeout", "3600"], plugins=[chooser]
    )
    if not code:
        from tests.outside.cells import SAMPLE  # whose models need what pytest has set up

        before = json.loads(SAMPLE.read_text()) if word else {}
        SAMPLE.write_text(written(sample := chosen(chooser.candidates), before))
        print(f"{len(sample)} of {len(chooser.candidates)} cells")  # noqa: T201
    return int(code)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
