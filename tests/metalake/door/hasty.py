"""`manage.py serve` with a door that waits for its clients less long than it does for anybody else's."""

import os

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "metalake.settings")
    from django.core.management import execute_from_command_line

    from metalake.door import limits

    limits.HEAD, limits.STEP, limits.IDLE, limits.LINGER = 2.0, 2.0, 3.0, 1.0
    execute_from_command_line(["manage.py", "serve"])
