"""A new master key for 10,000 secrets while three processes open them and a fourth changes them.

`python -m benchmarks.rotate_secrets [secrets]` plants that many instead, four in each catalog.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import claim, finish, join_store, on_both_databases, percentile

SECRETS, EACH, READERS = 10_000, 4, 3
PAUSE = {"read": 0.001, "write": 0.02}  # seconds between two turns of a process
KEYS = [f"s3.secret-{number}" for number in range(EACH)]


def main(arguments: list[str]) -> None:
    if arguments[:1] in (["read"], ["write"]):
        join_store()
        work(arguments[0], Path(arguments[1]))
        return
    on_both_databases("benchmarks.rotate_secrets", arguments)
    count = (int(arguments[0]) if arguments else SECRETS) // EACH
    plant(count)
    from django.core.management import call_command

    from catalogs import keyring, vault

    keys_before = keyring.ids()
    with tempfile.TemporaryDirectory() as folder:
        ended = Path(folder) / "ended"
        command = [sys.executable, "-m", "benchmarks.rotate_secrets"]
        others = [
            subprocess.Popen([*command, verb, str(ended)], stdout=subprocess.PIPE, text=True)
            for verb in (*["read"] * READERS, "write")
        ]
        for other in others:
            assert other.stdout and other.stdout.readline() == "ready\n"
        started = time.perf_counter()
        call_command("rotate_secrets")
        took = time.perf_counter() - started
        ended.touch()
        reports = [json.loads(other.communicate()[0]) for other in others]
    print(f"  {count * EACH:,} secrets of {count:,} catalogs in {took:.1f} s")
    reads, writes = sum(one["done"] for one in reports[:-1]), reports[-1]["done"]
    slow = max(one["p99"] for one in reports[:-1])
    print(f"  meanwhile {reads:,} times all secrets of a catalog opened (p99 {slow:.1f} ms), {writes:,} alterations")
    claim("reads that failed", sum(one["failed"] for one in reports[:-1]), 0)
    claim("alterations that failed", reports[-1]["failed"], 0)
    claim("reads in the meantime", reads, 1_000, at_least=True)
    newest = keyring.newest().id
    assert newest not in keys_before
    claim("master keys in use other than the new one", len(vault.master_keys_in_use() - {newest}), 0)
    finish()


def plant(count: int) -> None:
    from django.db import transaction

    from authz.callers.identity import actor_of
    from authz.models import User
    from catalogs import vault
    from catalogs.models import Catalog
    from catalogs.secrets import MASK
    from catalogs.services import metalakes
    from metalake.kinds import Kind
    from metalake.models import Metalake

    owner = User.objects.create_superuser("admin", "correct horse battery")
    metalakes.create_metalake(actor_of(owner), "demo", None, {})
    above = Metalake.objects.get()
    with transaction.atomic():
        for number in range(count):
            row = Catalog.made(Kind.CATALOG, f"c{number}", above, owner_user_id=owner.pk, creator="admin")
            row.type, row.provider = "relational", "lakehouse-iceberg"
            row.properties = dict.fromkeys(KEYS, MASK) | {"warehouse": f"s3://c{number}/w", "nested-namespaces": "true"}
            row.save(force_insert=True)
            vault.seal(row.pk, {key: f"{key} of c{number}" for key in KEYS})


def work(verb: str, ended: Path) -> None:
    """Open or change secrets of random catalogs until the file exists, then print the counts."""
    from authz.callers.identity import actor_of
    from authz.models import User
    from catalogs import vault
    from catalogs.models import Catalog
    from catalogs.services import catalogs
    from catalogs.services.alterations import Alteration

    everything = list(Catalog.objects.values_list("pk", "name"))
    admin, chance = actor_of(User.objects.get()), random.Random(os.getpid())
    times, failed = list[float](), 0

    def read(pk: int, name: str) -> None:
        opened = vault.properties_of(pk)
        assert all(opened[key].startswith(f"{key} of {name}") for key in KEYS)

    def change(pk: int, name: str) -> None:
        key = chance.choice(KEYS)
        altered = Alteration(properties=((key, f"{key} of {name}, again"),))
        catalogs.alter_catalog(admin, "demo", name, altered)

    act = read if verb == "read" else change
    act(*everything[0])
    print("ready", flush=True)
    while not ended.exists():
        started = time.perf_counter()
        try:
            act(*chance.choice(everything))
        except Exception as failure:
            print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
            failed += 1
        times.append((time.perf_counter() - started) * 1000)
        time.sleep(PAUSE[verb])
    print(json.dumps({"done": len(times), "failed": failed, "p99": percentile(times, 0.99)}))


if __name__ == "__main__":
    main(sys.argv[1:])
