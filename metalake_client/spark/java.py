"""Whether this machine has the Java that Spark starts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from metalake_client.failures import Exit, Failure

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def require_java(oldest: int, spark: str) -> None:
    """Raise Failure unless JAVA_HOME, or else the PATH, has a Java of this version or newer."""
    wanted = f"Spark {spark} needs Java {oldest} or newer"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise Failure(f"{wanted}, and there is none: put one on the PATH, or name its folder in JAVA_HOME.", Exit.USAGE)
    try:
        ended = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as refused:
        raise Failure(f"{wanted}, and {java} cannot be started: {refused.strerror}.", Exit.USAGE) from None
    version = _VERSION.search(ended.stderr)
    if version is None:
        raise Failure(f"{wanted}, and {java} does not say which it is.", Exit.USAGE)
    if int(version[1]) < oldest:
        raise Failure(f"{wanted}, and {java} is Java {version[1]}; JAVA_HOME names another.", Exit.USAGE)
