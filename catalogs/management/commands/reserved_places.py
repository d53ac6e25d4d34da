"""`manage.py reserved_places`: list the reserved places of dropped objects, and release those of dropped catalogs."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalogs.models import ReservedPlace
from catalogs.services import place_release


class Command(BaseCommand):
    help = "List the places that are reserved, or release those of catalogs that are gone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("metalake", nargs="?", help="only those of this metalake, by its name as of then")
        parser.add_argument("--release", nargs="+", type=int, metavar="ID", help="release these, by their ids")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = ReservedPlace.objects.order_by("metalake_name", "location", "pk")
        if options["metalake"]:
            rows = rows.filter(metalake_name=options["metalake"])
        if options["release"]:
            self._release(set(options["release"]), list(rows.filter(pk__in=options["release"])))
            return
        for row in rows:
            self.stdout.write(f"{row.pk}  {row.metalake_name}  {row.kind} {row.full_name}  {row.location}")

    def _release(self, asked: set[int], rows: list[ReservedPlace]) -> None:
        released = {row.pk for row in place_release.release_for_operator("manage.py", rows)}
        for row in rows:
            if row.pk in released:
                self.stdout.write(f"Released {row.location}.")
        if there := sorted(row.pk for row in rows if row.pk not in released):
            raise CommandError(f"The catalogs of {there} still exist: only their owners can release these.")
        if unknown := sorted(asked - {row.pk for row in rows}):
            raise CommandError(f"No reserved places have the ids {unknown}.")
