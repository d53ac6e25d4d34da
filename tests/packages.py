"""Python packages that tests run beside their own environment, fetched once from the index that pip is set to."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.jars import JarsMissing, cache, only_one


def installed(name: str, pins: dict[str, str]) -> Path:
    """A folder in the cache, to import from, with these packages (name==version = SHA-256); raises JarsMissing."""
    folder = cache() / name
    with only_one(folder.with_suffix(".installing")):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache()) as place:
                pip("install", pins, "--target", whole := Path(place) / "whole")
                whole.rename(folder)
    return folder


def pip(verb: str, pins: dict[str, str], *more: str | Path) -> None:
    """pip install or pip download of exactly these files; raises JarsMissing."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.writelines(f"{pin} --hash=sha256:{sha256}\n" for pin, sha256 in pins.items())
        wanted.flush()
        command = [sys.executable, "-m", "pip", verb, "--quiet", "--no-deps", "--require-hashes", "-r", wanted.name]
        ended = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise JarsMissing(f"pip {verb} of {', '.join(pins)}: {ended.stderr[-1000:]}")
