"""A Dockerfile as its steps, for tests that run them without a container engine."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_FLAG = re.compile(r"--(\S+?)=(\S+)\s+")


class Step(NamedTuple):
    word: str  # RUN, COPY and the like
    flags: dict[str, str]
    text: str

    @property
    def words(self) -> list[str]:
        """The list of its JSON form, else its words."""
        listed: list[str] = json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)
        return listed


@dataclass
class Image:
    """The last stage, with the steps of all stages before it."""

    steps: list[Step]
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Image:
        lines = [line for line in file.read_text().splitlines() if line.strip() and not line.startswith("#")]
        steps = [_step(line) for line in lines]
        pairs = [word.partition("=") for step in steps if step.word == "ENV" for word in step.words]
        return cls(steps, {name: value for name, _, value in pairs})

    def all(self, word: str) -> list[Step]:
        return [step for step in self.steps if step.word == word]

    def last(self, word: str) -> Step:
        return self.all(word)[-1]

    @property
    def command(self) -> list[str]:
        """What a container runs that is told nothing."""
        return [*self.last("ENTRYPOINT").words, *self.last("CMD").words]

    @property
    def healthcheck(self) -> list[str]:
        return Step("CMD", {}, self.last("HEALTHCHECK").text.removeprefix("CMD ")).words

    @property
    def copied(self) -> list[str]:
        """The files and folders of the repository that any stage has."""
        return [source for step in self.all("COPY") if "from" not in step.flags for source in step.words[:-1]]


def _step(line: str) -> Step:
    word, _, text = line.partition(" ")
    flags = {}
    while found := _FLAG.match(text):
        flags[found[1]], text = found[2], text[found.end() :]
    return Step(word, flags, text.strip())
