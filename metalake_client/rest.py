"""A client of Metalake's REST wires: the native one, and the Iceberg one where only that can do a thing."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from metalake_client.failures import Exit, Failure, of_status

ACCEPT = "application/json"
BROKEN = "The answer of {url} broke off. Try again."
LINES_AT_ONCE = 1 << 16  # bytes
Json = dict[str, Any]


class Client:
    """One caller of one server: a token, or a user name with a password.

    Every call raises Failure where it is refused, or where nobody answers.
    """

    def __init__(self, url: str, *, user: str = "", password: str = "", token: str = "", timeout: float = 60) -> None:
        """`timeout` is in seconds. Raises Failure for a URL that holds a password, and for a token that is none."""
        if "@" in _place_of(url):
            raise Failure("A URL holds no user name and no password: every error would show them.", Exit.USAGE)
        if not url.lower().startswith(("http://", "https://")):
            raise Failure(f"{url} cannot be asked: a server's URL begins with http:// or https://.", Exit.USAGE)
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise Failure("The token holds what no token does, such as a space or the end of a line.", Exit.REFUSED)
        self.url, self.timeout = url.rstrip("/"), timeout
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy, and no password from ~/.netrc, unless requested
        self._session.headers["Accept"] = ACCEPT
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"
        elif user:
            pair = b64encode(f"{user}:{password}".encode(errors="surrogateescape")).decode()
            self._session.headers["Authorization"] = f"Basic {pair}"

    def get(self, *path: str, **query: str | None) -> Json:
        return self.call("GET", *path, query=query)

    def call(
        self,
        method: str,
        *path: str,
        body: Any = None,
        file: tuple[str, bytes] | None = None,
        query: Mapping[str, str | None] | None = None,
    ) -> Json:
        """The reply to a request; `path` is what follows /api/, each part unencoded.

        What is sent is `body` as JSON, or `file`: its content type, and its content as it is.
        """
        target = f"{self.url}/api/" + path_of(path)
        return self._send(method, target, body=body, file=file, query=query)

    def call_iceberg(self, method: str, metalake: str, *path: str, body: Any = None, **query: str) -> Json:
        """The reply of the Iceberg wire; `path` is what follows /v1/, each part unencoded."""
        target = f"{self.url}/iceberg/{path_of([metalake])}/v1/{path_of(path)}"
        return self._send(method, target, body=body, query=query)

    def post_iceberg(self, metalake: str, *path: str, body: Any) -> None:
        """Send what the Iceberg wire answers with nothing (204)."""
        target = f"{self.url}/iceberg/{path_of([metalake])}/v1/{path_of(path)}"
        answer = self._request("POST", target, json=body)
        if answer.status_code != 204:
            self._reply(answer)

    def settings(self) -> Json:
        """The server's public settings."""
        return self._send("GET", f"{self.url}/configs")

    def pages(self, *path: str, **query: str | None) -> Iterator[Json]:
        """The replies of a list, page by page."""
        token: str | None = None
        while True:
            page = self.get(*path, **query, pageToken=token)
            yield page
            token = page.get("nextPageToken")
            if not token:
                return

    def lines(self, *path: str, **query: str | None) -> Iterator[Json]:
        """The lines of a streamed reply but for the last, which says that it is whole.

        Raises Failure also where it breaks off, with Exit.UNREACHABLE, and for an error that the server ends it with.
        """
        answer = self._request("GET", f"{self.url}/api/" + path_of(path), params=_given(query), stream=True)
        if not answer.ok:
            self._reply(answer)
        try:
            for line in answer.iter_lines(LINES_AT_ONCE):
                value = json.loads(line)
                if value == {"end": True}:
                    return
                if value.keys() == {"error"}:
                    raise Failure(f"{self.url} ended its answer: {value['error'].get('message')}")
                yield value
        except (requests.RequestException, ValueError):
            pass
        raise Failure(BROKEN.format(url=self.url), Exit.UNREACHABLE)

    def _send(
        self,
        method: str,
        target: str,
        *,
        body: Any = None,
        file: tuple[str, bytes] | None = None,
        query: Mapping[str, str | None] | None = None,
    ) -> Json:
        sent: dict[str, Any] = {"params": _given(query or {})}
        if file:
            sent |= {"headers": {"Content-Type": file[0]}, "data": file[1]}
        else:
            sent["json"] = body
        return self._reply(self._request(method, target, **sent))

    def _request(self, method: str, target: str, **sent: Any) -> requests.Response:
        try:
            # A redirection is somebody else's: what follows one would be a GET, and would show the credential.
            return self._session.request(method, target, timeout=self.timeout, allow_redirects=False, **sent)
        except requests.exceptions.SSLError as wrong:
            is_certificate = "SSLCertVerificationError" in str(wrong)  # what it wraps has no other form
            words = f"{self.url} does not speak TLS: is it http://?"
            words = f"The certificate of {self.url} is not one to trust." if is_certificate else words
            raise Failure(words, Exit.UNREACHABLE) from None
        except requests.Timeout:
            raise Failure(f"{self.url} did not answer within {self.timeout:g} s.", Exit.UNREACHABLE) from None
        except requests.ConnectionError:
            reason = "Is the server running? METALAKE_URL or --url names another."
            raise Failure(f"Nobody answers at {self.url}. {reason}", Exit.UNREACHABLE) from None
        except ValueError as wrong:  # those of requests, too, that a URL causes
            raise Failure(f"{self.url} cannot be asked: {wrong}", Exit.USAGE) from None
        except requests.RequestException:
            raise Failure(BROKEN.format(url=self.url), Exit.UNREACHABLE) from None

    def _reply(self, answer: requests.Response) -> Json:
        try:
            reply = answer.json()
        except ValueError:
            reply = None
        if not isinstance(reply, dict) or answer.is_redirect:
            raise Failure(f"{self.url} answered {answer.status_code}, and not as Metalake does. Is this its address?")
        if not answer.ok:
            refusal = reply.get("error") if isinstance(reply.get("error"), dict) else reply
            words = str(refusal.get("message") or answer.reason)  # type: ignore[union-attr]
            raise of_status(answer.status_code, words, refusal.get("type"))  # type: ignore[union-attr]
        return reply


def _given(query: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value is not None}


def _place_of(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError as wrong:
        raise Failure(f"{url} cannot be asked: {wrong}", Exit.USAGE) from None


def path_of(parts: tuple[str, ...] | list[str]) -> str:
    """A path of these parts, each encoded. Raises Failure for a part that would make it the path of something else."""
    for part in parts:
        if part in ("", ".", ".."):  # also encoded, servers and libraries take the last two for folders
            raise Failure(f"'{part}' is no name.", Exit.USAGE)
    try:
        return "/".join(quote(part, safe="") for part in parts)
    except UnicodeEncodeError:
        raise Failure("A name holds bytes that are no UTF-8.", Exit.USAGE) from None
