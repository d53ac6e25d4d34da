"""`manage.py access`: grants as code from the shell: export, plan, apply, drift."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access.plans import apply, plan, plan_file
from access.plans.compare import compare, compare_changes
from access.plans.desired import Change, Wanted
from access.plans.export import export
from authz.actor import Actor
from authz.callers.identity import actor_of
from authz.models import User
from authz.services.grant_entries import Given
from metalake.errors import Invalid, MetalakeError
from metalake.models import Metalake
from metalake.wire import kind_of

SIGNS = {"createRole": "+", "grant": "+", "assign": "+", "revoke": "-", "unassign": "-", "dropRole": "-"}


class Command(BaseCommand):
    help = (
        "Grants as code. export prints the grants of a metalake; plan shows what would lead to those of a file; "
        "apply makes them so; drift exits with 1 where they differ. A file of changes is planned as just these."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("verb", choices=("export", "plan", "apply", "drift"))
        parser.add_argument("metalake")
        parser.add_argument("file", nargs="?", help="YAML or JSON (.json); - reads standard input; export writes it")
        parser.add_argument("--as", dest="user", metavar="USER", help="who asks; the metalake's owner if left out")
        parser.add_argument("--subtree", metavar="TYPE:NAME", help="for export: one object, as in catalog:lake")
        parser.add_argument("--yes", action="store_true", help="apply without asking")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            actor = _actor(options["metalake"], options["user"])
            if options["verb"] == "export":
                self._export(actor, options)
                return
            if options["subtree"]:
                raise CommandError("--subtree is for export; a file names its own subtree.")
            if not options["file"]:
                raise CommandError(f"Name the file: manage.py access {options['verb']} {options['metalake']} FILE")
            wanted = _read(options["file"])
            getattr(self, f"_{options['verb']}")(actor, options, wanted)
        except MetalakeError as refusal:
            raise CommandError(refusal.message) from None

    def _export(self, actor: Actor, options: dict[str, Any]) -> None:
        subtree = None
        if options["subtree"]:
            type_, _, full_name = options["subtree"].partition(":")
            subtree = kind_of(type_), full_name
        text = plan_file.as_yaml(export(actor, options["metalake"], subtree))
        if options["file"] in (None, "-"):
            self.stdout.write(text, ending="")
            return
        try:
            Path(options["file"]).write_text(text, encoding="utf-8")
        except OSError as failure:
            raise CommandError(f"{options['file']} cannot be written: {failure.strerror}.") from None

    def _plan(self, actor: Actor, options: dict[str, Any], wanted: Wanted | list[Change]) -> None:
        planned = _planned(actor, options["metalake"], wanted)
        self._show(planned.changes)
        if planned.changes:
            user = f" --as {options['user']}" if options["user"] else ""
            self.stdout.write(f"\n{planned.summary}.")
            self.stdout.write(f"To make it so: manage.py access apply {options['metalake']} {options['file']}{user}")

    def _apply(self, actor: Actor, options: dict[str, Any], wanted: Wanted | list[Change]) -> None:
        planned = _planned(actor, options["metalake"], wanted)
        self._show(planned.changes)
        if not planned.changes:
            return
        self.stdout.write(f"\n{planned.summary}.")
        if not options["yes"] and not _agreed(options["file"]):
            raise CommandError("Nothing was changed.")
        applied = apply.apply_plan(actor, options["metalake"], planned.token)
        self.stdout.write(f"Done: {len(applied.changes)} changes.")

    def _drift(self, actor: Actor, options: dict[str, Any], wanted: Wanted | list[Change]) -> None:
        if isinstance(wanted, Wanted):
            changes = compare(actor, options["metalake"], wanted).changes
        else:
            changes = compare_changes(actor, options["metalake"], wanted).changes
        self._show(changes)
        if changes:
            self.stdout.write(f"\n{len(changes)} changes would lead from the server to the file.")
            sys.exit(1)

    def _show(self, changes: list[Change]) -> None:
        if not changes:
            self.stdout.write("Nothing differs.")
        role = None
        for change in changes:
            if change.role != role:
                role = change.role
                self.stdout.write(f"  role {role}")
            self.stdout.write(f"{SIGNS[change.change]}   {_line(change)}")


def _line(change: Change) -> str:
    if change.holder:
        return f"held by {' '.join(change.holder)}"
    if change.given is None or change.on is None:
        return "the role itself"
    return f"{change.given.effect} {change.privilege} on {' '.join(change.on)}{_span(change.given)}"


def _span(given: Given) -> str:
    starts = f" from {given.starts.isoformat()}" if given.starts else ""
    return starts + (f" until {given.ends.isoformat()}" if given.ends else "")


def _actor(metalake: str, name: str | None) -> Actor:
    if name is None:
        row = Metalake.objects.filter(parent__isnull=True, name=metalake).select_related("owner_user").first()
        if row is None:
            raise CommandError(f"Metalake {metalake} does not exist.")
        if row.owner_user is None:
            raise CommandError(f"A group owns metalake {metalake}: say who asks with --as USER.")
        return actor_of(row.owner_user)
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise CommandError(f"There is no enabled account {name}.")
    return actor_of(user)


def _planned(actor: Actor, metalake: str, wanted: Wanted | list[Change]) -> plan.Planned:
    if isinstance(wanted, Wanted):
        return plan.plan(actor, metalake, wanted)
    return plan.plan_changes(actor, metalake, wanted)


def _read(file: str) -> Wanted | list[Change]:
    """The state that a file wants, or its changes if it has these."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as failure:
        raise CommandError(f"{file} cannot be read: {failure.strerror}.") from None
    try:
        wanted: Wanted | list[Change] = plan_file.read_file(
            raw, plan_file.JSON if file.endswith(".json") else plan_file.YAML
        )
        return wanted
    except Invalid as wrong:
        raise CommandError(f"{file}: {wrong.message}") from None


def _agreed(file: str) -> bool:
    if file == "-" or not sys.stdin.isatty():
        raise CommandError("Nothing was changed: there is nobody to ask; --yes applies without asking.")
    return input("Apply this? Only 'yes' does: ").strip() == "yes"
