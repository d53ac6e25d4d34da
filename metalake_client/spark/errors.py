"""Errors that Spark raises, in Python's words or in Java's."""

from __future__ import annotations

import re

_PYTHONS = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)")


def is_sparks_error(problem: Exception) -> bool:
    """Whether Spark said no, in Python's words or in Java's."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return isinstance(problem, PySparkException | Py4JJavaError)


def reason_of(problem: Exception) -> str:
    """What went wrong, in one line: the last cause that is named, an error of Python's first; "" where none is."""
    text = str(problem)
    if errors := _PYTHONS.findall(text):
        return str(errors[-1]).strip()
    lines = [line.removeprefix(": ").strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "An error occurred while calling "))]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else lines[0] if lines else ""
