"""The environment, as settings read it."""

from __future__ import annotations

import os

import environ
from django.core.exceptions import ImproperlyConfigured


class Environment(environ.Env):
    """`int` raises ImproperlyConfigured, naming the variable, if the value is not a whole number."""

    def int(self, var: str, default: int | environ.NoValue = environ.Env.NOTSET) -> int:
        try:
            return int(super().int(var, default))
        except ValueError:
            raise ImproperlyConfigured(f"{var} is a whole number, not {os.environ[var][:80]!r}.") from None
