"""A bare Django view that returns the stored file, without middleware, on gunicorn's threads, to compare with."""

from __future__ import annotations

import os
import sys

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import re_path


def main() -> None:
    from pathlib import Path

    from gunicorn.app.base import BaseApplication

    port, stored = sys.argv[1], Path(sys.argv[2])

    def view(request: HttpRequest) -> HttpResponse:
        content = stored.read_bytes()
        return HttpResponse(content, content_type="application/json", headers={"Content-Length": str(len(content))})

    settings.configure(ROOT_URLCONF=type("Urls", (), {"urlpatterns": [re_path("", view)]}), ALLOWED_HOSTS=["*"])

    class Bare(BaseApplication):
        def load_config(self) -> None:
            for name, value in {
                "bind": f"127.0.0.1:{port}",
                "workers": 1,
                "threads": int(os.environ.get("METALAKE_THREADS", "8")),
                "worker_class": "gthread",
                "keepalive": 30,
                "loglevel": "warning",
            }.items():
                self.cfg.set(name, value)

        def load(self) -> object:
            from django.core.wsgi import get_wsgi_application

            return get_wsgi_application()

    sys.argv = sys.argv[:1]  # gunicorn would read the rest
    Bare().run()


if __name__ == "__main__":
    main()
