"""What a newcomer meets: `make run` and `make demo` in a fresh clone, with nothing of this environment.

All lies in a folder that goes at the end. `python -m tests.first_hour` ends with 0 where both do as the README says,
else it shows what they said.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests import processes
from tests.ports import free_port

REPOSITORY = Path(__file__).resolve().parent.parent
PATIENCE = 900  # seconds for each of the two, whose first call installs what they need
SEEN = ("answers compared with the server, no difference.", "Who can read travel:nyc:2013:", "Everything was as")


def walk(folder: Path) -> None:
    """Raises AssertionError with what was said."""
    began, clone, log, port = time.monotonic(), folder / "metalake", folder / "log", free_port()
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
    own = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder)}
    own |= {"METALAKE_PORT": str(port), "METALAKE_ADMIN_PASSWORD": "correct horse battery"}
    ready = lambda: processes.answers(f"http://127.0.0.1:{port}/health/ready")  # noqa: E731
    server = processes.start("make run", ["make", "run"], log, ready, PATIENCE, cwd=clone, env=own)
    try:
        print(f"make run    serves after {time.monotonic() - began:.0f} s")
        command = ["timeout", str(PATIENCE), "make", "demo"]
        demo = subprocess.run(command, cwd=clone, env=own, capture_output=True, text=True, check=False)
        said = f"make demo ended with {demo.returncode}:\n{demo.stdout}\n{demo.stderr}\n{processes.tail(log)}"
        assert demo.returncode == 0 and all(line in demo.stdout for line in SEEN) and server.poll() is None, said
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(40)
        processes.kill(server)
    print(f"make demo   ended well, {time.monotonic() - began:.0f} s after the start")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="metalake-first-hour-", ignore_cleanup_errors=True) as place:
        try:
            walk(Path(place))
        except AssertionError as failure:
            sys.exit(str(failure))
