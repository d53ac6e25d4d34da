"""Rows of a stream spooled to files for Spark, since they may not fit into the driver's memory.

The files are in a folder below METALAKE_SPOOL, by default the system's temporary directory; executors on other machines
need one that is shared with the driver.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from metalake_client.failures import Failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 200_000  # per file; one task reads a file


class Spool:
    """JSON lines files, with a folder for each sort of row."""

    def __init__(self, folder: Path, files: ExitStack) -> None:
        self.folder = folder
        self._files = files
        self._open: dict[str, tuple[IO[str], int]] = {}

    def add(self, sort: str, row: dict[str, Any]) -> None:
        """Append a row. Raises Failure if it cannot be written, as with a full disk."""
        file, count = self._open.get(sort) or (None, 0)
        try:
            if file is None or count % ROWS == 0:
                file = self._next(sort, count)
            file.write(json.dumps(row) + "\n")
        except OSError as problem:
            raise self._full(problem) from None
        self._open[sort] = file, count + 1

    def _next(self, sort: str, count: int) -> IO[str]:
        if sort in self._open:
            self._open[sort][0].close()
        (self.folder / sort).mkdir(exist_ok=True)
        path = self.folder / sort / f"{count // ROWS}.json"
        return self._files.enter_context(path.open("w", encoding="utf-8"))

    def read(self, session: SparkSession, sort: str, columns: str) -> DataFrame:
        """The rows of a sort; `columns` is Spark DDL. Raises Failure if they cannot be written, as with a full disk."""
        (self.folder / sort).mkdir(exist_ok=True)
        if sort in self._open:
            try:
                self._open[sort][0].flush()
            except OSError as problem:
                raise self._full(problem) from None
        return session.read.schema(columns).json((self.folder / sort).as_uri())

    def _full(self, problem: OSError) -> Failure:
        return Failure(f"What was read cannot be put into {self.folder}: {problem.strerror}.")


@contextmanager
def spooled() -> Iterator[Spool]:
    """A spool, deleted at the end. Raises Failure if its folder cannot be created."""
    with ExitStack() as files:
        try:
            folder = tempfile.TemporaryDirectory(prefix="metalake-", dir=os.environ.get("METALAKE_SPOOL"))
        except OSError as problem:
            raise Failure(f"There is no folder for what is read: {problem.strerror}.") from None
        with folder as path:
            yield Spool(Path(path), files)
