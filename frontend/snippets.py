"""The changes of a plan as a REST call and as a file, to copy."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote

from access.plans.desired import Change
from access.plans.plan_file import in_yaml
from access.wire.plans import change_reply


class Recipe(NamedTuple):
    """`calls` are two shell commands that read the caller's token from METALAKE_TOKEN; `file` is YAML."""

    calls: str
    file: str


def recipe(server: str, metalake: str, changes: Iterable[Change]) -> Recipe:
    """The same changes without the pages; `server` is the URL of the home page."""
    body = json.dumps({"changes": list(map(change_reply, changes))}, ensure_ascii=False)
    access = f"{server}api/metalakes/{quote(metalake, safe='')}/access"
    calls = f"{_call(f'{access}/changes', body)}\n{_call(f'{access}/apply', _APPLY)}"
    return Recipe(calls, in_yaml(json.loads(body)))


_APPLY = '{"token": "the token of the answer"}'


def _call(url: str, body: str) -> str:
    return "\n".join(
        (
            f"curl -X POST {shlex.quote(url)} \\",
            '  -H "Authorization: Bearer $METALAKE_TOKEN" -H "Content-Type: application/json" \\',
            f"  -d {shlex.quote(body)}",
        )
    )
