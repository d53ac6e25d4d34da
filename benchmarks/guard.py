"""Guards the hot reads in CI: the processor time of each on the fast path, to that of a bare Django view.

Both sides run in this process, in turn; the best of three counts, and a read fails that is 15 % over its goal. An
additional statement, or metadata that is parsed, is more than that. `python -m benchmarks.guard`
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.harness import claim, finish, own_store
from benchmarks.hot_profile import paths_of, reading
from benchmarks.server import fill

# As Debian's Python 3.11.2 has them, for which they are a fifth higher than for 3.11.7.
GOALS = {"load": 8.2, "list": 18, "exists": 7.8, "miss": 10.8, "config": 7.8, "namespaces": 12}
COLUMNS = 200  # whose metadata takes as long to parse as a bare view, or longer
TRIES, TURNS, ROUNDS, SLACK = 3, 20, 100, 1.15


def main(plant: Callable[[], object] = bool) -> None:
    """`plant` may slow the reads down, for the test that shows that this fails then."""
    own_store()
    paths, reader = fill(COLUMNS)
    from server.http.hot_reads import FastReads

    fast = FastReads()
    reads = {name: reading(*asked, reader, fast) for name, asked in paths_of(paths).items()}
    plant()
    for name, goal in GOALS.items():
        ratios = [ratio(reads[name]) for _ in range(TRIES)]
        claim(f"{name}, processor time to a bare Django view", min(ratios), round(goal * SLACK, 3), unit="x")
    finish()


def ratio(read: Callable[[], Any]) -> float:
    """Many short turns of each, so that a disturbance hits both."""
    mine = bare = 0.0
    for _ in range(TURNS):
        mine += seconds(read)
        bare += seconds(bare_view)
    return mine / bare


def seconds(act: Callable[[], Any]) -> float:
    started = time.process_time()
    for _ in range(ROUNDS):
        act()
    return time.process_time() - started


def bare_view() -> bytes:
    """What any view costs: a request made of WSGI's environment, and a response with its headers."""
    from io import BytesIO

    from django.core.handlers.wsgi import WSGIRequest
    from django.http import HttpResponse

    environment = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/iceberg/bench/v1/lake/namespaces/a/tables/t",
        "QUERY_STRING": "",
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "HTTP_AUTHORIZATION": "Bearer x",
        "wsgi.input": BytesIO(),
        "wsgi.url_scheme": "http",
    }
    request = WSGIRequest(environment)
    response = HttpResponse(CONTENT, content_type="application/json", headers={"ETag": request.GET.get("etag", "x")})
    response["Content-Length"] = str(len(response.content))
    head = "".join(f"{name}: {value}\r\n" for name, value in response.items())
    return head.encode() + b"".join(response)


CONTENT = b"x" * 4096

if __name__ == "__main__":
    main()
    sys.exit(0)
