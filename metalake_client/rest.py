"""A client of Metalake's native REST wire."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import requests

from metalake_client.failures import Exit, Failure, of_status

ACCEPT = "application/json"
Json = dict[str, Any]


class Client:
    """One caller of one server: a token, or a user name with a password.

    Every call raises Failure where it is refused, or where nobody answers.
    """

    def __init__(self, url: str, *, user: str = "", password: str = "", token: str = "", timeout: float = 60) -> None:
        """`timeout` is in seconds."""
        self.url, self.timeout = url.rstrip("/"), timeout
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy, and no password of ~/.netrc, unless asked for
        self._session.headers["Accept"] = ACCEPT
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"
        elif user:
            pair = b64encode(f"{user}:{password}".encode()).decode()
            self._session.headers["Authorization"] = f"Basic {pair}"

    def get(self, *path: str, **query: str | None) -> Json:
        return self.call("GET", *path, query=query)

    def call(self, method: str, *path: str, body: Any = None, query: Mapping[str, str | None] | None = None) -> Json:
        """The reply to a request; `path` is what follows /api/, each part unencoded."""
        target = f"{self.url}/api/" + "/".join(quote(part, safe="") for part in path)
        sent = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            answer = self._session.request(method, target, json=body, params=sent, timeout=self.timeout)
        except requests.Timeout:
            raise Failure(f"{self.url} did not answer within {self.timeout:g} s.", Exit.UNREACHABLE) from None
        except requests.ConnectionError:
            reason = "Is the server running? METALAKE_URL or --url names another."
            raise Failure(f"Nobody answers at {self.url}. {reason}", Exit.UNREACHABLE) from None
        except (requests.RequestException, ValueError) as wrong:
            raise Failure(f"{self.url} cannot be asked: {wrong}", Exit.USAGE) from None
        return self._reply(answer)

    def pages(self, *path: str, **query: str | None) -> Iterator[Json]:
        """The replies of a list, page after page."""
        token: str | None = None
        while True:
            page = self.get(*path, **query, pageToken=token)
            yield page
            token = page.get("nextPageToken")
            if not token:
                return

    def _reply(self, answer: requests.Response) -> Json:
        try:
            reply = answer.json()
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise Failure(f"{self.url} answered {answer.status_code}, and not as Metalake does. Is this its address?")
        if not answer.ok:
            raise of_status(answer.status_code, str(reply.get("message") or answer.reason))
        return reply
