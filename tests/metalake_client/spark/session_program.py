"""The process behind test_session.py: a metalake_session that answers as tests/spark_program.py does."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from metalake_client.failures import Failure
from metalake_client.spark import metalake_session
from tests.spark_program import apart, serve


def main() -> None:
    answers = apart()
    asked: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())  # by a file, as its secrets are no arguments
    os.remove(sys.argv[1])
    logging.basicConfig(level=logging.DEBUG)  # what Python's libraries tell of the start is in the log, too
    session = metalake_session(**asked)
    logging.getLogger().setLevel(logging.WARNING)

    def second(changes: dict[str, Any]) -> str:
        """What the description of another session of the same Spark says, or why there is none."""
        try:
            return str(metalake_session(**asked | changes).metalake)  # type: ignore[attr-defined]
        except Failure as refused:
            return str(refused)

    def view(*path: str) -> str:
        try:
            return str(session.metalake.view(*path))  # type: ignore[attr-defined]
        except Failure as refused:
            return f"Failure: {refused}"

    serve(
        session,
        answers,
        describe=lambda: str(session.metalake),  # type: ignore[attr-defined]
        second=second,
        view=view,
        log_level=session.sparkContext.setLogLevel,
        current=lambda: session.catalog.currentCatalog(),
    )


if __name__ == "__main__":
    main()
