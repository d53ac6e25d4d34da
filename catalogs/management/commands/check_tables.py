"""`manage.py check_tables`: check that every managed table and view has its metadata file."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalogs.models import Catalog
from catalogs.services.file_check import check_tables, full_name, managed_catalogs

EVERY = 1_000  # tables per progress line
SHOWN = 100  # broken tables listed per catalog


class Command(BaseCommand):
    help = "Read the current metadata file of every table and view; changes nothing. For after a restore."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("metalake", nargs="?", help="only this metalake")
        parser.add_argument("catalog", nargs="?", help="only this catalog of it")

    def handle(self, *args: Any, **options: Any) -> None:
        catalogs = list(managed_catalogs(options["metalake"], options["catalog"]))
        if options["metalake"] and not catalogs:
            raise CommandError("There is no such catalog with managed tables.")
        broken = sum(self._check(row) for row in catalogs)
        if broken:
            raise CommandError(
                f"{broken} tables or views cannot be read. Where a folder is missing, put it back where the store says "
                f"it is (docs/operations.md, Backup and restore); what is lost for good can be dropped."
            )
        self.stdout.write("Every table and view can be read.")

    def _check(self, catalog: Catalog) -> int:
        name = full_name(catalog)
        tables = broken = 0
        for checked in check_tables(catalog):
            tables += 1
            if checked.wrong:
                broken += 1
                if broken <= SHOWN:
                    self.stdout.write(f"  {checked.full_name}: {checked.wrong}")
            if tables % EVERY == 0:
                self.stdout.write(f"  {name}: {tables:,} tables and views so far")
                self.stdout.flush()
        self.stdout.write(f"{name}: {tables:,} tables and views, {broken:,} that cannot be read")
        return broken
