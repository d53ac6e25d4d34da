"""The context of every command: caller, server, metalake, and output."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from metalake_client.cli import compatibility
from metalake_client.cli.output import Format, Row, print_done
from metalake_client.failures import Exit, Failure
from metalake_client.profiles import Credential, Profile, credential_of

if TYPE_CHECKING:
    from metalake_client.rest import Client

PAGE = 1000  # as many as the server gives at once


@dataclass
class Session:
    """One run of `gcli`."""

    profile: Profile
    output: Format = Format.TABLE
    may_ask: bool = True
    names_user: bool = False  # on the command line

    @property
    def metalake(self) -> str:
        if not self.profile.metalake:
            raise Failure("Which metalake? Give --metalake, or set METALAKE_METALAKE or a profile.", Exit.USAGE)
        return self.profile.metalake

    @cached_property
    def client(self) -> Client:
        credential = credential_of(self.profile)
        if credential.token and self.names_user and self.may_ask:
            print_done(f"--user {self.profile.user} is ignored: there is a token, and that says who asks.")
        if not credential.token and not credential.password and self.profile.user:
            credential = self._prompted()
        return self._client(user=self.profile.user, password=credential.password, token=credential.token)

    @cached_property
    def anonymous(self) -> Client:
        """For what needs no credential, and should not ask for one."""
        return self._client()

    @property
    def has_credential(self) -> bool:
        """Whether one is there without asking for it."""
        known = credential_of(self.profile)
        return bool(known.token or known.password)

    def _client(self, *, user: str = "", password: str = "", token: str = "") -> Client:
        from metalake_client.rest import Client  # only here, since --help has no use for it

        return Client(self.profile.url, user=user, password=password, token=token)

    def use(self, credential: Credential) -> None:
        """Ask with this one from now on."""
        self.client = self._client(user=self.profile.user, password=credential.password, token=credential.token)

    def _prompted(self) -> Credential:
        if not self.may_ask or not sys.stdin.isatty():
            hint = "Set METALAKE_TOKEN or METALAKE_PASSWORD."
            raise Failure(f"There is no password for {self.profile.user} at {self.profile.url}. {hint}", Exit.REFUSED)
        return Credential(password=prompted(f"Password of {self.profile.user} at {self.profile.url}"))

    @cached_property
    def separator(self) -> str:
        """What divides the levels of a schema's name on this server."""
        return str(self.anonymous.settings().get("gravitino.schema.separator", ":"))

    def rows(self, key: str, *path: str, limit: int | None = None, **query: str | None) -> list[Row]:
        """What a list holds below `key`, page after page, and no page beyond `limit`."""
        size = str(min(limit or PAGE, PAGE))
        rows = list[Row]()
        for page in self.client.pages("metalakes", self.metalake, *path, limit=size, **query):
            rows += page[key]
            if limit and len(rows) >= limit:
                break
        return rows[:limit]

    def confirm(self, question: str, yes: bool) -> None:
        """Ask for confirmation before data is lost. Raises Failure for a no, and without a terminal."""
        if yes:
            return
        if not sys.stdin.isatty() or os.environ.get("CI"):
            raise Failure(f"{question} Nobody can be asked here; --yes says that it is meant.", Exit.USAGE)
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Failure("Nothing was changed.", Exit.USAGE)

    def explained(self, wrong: Failure | KeyError) -> Failure:
        """The failure, with what to do, and with the versions of both sides where they may be why."""
        if isinstance(wrong, Failure) and (hint := self._hint(wrong)):
            return Failure(f"{wrong} {hint}", wrong.exit_code, status=wrong.status, kind=wrong.kind)
        return compatibility.explained(wrong, lambda: self.anonymous.get("version"))

    def _hint(self, failure: Failure) -> str:
        if failure.status == 401:
            known = credential_of(self.profile)
            if known.token:
                return "gcli token create makes another, which METALAKE_TOKEN takes."
            return "METALAKE_USER and METALAKE_PASSWORD say who asks, or METALAKE_TOKEN does."
        return "gcli metalake list shows those that are yours." if failure.kind == "NoSuchMetalakeException" else ""


def prompted(what: str) -> str:
    """A secret, typed without echo. Raises Failure if none is typed."""
    import getpass

    try:
        return getpass.getpass(f"{what}: ")
    except EOFError:
        raise Failure(f"No {what.lower()} was typed.", Exit.USAGE) from None
