"""The server before the event loop, to compare with: gunicorn's threads, one process of eight on SQLite.

`manage.py serve` has prepared the store in METALAKE_HOME; nothing is done here beside answering requests.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from gunicorn.app.base import BaseApplication


class OldDoor(BaseApplication):
    def load_config(self) -> None:
        for name, value in {
            "bind": f"{os.environ['METALAKE_HOST']}:{os.environ['METALAKE_PORT']}",
            "workers": 1,
            "threads": 8,
            "worker_class": "gthread",
            "timeout": 120,
            "graceful_timeout": 20,
            "keepalive": 30,
            "limit_request_line": 8190,
            "limit_request_field_size": 17 * 1024,
            "worker_tmp_dir": "/dev/shm" if sys.platform == "linux" else None,
            "forwarder_headers": "",
            "loglevel": "warning",
            "control_socket_disable": True,
        }.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        from metalake.wsgi import application

        return application


if __name__ == "__main__":
    OldDoor(prog="metalake").run()
