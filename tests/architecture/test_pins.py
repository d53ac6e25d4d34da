"""What is installed is what was locked: every pin has its hashes, and every install asks for them."""

from __future__ import annotations

import re

from tests.architecture.rooms import REPOSITORY

PIN = re.compile(
    r"^([a-z0-9][\w.-]*)(?:\[[\w,-]+\])?==(\S+)((?: *; .*?)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)


def pins(file: str) -> dict[str, tuple[str, str]]:
    """By package, its version and its hashes."""
    return {name: (version, hashes) for name, version, hashes in PIN.findall((REPOSITORY / file).read_text())}


def test_every_package_is_pinned_with_its_hashes() -> None:
    for file in ("requirements.txt", "requirements-dev.txt", "requirements-uv.txt"):
        lines = (REPOSITORY / file).read_text().splitlines()
        named = {re.split(r"[ =\[<>~@]", line)[0] for line in lines if line and line[0] not in " #"}
        assert named and named == pins(file).keys(), file


def test_what_runs_is_what_is_tested() -> None:
    assert pins("requirements.txt").items() <= pins("requirements-dev.txt").items()


def test_nothing_is_installed_without_its_hash() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    installs = re.findall(r"pip install ([^\\\n]*)", makefile)
    assert len(installs) >= 5
    assert [words for words in installs if not {"$(pinned)", "--require-hashes"} & set(words.split())] == []
    assert "--require-hashes" in re.findall(r"^pinned = (.*)$", makefile, re.MULTILINE)[0]
    assert "pip install" not in (REPOSITORY / ".ci" / "run").read_text()
