"""How much memory a server grows by for bodies of the largest size.

`python -m benchmarks.bodies`. The peak is that of the server's own process, from before a body to after its answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from benchmarks.harness import claim, finish, own_store, serve
from benchmarks.usage import figure

MIB = 1024 * 1024
MOST = 160
TABLE = "/iceberg/{}/v1/lake/namespaces/a/tables/t"


def commits() -> Iterator[tuple[str, str, bytes]]:
    yield "small objects, of a stranger", "gone", filled(b",".join([b'{"a":{}}'] * 1_500_000))
    yield "small objects", "bench", filled(b",".join([b'{"a":{}}'] * 1_500_000))
    yield "as many nested objects as are read", "bench", filled(b",".join([b'{"a":' * 50 + b"{}" + b"}" * 50] * 3800))
    yield "as many mistakes as are read", "bench", filled(b",".join([b"7"] * 199_000))
    yield "wide text", "bench", b'{"updates":[{"a":"\xf0\x9f\x98\x80' + b"x" * (16 * MIB - 40) + b'"}]}'
    yield "backslashes", "bench", b'{"updates":[{"a":"' + b"\\\\" * (8 * MIB - 20) + b'"}]}'


def filled(updates: bytes) -> bytes:
    begun = b'{"updates":[' + updates + b'],"padding":"'
    return begun + b"x" * (16 * MIB - len(begun) - 2) + b'"}'


def main() -> None:
    own_store()
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import first_catalog, schema

    schema(first_catalog(), "a")
    token = issue_token(User.objects.get(username="admin"), "bench")
    with ExitStack() as stack:
        server = serve(stack)
        assert server.process is not None
        workers = [worker.pid for worker in psutil.Process(server.process.pid).children(recursive=True)]
        for what, metalake, body in commits():
            before = [figure(Path(f"/proc/{worker}/status"), "VmRSS") for worker in workers]
            for worker in workers:
                Path(f"/proc/{worker}/clear_refs").write_text("5")  # resets the peak (proc(5))
            status = send(server.url, TABLE.format(metalake), token, body)
            grown = max(
                figure(Path(f"/proc/{worker}/status"), "VmHWM") - was
                for worker, was in zip(workers, before, strict=True)
            )
            claim(f"{what}, answered {status}", grown / MIB, MOST, unit=" MiB")
    finish()


def send(url: str, path: str, token: str, body: bytes) -> int:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=120)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", path, body, headers)
    return connection.getresponse().status


if __name__ == "__main__":
    main()
