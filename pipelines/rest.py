"""A client of Metalake's native REST API and of its Iceberg REST catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import requests
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog


class Refused(Exception):
    """The server refused a request; the message is the server's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass(frozen=True)
class Client:
    """One caller: a user name with a password, or a token."""

    url: str
    user: str = ""
    password: str = ""
    token: str = ""

    def call(self, method: str, *path: str, body: Any = None, query: dict[str, str] | None = None) -> dict[str, Any]:
        """The reply's body. Raises Refused, or the errors of requests if the server does not answer."""
        target = f"{self.url}/api/" + "/".join(quote(part, safe="") for part in path)
        who: dict[str, Any] = {"headers": self._bearer} if self.token else {"auth": (self.user, self.password)}
        # Following a redirect would send the body, and on the same host the credentials, to somebody else.
        answer = requests.request(method, target, json=body, params=query, timeout=30, allow_redirects=False, **who)
        if answer.is_redirect:
            raise Refused(answer.status_code, f"{self.url} is not the server's own address: it redirects.")
        if not answer.ok:
            raise Refused(answer.status_code, answer.json().get("message", answer.reason))
        return dict(answer.json())

    @property
    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def iceberg(self, metalake: str, catalog: str) -> Catalog:
        """A PyIceberg catalog of this caller."""
        properties: dict[str, Any] = {"uri": f"{self.url}/iceberg/{metalake}", "warehouse": catalog}
        if self.token:
            properties["token"] = self.token
        else:
            properties["auth"] = {"type": "basic", "basic": {"username": self.user, "password": self.password}}
        return RestCatalog(metalake, **properties)
