"""Django's command line for Metalake: `python -m metalake`, `manage.py` and, once installed, `metalake`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "metalake.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        if sys.argv[1:2] == ["serve"]:
            _prepare_to_serve()
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as wrong:
        sys.exit(f"{wrong}")


def _prepare_to_serve() -> None:
    """Check the port before the data folder is created; share metrics before importing any module that defines one."""
    from metalake import bind_address, metrics

    bind_address.listen().close()
    metrics.share()


if __name__ == "__main__":
    main()
