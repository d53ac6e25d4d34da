"""The built-in templates of every metalake: each is a declaration here and a module of `pipelines` that does the work.

A template whose module is not installed is not offered. The program gets each placeholder as `--name=value`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from typing import Any

PREFIX = "builtin-"


@dataclass(frozen=True, kw_only=True)
class BuiltIn:
    """A built-in template; `placeholders` maps names to default values, None if a value is required.

    With `writes_results`, its runs also get a token of the principal that writes in the catalog `system`.
    """

    name: str
    module: str
    comment: str
    placeholders: Mapping[str, str | None] = field(default_factory=dict)
    on_spark: bool = False
    writes_results: bool = False

    @property
    def job_type(self) -> str:
        return "spark" if self.on_spark else "shell"

    def content(self) -> dict[str, Any]:
        """As template content of the API; the executable is the module's name, which no user's template can name."""
        arguments = [f"--{name}={{{{{name}}}}}" for name in self.placeholders]
        return {"executable": self.module, "arguments": arguments}

    def with_defaults(self, given: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in self.placeholders.items() if value is not None} | dict(given)


DECLARED = (
    BuiltIn(
        name="builtin-check_server",
        module="pipelines.check_server",
        comment="Asks the server for its version and for the catalogs that the caller sees, so that one knows that "
        "jobs reach it.",
        placeholders={"times": "1"},
    ),
    BuiltIn(
        name="builtin-access_review",
        module="pipelines.access_review",
        comment="Who can do what, what grants are used for, and which say nothing: into system.access.",
        placeholders={"days": "90", "as-of": "", "sample": "10000"},
        on_spark=True,
        writes_results=True,
    ),
    BuiltIn(
        name="builtin-audit_rollup",
        module="pipelines.audit_rollup",
        comment="Sums the audit, refusals and the record of use by day, and says what had no use for so many days.",
        placeholders={"days": "90", "late": "3"},
        on_spark=True,
        writes_results=True,
    ),
    BuiltIn(
        name="builtin-view_check",
        module="pipelines.view_check",
        comment="Has Spark read the SQL of every view, and says what is broken and what each view reads.",
        on_spark=True,
        writes_results=True,
    ),
    BuiltIn(
        name="builtin-harvest",
        module="pipelines.harvest",
        comment="Brings the rows of a large Hive or Glue catalog up to it, as a refresh does, with many readers.",
        placeholders={"catalog": None, "tasks": "8", "accept-drops": "false", "secrets": "", "patience": "90"},
        on_spark=True,
    ),
)


@cache
def offered() -> dict[str, BuiltIn]:
    """The built-in templates by name."""
    return {each.name: each for each in DECLARED if _is_there(each.module)}


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is missing
        return False
