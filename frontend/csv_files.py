"""CSV downloads that are safe to open in a spreadsheet: no cell is ever interpreted as a formula."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

ROWS_AT_ONCE = 500
MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # without it, Excel reads UTF-8 as the code page of its country
# Formula signs may be full-width or follow invisible characters.
_FORMULA = re.compile(r"[\t\r\n]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def cell(value: Any) -> str:
    """The text of a cell, prefixed with an apostrophe if a spreadsheet would evaluate it; None is empty."""
    text = "" if value is None else str(value)
    return f"'{text}" if _FORMULA.match(text) else text


def download(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> StreamingHttpResponse:
    """The rows as a streamed file. `name` is any text; characters that file systems refuse become underscores.

    Every cell is quoted, so that no locale's separator splits it.
    """
    response = StreamingHttpResponse(_chunks(header, rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = attachment(name, "csv")
    return response


def attachment(name: str, ending: str) -> str:
    """The Content-Disposition of a file to be saved."""
    safe = re.sub(r"[^\w.-]+", "_", name)[:100].strip("._")
    disposition = content_disposition_header(True, f"{safe or 'table'}.{ending}")
    assert disposition is not None
    return disposition


def _chunks(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    writer: Any = csv.writer(_Lines(), quoting=csv.QUOTE_ALL)
    yield MARK + writer.writerow(header)
    waiting = iter(rows)
    while some := list(islice(waiting, ROWS_AT_ONCE)):
        yield "".join(writer.writerow(map(cell, row)) for row in some)


class _Lines:
    """A file for csv.writer that returns each line."""

    def write(self, line: str) -> str:
        return line
