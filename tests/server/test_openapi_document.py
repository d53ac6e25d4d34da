"""The API's description is made once in a process, also when many ask for it before it is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from django.test import Client

from tests.servers import REPOSITORY

PATH = "/api/schema/"
MANY_AT_FIRST = """
import django; django.setup()
import json, threading
from concurrent.futures import ThreadPoolExecutor
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

made, make = [], SchemaGenerator.get_schema
SchemaGenerator.get_schema = lambda *given, **named: made.append(1) or make(*given, **named)
together = threading.Barrier(8)

def ask(number):
    together.wait()
    target = "/api/schema/" + ["", "?format=json", "?version=2", "?lang=de"][number % 4]
    return Client(HTTP_HOST="127.0.0.1").get(target).status_code

with ThreadPoolExecutor(8) as threads:
    answers = [list(threads.map(ask, range(8))) for _ in range(2)]
print(json.dumps([answers, len(made)]))
"""


def test_many_at_once_get_it_of_a_fresh_process_which_makes_it_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MANY_AT_FIRST],
        cwd=REPOSITORY,
        env={"DJANGO_SETTINGS_MODULE": "metalake.settings", "METALAKE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [[[200] * 8] * 2, 1]


def test_who_has_it_already_gets_no_body() -> None:
    for query in ("", "?format=json"):
        first = Client().get(PATH + query)
        again = Client().get(PATH + query, headers={"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    other = Client().get(PATH, headers={"If-None-Match": first["ETag"]})
    assert (other.status_code, other["Vary"]) == (200, "Accept")
