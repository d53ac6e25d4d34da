"""Django's command line for Metalake: `python -m metalake`, `manage.py` and, once installed, `metalake`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "metalake.settings")
    if sys.argv[1:2] == ["serve"]:  # before any module with a counter is loaded: its processes share their counts
        from metalake import meters

        meters.share()
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as wrong:
        sys.exit(f"{wrong}")


if __name__ == "__main__":
    main()
