"""`manage.py verify_history`: verifies that the history is unaltered, or reports the first altered row."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from authz import facts as history
from metalake.errors import Invalid


class Command(BaseCommand):
    help = "Check every sealed fact of the history; exits with 1 where one is not as it was written."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--since", metavar="HEAD", help="a head printed earlier: the chain must still contain it, unchanged"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            since = history.parse_head(options["since"]) if options["since"] else None
        except Invalid as wrong:
            raise CommandError(wrong.message) from None
        history.seal()
        broken = history.verify(since)
        history.record_verification(broken)
        if broken:
            key = (
                " METALAKE_SECRET_KEY here may not be the one that it was written with." if broken.position == 1 else ""
            )
            self.stderr.write(
                f"The history was tampered with, first at position {broken.position}: {broken.says}.{key}\n"
                "Compare the rows from there on with a backup: until then, no answer about the past can be trusted."
            )
            sys.exit(1)
        head = history.head()
        self.stdout.write(
            f"The history is untouched: {head.position} facts, each as it was written, in one chain.\n"
            f"Head: {head}\n"
            f"Keep the head outside this server; later, 'manage.py verify_history --since {head}' proves that nothing\n"
            "up to it was changed since."
        )
