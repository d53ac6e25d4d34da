"""What one is told of an error that Spark raised: its cause, in one line."""

from __future__ import annotations

import pytest

from metalake_client.spark.errors import reason_of

STARTED = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'sparc://here:7077'
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3209)
"""
NESTED = f"""{STARTED}Caused by: java.net.ConnectException: Connection refused
\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)
"""
IN_A_WORKER = f"""{STARTED}Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/home/pyspark/worker.py", line 88, in main
demo.EarlierError: not this one

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/pipelines/job.py", line 5, in <module>
    import requests
ModuleNotFoundError: No module named 'requests'

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (STARTED, "org.apache.spark.SparkException: Could not parse Master URL: 'sparc://here:7077'"),
        (IN_A_WORKER, "ModuleNotFoundError: No module named 'requests'"),
        (NESTED, "Caused by: java.net.ConnectException: Connection refused"),
        ("[TABLE_OR_VIEW_NOT_FOUND] flights\n== SQL ==", "[TABLE_OR_VIEW_NOT_FOUND] flights"),
        ("", ""),
    ],
)
def test_the_cause_is_told(text: str, reason: str) -> None:
    assert reason_of(Exception(text)) == reason
