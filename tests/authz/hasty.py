"""The real settings, but the record of use is written every second."""

from django.apps import AppConfig

from metalake.settings import INSTALLED_APPS
from tests.served import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.authz.hasty.Hasty"]


class Hasty(AppConfig):
    name = "tests.authz.hasty"

    def ready(self) -> None:
        from access.usage import writer

        writer.EVERY = 1.0
