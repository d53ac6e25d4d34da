"""`manage.py serve` with a server that waits for its clients less long than it does for anybody else's."""

import runpy
import sys

from server.http import limits

if __name__ == "__main__":
    limits.HEAD, limits.STEP, limits.IDLE, limits.LINGER = 2.0, 2.0, 3.0, 1.0
    sys.argv = ["manage.py", "serve"]
    runpy.run_path("manage.py", run_name="__main__")
