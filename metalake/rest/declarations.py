"""What an endpoint of either wire declares of itself.

The authorization, the API's description and what /v1/config offers are made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from metalake.kinds import Kind


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """`operation` names a row of the operation table, or a family of rows where the request names the object's kind,
    or is "anyone" or "caller" where no object is asked about.

    `method` and `path` are those of the wire; Django's URLs say them on the native one.
    `reply` maps each key of the reply to its type, one that may be None to a key that may be left out; None is a reply
    without the envelope. `query` names the parameters that are read, `id` the operation in the API's description. An
    optional body that is not sent is None. `refuse` raises for callers whom it is not for, before a body is read.
    `commits` says that a table's metadata would change, `needs` which kind of object the catalog has to offer.
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
    commits: bool = False
    needs: Kind | None = None
