"""What an endpoint of either wire declares about itself.

The authorization, the API's description and what /v1/config offers are made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from metalake.kinds import Kind
from metalake.lineage import Address


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """`operation` names a row of the operation table, or a family of rows if the request names the object's kind, or is
    "anyone" or "caller" if the request is about no object.

    `method` and `path` are set for the Iceberg wire; on the native wire Django's URLs have them.
    `reply` maps each key of the reply to its type, which allows None if the key may be left out; None is a reply
    without the envelope. `query` names the parameters that are read, `id` the operation in the API's description. An
    optional body that is not sent is None. `refuse` raises for callers who may not call it, before the body is read.
    `looks_up` makes a read a hot one, which the server's fast path answers (docs/decisions/fast-path.md): it gives the
    address that its service looks up first, of the endpoint on the native wire and of the call on Iceberg's.
    `commits`: the request changes a table's metadata. `needs`: the kind of object that the catalog has to offer.
    `streams`: the reply is lines of JSON.
    """

    operation: str
    method: str = ""
    path: str = ""
    body: type[BaseModel] | None = None
    body_is_optional: bool = False
    reply: dict[str, Any] | None = None
    query: tuple[str, ...] = ()
    id: str | None = None
    refuse: Callable[[Any], None] | None = field(default=None, repr=False)
    looks_up: Callable[[Any], Address] | None = None
    commits: bool = False
    needs: Kind | None = None
    streams: bool = False
