"""The job builtin-check_server: fetches the version of the server that started it, and the catalogs visible to it.

It needs only the environment of every run: METALAKE_URL, METALAKE_METALAKE, METALAKE_TOKEN and METALAKE_RUN.
"""

from __future__ import annotations

import os
import sys

from metalake_client.failures import Failure
from metalake_client.rest import Client


def main(arguments: list[str]) -> int:
    times = dict(each.removeprefix("--").partition("=")[::2] for each in arguments).get("times", "1")
    if not times.isdigit() or not 1 <= int(times) <= 1_000:
        print(f"--times is a whole number from 1 to 1000, not {times!r}.", file=sys.stderr)
        return 2
    client = Client(os.environ["METALAKE_URL"], token=os.environ["METALAKE_TOKEN"])
    metalake, run = os.environ["METALAKE_METALAKE"], os.environ["METALAKE_RUN"]
    try:
        for done in range(1, int(times) + 1):
            version = client.get("version")["version"]["version"]
            catalogs = [each["name"] for each in client.get("metalakes", metalake, "catalogs")["identifiers"]]
            print(f"{done}: {client.url} is {version}; catalogs of {metalake}: {', '.join(catalogs) or 'none'}")
            progress = {"done": done, "total": int(times), "stage": "asking the server"}
            client.call("PUT", "metalakes", metalake, "jobs", "runs", run, "progress", body=progress)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
