"""The process behind tests/spark.py: a script a line on standard input, its rows a line on standard output."""

import json
import os
import sys
from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark itself prints goes to the log
    builder = SparkSession.builder.master("local[1]").appName("tests")
    for name, value in json.loads(sys.argv[1]).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    print(json.dumps({"version": session.version}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run(session, **json.loads(line)), default=str), file=answers, flush=True)


def run(
    session: SparkSession,
    settings: dict[str, str] | None = None,
    statements: Sequence[str] = (),
    identifiers: Sequence[str] = (),
) -> dict[str, object]:
    own = session.newSession()
    try:
        if identifiers:
            parser = own._jsparkSession.sessionState().sqlParser()
            read = (parser.parseMultipartIdentifier(each).mkString("\n") for each in identifiers)
            return {"rows": [parts.split("\n") for parts in read]}
        for name, value in (settings or {}).items():
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
