"""`gcli engine config` for 300 catalogs, each a process of its own: the first run, and one that finds nothing to write.

Beside it the request itself, by a client that runs already. `python -m benchmarks.engine_config [engine...]`
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import claim, finish, median, own_store, serve, timed

CATALOGS = 300
ENGINES = ("trino", "duckdb", "pyiceberg", "spark", "flink")
GOAL = 5.0  # seconds


def main(engines: Sequence[str]) -> None:
    own_store()
    token = fill()
    with ExitStack() as stack:
        server = serve(stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="metalake-config-")))
        given = {"METALAKE_URL": server.url, "METALAKE_METALAKE": "bench", "METALAKE_TOKEN": token}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("METALAKE_")} | given
        environment["METALAKE_PROFILES"] = str(folder / "none.toml")

        from metalake_client.engines.catalogs import catalogs_of
        from metalake_client.rest import Client

        client = Client(server.url, token=token)
        assert len(catalogs_of(client, "bench")) == CATALOGS
        print(f"  the request itself: {median(timed(lambda: catalogs_of(client, 'bench'), 5)):.0f} ms")
        for engine in engines or ENGINES:
            for what in ("first run", "nothing to write"):
                seconds, processor = run(engine, folder / engine, environment)
                claim(f"{engine}, {CATALOGS} catalogs, {what}", seconds, GOAL, unit=" s")
                print(f"       of which gcli's own work on a processor: {processor:.2f} s")
            written = sum(path.stat().st_size for path in (folder / engine).rglob("*") if path.is_file())
            print(f"       {written:,} bytes in {sum(1 for _ in (folder / engine).rglob('*'))} files")
    finish()


def fill() -> str:
    """Catalogs of which each has a schema in a schema; returns their owner's token."""
    from authz.callers.identity import issue_token
    from authz.models import User
    from benchmarks.population import METALAKE, first_catalog
    from catalogs.services import catalogs, schemas
    from metalake.lineage import Address

    owner = first_catalog()
    for number in range(1, CATALOGS):
        name = f"catalog_{number:03}"
        catalogs.create_catalog(owner, METALAKE, name, "relational", "lakehouse-iceberg", None, {})
        schemas.create_schema(owner, Address(metalake=METALAKE, catalog=name, schema="sales:emea"), None, {})
    return issue_token(User.objects.get(username="admin"), "bench")


def run(engine: str, folder: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Seconds that the command took, and those of a processor."""
    command = [sys.executable, "-m", "metalake_client", "engine", "config", engine, "--folder", str(folder)]
    started, before = time.perf_counter(), os.times()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    took, after = time.perf_counter() - started, os.times()
    return took, after.children_user - before.children_user + after.children_system - before.children_system


if __name__ == "__main__":
    main(sys.argv[1:])
