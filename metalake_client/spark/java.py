"""Whether this machine has the Java that Spark starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from metalake_client.failures import Exit, Failure

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_program(wanted: str) -> str:
    """The Java of JAVA_HOME, or else of the PATH. Raises Failure, with the purpose `wanted`, if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=Path(home) / "bin") if home else shutil.which("java")
    if java is None:
        place = f"and JAVA_HOME, {home}, has none" if home else "and there is none"
        raise Failure(f"{wanted}, {place}: put one on the PATH, or name its folder in JAVA_HOME.", Exit.USAGE)
    return java


def require_java(oldest: int, spark: str) -> None:
    """Raise Failure unless JAVA_HOME, or else the PATH, has a Java of this version or newer."""
    wanted = f"Spark {spark} needs Java {oldest} or newer"
    java = java_program(wanted)
    try:
        ended = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as refused:
        raise Failure(f"{wanted}, and {java} cannot be started: {refused.strerror}.", Exit.USAGE) from None
    version = _VERSION.search(ended.stderr)
    if version is None:
        raise Failure(f"{wanted}, and {java} does not say which it is.", Exit.USAGE)
    if int(version[1]) < oldest:
        raise Failure(f"{wanted}, and {java} is Java {version[1]}; JAVA_HOME names another.", Exit.USAGE)
