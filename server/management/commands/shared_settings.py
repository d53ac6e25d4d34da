"""`manage.py shared_settings`: the settings that all processes of this store share, and where this one differs."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from metalake import shared_settings
from metalake.models import Shared


class Command(BaseCommand):
    help = "Show the settings that all processes of this store must share and where this one differs, or forget one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--forget",
            metavar="NAME",
            help="remove one that was changed on purpose, such as 'event log' or 'folder /srv/lake'; the next process "
            "that has it stores its value",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if name := options["forget"]:
            if not Shared.objects.filter(name=name).delete()[0]:
                raise CommandError(f"The store knows no {name!r}; without --forget you see what it knows.")
            self.stdout.write(f"Forgot {name}.")
            return
        for row in Shared.objects.order_by("name"):
            self.stdout.write(f"{row.name}  {row.value}  since {row.since:%Y-%m-%d %H:%M}")
        for difference in shared_settings.sentences():
            self.stdout.write(difference)
