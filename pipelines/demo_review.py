"""The end of `make demo`: an access review of the flights, and who can read one schema through which grants."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from metalake_client.failures import Failure
from metalake_client.spark.java import java_program
from pipelines.rest import Client

PATIENCE = 900  # seconds; the first run downloads Iceberg's runtime
SCHEMA, ABOVE = "lake.travel:nyc:2013", ("lake", "lake.travel", "lake.travel:nyc", "lake.travel:nyc:2013")
TOKEN = "demo-review"  # noqa: S105 (its name)

say = Console(highlight=False, soft_wrap=True).print


def review(admin: Client, metalake: str) -> bool:
    """Run the job as the admin if Java is installed, and print its findings, or the cause of its failure (False)."""
    say("\n[bold]Reviewing[/] who can do what, on Spark")
    try:
        java_program("Spark needs Java 17 or newer")
    except Failure as missing:
        say(f"  There is no review here: {missing}")
        return True
    if (wrong := _run(admin, metalake)) is not None:
        log = Path(tempfile.mkstemp(prefix="metalake-review-", suffix=".log")[1])
        log.write_text(wrong)
        say(f"  [red]The review failed:[/] {escape((wrong.strip() or 'it ended without a word.').splitlines()[-1])}")
        say(f"  All that it said is in {log}: mend what it names, then call 'make demo' again.")
        return False
    for line in _readers(admin, metalake):
        say(f"  {line}")
    return True


def _run(admin: Client, metalake: str) -> str | None:
    """Run the job; returns its error output if it failed, reason last, else None."""
    admin.call("POST", "metalakes", metalake, "system")
    issued = _issue(admin)
    own = {"METALAKE_URL": admin.url, "METALAKE_METALAKE": metalake, "METALAKE_TOKEN": issued["secret"]}
    command = [sys.executable, "-m", "pipelines.access_review", "--sample=1000"]
    try:
        ended = subprocess.run(  # noqa: S603
            command, env=os.environ | own, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return f"Spark did not end within {PATIENCE // 60} minutes."
    finally:
        admin.call("DELETE", "tokens", issued["id"])
    if ended.returncode == 0:
        say(f"  {ended.stdout.strip()}")
        return None
    return ended.stderr


def _issue(admin: Client) -> dict[str, Any]:
    for row in admin.call("GET", "tokens")["tokens"]:
        if row["name"] == TOKEN:
            admin.call("DELETE", "tokens", str(row["id"]))
    issued = admin.call("POST", "tokens", body={"name": TOKEN})["token"]
    return {"secret": issued["secret"], "id": str(issued["id"])}


def _readers(admin: Client, metalake: str) -> list[str]:
    """A line for each member who can read tables of the schema, from the review's table."""
    table = admin.iceberg(metalake, "system").load_table(("access", "rights"))
    scan = table.scan(row_filter="review = 'now' and privilege = 'select_table' and kind = 'table'")
    rows = [row for row in scan.to_arrow().to_pylist() if row["object_name"] in (metalake, *ABOVE)]
    reading = {row["principal"]: row["object_name"] for row in rows if not _is_excepted(row)}
    path = ("metalakes", metalake, "access", "objects", "schema", SCHEMA, "ways")
    through: dict[str, str] = {}
    for way in admin.call("GET", *path)["ways"]:
        if way["verdict"] == "effective" and way.get("privilege") in (None, "select_table"):
            by = f"role {way['role']} on" if way.get("role") else "owning"
            through.setdefault(way["user"], f"{by} {way['on']['fullName']}")
    shown = (f"{who}: on {on} and below it, through {through.get(who, 'its owner')}" for who, on in reading.items())
    return [f"Who can read {SCHEMA.removeprefix('lake.')}:", *(f"  {line}" for line in sorted(shown))]


def _is_excepted(row: dict[str, Any]) -> bool:
    return any(each["name"] in ABOVE for each in row["exceptions"])
