"""What every command has: who asks which server for which metalake, and how to print."""

from __future__ import annotations

import getpass
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from metalake_client.cli.output import Format
from metalake_client.failures import Exit, Failure
from metalake_client.profiles import Credential, Profile, credential_of

if TYPE_CHECKING:
    from metalake_client.rest import Client


@dataclass
class Session:
    """One run of `gcli`."""

    profile: Profile
    output: Format = Format.TABLE
    may_ask: bool = True

    @property
    def metalake(self) -> str:
        if not self.profile.metalake:
            raise Failure("Which metalake? Give --metalake, or set METALAKE_METALAKE or a profile.", Exit.USAGE)
        return self.profile.metalake

    @cached_property
    def client(self) -> Client:
        from metalake_client.rest import Client  # only here, since --help has no use for it

        credential = credential_of(self.profile)
        if not credential.token and not credential.password and self.profile.user:
            credential = self._prompted()
        return Client(self.profile.url, user=self.profile.user, password=credential.password, token=credential.token)

    def _prompted(self) -> Credential:
        if not self.may_ask or not sys.stdin.isatty():
            hint = "Set METALAKE_TOKEN or METALAKE_PASSWORD."
            raise Failure(f"There is no password for {self.profile.user} at {self.profile.url}. {hint}", Exit.REFUSED)
        return Credential(password=getpass.getpass(f"Password of {self.profile.user} at {self.profile.url}: "))

    def confirm(self, question: str, yes: bool) -> None:
        """Ask before something is lost. Raises Failure for a no, and where nobody can be asked."""
        if yes:
            return
        if not sys.stdin.isatty() or os.environ.get("CI"):
            raise Failure(f"{question} Nobody can be asked here; --yes says that it is meant.", Exit.USAGE)
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Failure("Nothing was changed.", Exit.USAGE)
