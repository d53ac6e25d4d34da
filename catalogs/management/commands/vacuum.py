"""`manage.py vacuum`: list orphans that killed processes left on local disks, or remove them with --delete."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from catalogs.services.vacuum import DAY, EmptyFolder, Orphan, Unsearched, Vacuum
from metalake.errors import MetalakeError


class Command(BaseCommand):
    help = "List metadata files that no table names, and empty folders of tables that are none; --delete removes them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--delete", action="store_true", help="remove what is found; without it nothing changes")
        parser.add_argument("--days", type=float, default=1.0, help="only what is older than this; 1, or more")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["days"] >= 1:
            raise CommandError("--days is 1 or more: a younger file may belong to a commit that is under way.")
        vacuum, delete = Vacuum(options["days"] * DAY), options["delete"]
        done: list[Orphan | EmptyFolder] = []
        for finding in vacuum.find():
            if isinstance(finding, Unsearched):
                self.stdout.write(f"left     {finding.what}: {finding.why}")
            elif delete and (why := _remove(vacuum, finding)):
                self.stdout.write(f"kept     {_shown(finding)}: {why}")
            else:
                self.stdout.write(f"{'removed' if delete else 'found':<8} {_shown(finding)}")
                done.append(finding)
        files = [finding.size for finding in done if isinstance(finding, Orphan)]
        what = f"{len(files)} metadata files ({sum(files):,} bytes) and {len(done) - len(files)} empty folders"
        if delete:
            self.stdout.write(f"Removed {what}.")
        elif done:
            self.stdout.write(f"Found {what}. Nothing was removed: 'manage.py vacuum --delete' removes them.")
        else:
            self.stdout.write("Nothing is to be removed.")


def _remove(vacuum: Vacuum, finding: Orphan | EmptyFolder) -> str:
    """Remove a finding; "", or why it was not removed."""
    try:
        return "" if vacuum.remove(finding) else "it changed meanwhile"
    except (OSError, MetalakeError, OperationalError) as failure:
        return f"it cannot be removed ({failure})"


def _shown(finding: Orphan | EmptyFolder) -> str:
    days = f"{finding.age / DAY:.1f} days"
    if isinstance(finding, Orphan):
        return f"{finding.path}  {finding.size:,} bytes  {days}  {finding.kind} {finding.name}"
    return f"{finding.path}  empty  {days}  catalog {finding.catalog}"
