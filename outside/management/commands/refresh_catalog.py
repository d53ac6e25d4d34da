"""`manage.py refresh_catalog`: refresh an outside catalog now, in this process, and print the counts."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from catalogs.models import Catalog, RefreshRun
from metalake.models import Metalake
from outside import refresh


class Command(BaseCommand):
    help = "Bring the rows of an outside catalog up to what its own system says."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("metalake")
        parser.add_argument("catalog")
        parser.add_argument(
            "--accept-drops", action="store_true", help="believe that objects are gone, however many they are"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        row = _catalog(options["metalake"], options["catalog"])
        run = refresh.begin(row.pk, "manage.py", accept_drops=options["accept_drops"], here=True)
        console = Console(file=cast(IO[str], self.stdout))
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:.0f}/s"),
            TimeRemainingColumn(),
            console=console,
            auto_refresh=console.is_terminal,  # elsewhere only the last state is printed, which needs no thread
        ) as bar:
            task = bar.add_task(f"Refreshing {row.name}", total=run.expected or None, rate=0.0)

            def tell(run: RefreshRun) -> None:
                total = max(run.expected, run.seen) if run.expected else None
                bar.update(task, completed=run.seen, total=total, rate=refresh.speed(run)[0])

            try:
                ended = refresh.carry_on(run.pk, tell)
            except KeyboardInterrupt:
                bar.stop()
                raise CommandError(
                    "Interrupted. What was compared stays; call this again to go on where it was, or the server does "
                    "within a minute.",
                    returncode=130,
                ) from None
        if ended is None:
            raise CommandError(
                f"Another process is refreshing {row.name} already (run {run.pk}). Watch it on the catalog's page, or "
                "wait until it has ended and call this again."
            )
        self._tell(ended)

    def _tell(self, run: RefreshRun) -> None:
        seconds = ((run.ended_at or timezone.now()) - run.started_at).total_seconds()
        counts = f"{run.created} new, {run.changed} changed, {run.dropped} dropped, {run.skipped} skipped"
        if run.state != RefreshRun.State.DONE:
            raise CommandError(
                f"Stopped after {run.seen} objects ({counts}): {run.error} What was compared stays; call this again."
            )
        self.stdout.write(f"{run.seen} objects in {seconds:.1f} s: {counts}.")
        if run.held_back:
            self.stdout.write(
                f"{run.held_back} objects are missing there, too many to believe it; nothing was dropped. If they are "
                "really gone, call this again with --accept-drops."
            )


def _catalog(metalake: str, name: str) -> Catalog:
    above = Metalake.objects.filter(name=metalake).first()
    row = Catalog.objects.filter(parent_id=above.pk, name=name).first() if above else None
    if row is None:
        raise CommandError(f"There is no catalog {name} in a metalake {metalake}.")
    if not refresh.can_refresh(row):
        raise CommandError(f"Catalog {name} is kept here ({row.provider}); there is nothing to refresh.")
    return row
