"""Metalake's server with an application that returns stored bytes and does nothing else, to compare with.

`python -m benchmarks.bare_door FOLDER`: the folder has the bytes of each path, as benchmarks/peers.py puts them there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    folder = Path(sys.argv[1])
    pages = {path.read_text(): path.with_suffix(".bytes").read_bytes() for path in folder.glob("*.path")}
    pages["/health"] = b"{}"
    os.environ["DJANGO_SETTINGS_MODULE"] = "metalake.settings"
    import django
    from django.core.management import execute_from_command_line

    from metalake import metrics

    metrics.share()
    django.setup()
    from metalake import wsgi
    from server.http.hot_reads import FastReads

    vars(wsgi)["application"] = Application(pages)
    FastReads.find = lambda self, reader: None
    execute_from_command_line(["manage.py", "serve"])


class Application:
    def __init__(self, pages: dict[str, bytes]) -> None:
        self.pages = pages

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        content = self.pages.get(environ["RAW_URI"])
        if content is None:
            start_response("404 Not Found", [("Content-Type", "application/json")])
            return Body([b"{}"])
        if environ["REQUEST_METHOD"] == "HEAD":
            start_response("204 No Content", [])
            return Body([])
        if environ.get("HTTP_IF_NONE_MATCH"):
            start_response("304 Not Modified", [("ETag", environ["HTTP_IF_NONE_MATCH"])])
            return Body([])
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(content)))])
        return Body([content])


class Body(list[bytes]):
    def close(self) -> None:
        pass


if __name__ == "__main__":
    main()
