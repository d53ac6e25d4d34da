"""A server that runs jobs, with what its tests ask of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from metalake_client.rest import Client
from tests.servers import ADMIN_PASSWORD, MetalakeServer
from tests.waiting import eventually

WAITS = """#!/bin/sh
umask 077
printenv METALAKE_TOKEN > "$HOME/token" && cp "$HOME/token" "$1.new" && mv "$1.new" "$1"
sleep 600 &
sleep 600
"""


class Serving:
    """The admin of a metalake, and one program that writes its token where it is told, and then sleeps."""

    def __init__(self, server: MetalakeServer, named: Path, metalake: str = "demo") -> None:
        self.server, self.named, self.metalake = server, named, metalake
        self.admin = Client(server.url, user="admin", password=ADMIN_PASSWORD)
        self.runs = ("metalakes", metalake, "jobs", "runs")
        self.templates = ("metalakes", metalake, "jobs", "templates")
        if metalake != "demo":  # which every new server has
            self.admin.call("POST", "metalakes", body={"name": metalake})
        self.register("waits", WAITS, "{{file}}")

    def register(self, name: str, text: str, *arguments: str) -> None:
        program = self.named / f"{name}.sh"
        program.write_text(text)
        program.chmod(0o700)
        template = {"jobType": "shell", "name": name, "executable": str(program), "arguments": [*arguments]}
        self.admin.call("POST", *self.templates, body={"jobTemplate": template})

    def start(self, template: str = "waits", by: Client | None = None, **conf: str) -> str:
        job: str = (by or self.admin).call(
            "POST", *self.runs, body={"jobTemplateName": template, "jobConf": conf}
        )["job"]["jobId"]  # fmt: skip
        return job

    def start_waiting(self, by: Client | None = None) -> tuple[str, str]:
        """A run that is under way, and the secret of its token."""
        file = self.named / "token"
        file.unlink(missing_ok=True)
        job = self.start(by=by, file=str(file))
        assert eventually(lambda: file.exists() or self.job(job)["status"] == "failed"), self.job(job)
        assert self.job(job)["status"] == "started", self.job(job)
        return job, file.read_text().strip()

    def job(self, job: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.admin.get(*self.runs, job)["job"]
        return shown

    def ends(self, job: str, seconds: float = 60) -> dict[str, Any]:
        live = ("queued", "started", "cancelling")
        assert eventually(lambda: self.job(job)["status"] not in live, seconds), self.job(job)
        return self.job(job)

    def is_gone(self, job: str) -> bool:
        """Whether no process of the run is left."""
        return not processes_of(job)


def processes_of(job: str) -> list[int]:
    mine = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("METALAKE_RUN") == job and process.status() != psutil.STATUS_ZOMBIE:
                mine.append(process.pid)
        except psutil.Error:
            pass
    return mine


StartServing = Callable[..., Serving]
