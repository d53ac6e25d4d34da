"""The declaration of an endpoint of either API.

Authorization, the OpenAPI document and the endpoints of /v1/config are derived from it.
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
    """`operation` names a row of the operation table, or a family of rows if the request names the object's kind; it is
    "anyone" or "caller" for requests without an object.

    `method` and `path` are set for Iceberg REST; for the native API Django's URLs have them.
    `reply` maps each key of the reply to its type, which allows None if the key may be missing; None is a reply without
    the envelope. `query` names the query parameters, `id` is the OpenAPI operationId. An optional body that is not sent
    is None. `refuse` raises for callers who may not call it, before the body is read.
    `looks_up` marks a hot read, served by the fast path (docs/decisions/fast-path.md): it returns the address that the
    service looks up first, given the endpoint in the native API and the call in Iceberg REST.
    `commits`: the request changes a table's metadata. `needs`: the kind of object that the catalog must support.
    `streams`: the reply is NDJSON.
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
