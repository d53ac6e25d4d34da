"""What a newcomer meets: `make run` and `make demo` in a fresh clone, with nothing of this environment.

    python -m tests.first_hour

The clone, its environment, its data and its home are a folder that goes at the end. The exit code is 0 where both do as
the README says; where one does not, what it said is printed.
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


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="metalake-first-hour-", ignore_cleanup_errors=True) as folder:
        clone, home, port = Path(folder, "metalake"), Path(folder, "home"), free_port()
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
        own = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(home)}
        own |= {"METALAKE_PORT": str(port), "METALAKE_ADMIN_PASSWORD": "correct horse battery"}
        try:
            return walk(clone, own, f"http://127.0.0.1:{port}")
        except AssertionError as failure:
            print(failure)
            return 1


def walk(clone: Path, own: dict[str, str], url: str) -> int:
    """Raises AssertionError with what was said."""
    began, log = time.monotonic(), clone.with_name("run.log")
    ready = lambda: processes.answers(f"{url}/health/ready")  # noqa: E731
    server = processes.start("make run", ["make", "run"], log, ready, PATIENCE, cwd=clone, env=own)
    try:
        print(f"make run    serves after {time.monotonic() - began:.0f} s")
        assert f"Metalake serves on {url}" in log.read_text(), log.read_text()
        command = ["timeout", str(PATIENCE), "make", "demo"]
        demo = subprocess.run(command, cwd=clone, env=own, capture_output=True, text=True, check=False)
        said = f"make demo ended with {demo.returncode}:\n{demo.stdout}\n{demo.stderr}"
        assert demo.returncode == 0 and all(line in demo.stdout for line in SEEN), said
        assert server.poll() is None, processes.tail(log)
    finally:
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(40)
        processes.kill(server)
    print(f"make demo   ended well, {time.monotonic() - began:.0f} s after the start")
    return 0


if __name__ == "__main__":
    sys.exit(main())
