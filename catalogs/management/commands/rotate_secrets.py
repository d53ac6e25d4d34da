"""`manage.py rotate_secrets`: rotate the master key of all catalogs' secrets, online."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from catalogs import keyring, vault
from metalake.errors import ProviderUnavailable

SHOWN = 20


class Command(BaseCommand):
    help = (
        "Add a master key to the key ring and wrap the data key of every catalog by it; servers go on reading and "
        "writing. Values stay as they are sealed. It may be stopped at any time: --newest goes on where it was."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--newest", action="store_true", help="use the first key of the ring instead of a new one")
        parser.add_argument("--batch", type=int, default=100, help="data keys in one transaction (100)")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["batch"] < 1:
            raise CommandError("--batch takes a number above 0.")
        try:
            self._rotate(adds=not options["newest"], batch=options["batch"])
        except ProviderUnavailable as failure:
            raise CommandError(failure.message) from None

    def _rotate(self, *, adds: bool, batch: int) -> None:
        if not keyring.exists() and not vault.master_keys_in_use():
            self.stdout.write("There is nothing to rotate: no catalog keeps a secret, and no key ring was made yet.")
            return
        newest = keyring.add() if adds else keyring.newest()
        if adds:
            self.stdout.write(f"Added the master key {newest.id} to {settings.METALAKE_SECRET_KEYS_FILE}.")
        progress, reported_at = vault.Progress(0, 0, ()), time.monotonic()
        for progress in vault.rewrap(batch):
            if time.monotonic() - reported_at > 1:
                reported_at = time.monotonic()
                self.stdout.write(f"  {progress.done:,} of {progress.total:,} data keys are under {newest.id}")
        self.stdout.write(f"{progress.done:,} of {progress.total:,} data keys are under {newest.id}.")
        if progress.stuck:
            reasons = "\n".join(progress.stuck[:SHOWN])
            more = f"\nand {len(progress.stuck) - SHOWN:,} more" if len(progress.stuck) > SHOWN else ""
            raise CommandError(f"{len(progress.stuck):,} data keys did not open:\n{reasons}{more}")
        self._say_what_is_next(newest.id)

    def _say_what_is_next(self, newest: str) -> None:
        in_use = vault.master_keys_in_use()
        if waiting := sorted(in_use - {newest}):
            self.stdout.write(f"Others sealed under {', '.join(waiting)} meanwhile: run this again with --newest.")
            return
        self.stdout.write("Copy the ring to wherever you keep it, and to every node that has a ring of its own.")
        if spare := [key_id for key_id in keyring.ids() if key_id not in in_use]:
            self.stdout.write(
                f"Nothing in the database needs {', '.join(spare)} any more, but backups made before now do: take the "
                "lines out of the ring once those are gone."
            )
