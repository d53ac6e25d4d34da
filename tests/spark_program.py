"""The process behind tests/spark.py: a script a line on standard input, its rows a line on standard output."""

import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import TextIO
from unittest import mock

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def main() -> None:
    answers = apart()
    builder = SparkSession.builder.master("local[1]").appName("tests")
    for name, value in json.loads(sys.argv[1]).items():
        builder = builder.config(name, value)
    serve(builder.getOrCreate(), answers)


def apart() -> TextIO:
    """Where answers go: what Spark itself prints goes to the log."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def serve(session: SparkSession, answers: TextIO, **more: Callable[..., object]) -> None:
    """Answer lines of standard input: statements, or {"call": one of `more` or "python", "arguments": [...]}."""
    more = {"python": printed, "identifiers": partial(identified, session), **more}
    print(json.dumps({"version": session.version}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "call" in asked:
            answer = called(more[asked["call"]], asked["arguments"])
        else:
            answer = run(session, **asked)
        print(json.dumps(answer, default=str), file=answers, flush=True)


def called(act: Callable[..., object], arguments: Sequence[object]) -> dict[str, object]:
    """What it answers; a failure is told, so that Spark stays for the tests after this one."""
    try:
        return {"rows": act(*arguments)}
    except Exception:
        return {"error": "", "message": traceback.format_exc()}


def identified(session: SparkSession, identifiers: list[str]) -> list[list[str]]:
    """The parts of each identifier; no part has the end of a line in it."""
    parser = session._jsparkSession.sessionState().sqlParser()
    read = (parser.parseMultipartIdentifier(each).mkString("\n") for each in identifiers)
    return [parts.split("\n") for parts in read]


def printed(code: str, environment: dict[str, str]) -> str:
    """What a program prints that runs in this process, beside Spark."""
    out = io.StringIO()
    with redirect_stdout(out), mock.patch.dict(os.environ, environment):
        exec(code, {})
    return out.getvalue()


def run(session: SparkSession, settings: dict[str, str], statements: list[str]) -> dict[str, object]:
    own = session.newSession()
    try:
        for name, value in settings.items():
            own.conf.set(name, value)
        rows = [[row.asDict(recursive=True) for row in own.sql(statement).collect()] for statement in statements]
    except PySparkException as problem:
        name_of = getattr(problem, "getCondition", problem.getErrorClass)  # Spark 3.5 knows the older name alone
        return {"error": name_of() or "", "message": str(problem)}
    except Exception as problem:  # Java's own, such as what a catalog throws while it is made
        return {"error": "", "message": str(problem)}
    return {"rows": rows}


if __name__ == "__main__":
    main()
