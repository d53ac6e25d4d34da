"""Bodies of requests about jobs, as the published client sends them: with null for what is not said."""

from __future__ import annotations

from typing import Any

TEMPLATES, RUNS, SCHEDULES = (f"metalakes/demo/jobs/{kind}" for kind in ("templates", "runs", "schedules"))


def shell(executable: str, /, *arguments: str, name: str = "say", **more: Any) -> dict[str, Any]:
    template: dict[str, Any] = {
        "jobType": "shell", "name": name, "executable": executable, "comment": None, "arguments": list(arguments),
        "environments": {}, "customFields": {}, "audit": None, "scripts": [],
    }  # fmt: skip
    return {"jobTemplate": template | more}


def spark(executable: str, /, **more: Any) -> dict[str, Any]:
    template: dict[str, Any] = {
        "jobType": "spark", "name": "pi", "executable": executable, "comment": "pi", "arguments": [], "audit": None,
        "environments": {}, "customFields": {}, "className": None, "jars": [], "files": [], "archives": [],
        "configs": {},
    }  # fmt: skip
    return {"jobTemplate": template | more}


def run(template: str = "say", **conf: str) -> dict[str, Any]:
    return {"jobTemplateName": template, "jobConf": conf}
