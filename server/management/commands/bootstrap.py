"""`manage.py bootstrap`: on an empty store, create the admin, the metalake `demo` and its Iceberg catalog `lake`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from authz.callers.identity import actor_of
from authz.models import User
from authz.policy import authorization_is_off
from catalogs.services import catalogs, metalakes
from metalake import database_checks

ADMIN = "admin"


class Command(BaseCommand):
    help = "Create the first admin and the first catalog; does nothing once there is an account."

    def handle(self, *args: Any, **options: Any) -> None:
        database_checks.wait_until_it_answers(self.stdout.write)
        if User.objects.exists():
            return
        with database_checks.alone(self.stdout.write):  # two nodes may start on one empty store
            if not User.objects.exists():
                self._fill()

    def _fill(self) -> None:
        given = os.environ.get("METALAKE_ADMIN_PASSWORD", "")
        if given:
            _require_strong(given)
        password = given or secrets.token_urlsafe(15)
        with transaction.atomic():
            admin = User.objects.create_superuser(ADMIN, password)
            # The operator owns the first metalake, even if not named in METALAKE_SERVICE_ADMINS.
            maker = replace(actor_of(admin), service_admin=True)
            metalakes.create_metalake(maker, "demo", "The metalake that every new store begins with", {})
            catalogs.create_catalog(
                actor_of(admin), "demo", "lake", "relational", "lakehouse-iceberg", "Iceberg tables kept here", {}
            )
        self.stdout.write("Made the metalake demo with the Iceberg catalog lake.")
        if not given:
            self.stdout.write(f"Made the user {ADMIN} with the password {password} - it is shown this once.")
        for sentence in _who_makes_others():
            self.stdout.write(sentence)


def _who_makes_others() -> Iterator[str]:
    """Sentences that say who may create metalakes, if the first admin may not."""
    named = sorted(settings.METALAKE_SERVICE_ADMINS)
    if ADMIN in named or authorization_is_off():
        return
    if not named:
        yield "METALAKE_SERVICE_ADMINS names nobody: nobody creates other metalakes."
    elif "simple" in settings.METALAKE_AUTHENTICATORS:
        yield f"Other metalakes are created by {', '.join(named)} (METALAKE_SERVICE_ADMINS)."
    else:
        yield (
            f"Other metalakes are created by {', '.join(named)} (METALAKE_SERVICE_ADMINS), who have no accounts yet: "
            f"manage.py createsuperuser makes one, or the operators' admin."
        )


def _require_strong(password: str) -> None:
    try:
        validate_password(password)
    except ValidationError as weak:
        raise CommandError(
            f"METALAKE_ADMIN_PASSWORD, the password of the first admin: {' '.join(weak.messages)} "
            f"Set another, or unset it and one is made."
        ) from None
