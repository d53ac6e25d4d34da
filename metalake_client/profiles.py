"""Where a client finds its server, metalake and credential: options, then the environment, then a profile's file.

A file holds no secrets. They come from the environment, the system's keyring or a prompt, and never from an argument,
which every user of the machine can read.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from metalake_client.failures import Exit, Failure

DEFAULT_URL = "http://127.0.0.1:8090"
KEYRING = "metalake"  # the service under which passwords and tokens are kept
_CURRENT = "current"


@dataclass(frozen=True)
class Profile:
    """A server, a metalake of it, and a user; each may be empty."""

    url: str = ""
    metalake: str = ""
    user: str = ""

    def over(self, other: Profile) -> Profile:
        """This one, with what it lacks from the other."""
        return Profile(*(getattr(self, each.name) or getattr(other, each.name) for each in fields(Profile)))


@dataclass(frozen=True)
class Credential:
    """A token, or a password of the profile's user."""

    token: str = ""
    password: str = ""


def path_of_file() -> Path:
    if given := os.environ.get("METALAKE_PROFILES"):
        return Path(given)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "metalake" / "profiles.toml"


def stored() -> tuple[dict[str, Profile], str]:
    """The profiles of the file by name, and the name of the current one. Raises Failure for a file that is none."""
    path = path_of_file()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as wrong:
        raise Failure(f"{path} cannot be read as a file of profiles: {wrong}", Exit.USAGE) from None
    known = {each.name for each in fields(Profile)}
    profiles = {}
    for name, given in content.items():
        if name == _CURRENT:
            continue
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise Failure(f"{path}: [{name}] may hold {', '.join(sorted(known))}, each a text.", Exit.USAGE)
        if strange := set(given) - known:
            raise Failure(f"{path}: [{name}] holds {strange.pop()}, which is no part of a profile.", Exit.USAGE)
        profiles[name] = Profile(**given)
    return profiles, str(content.get(_CURRENT, ""))


def store(profiles: Mapping[str, Profile], current: str) -> None:
    """Write the file, whole or not at all."""
    path = path_of_file()
    lines = [f"{_CURRENT} = {_text(current)}"] if current else []
    for name, profile in sorted(profiles.items()):
        lines.append(f"\n[{_text(name)}]")
        lines += [f"{each.name} = {_text(value)}" for each in fields(profile) if (value := getattr(profile, each.name))]
    written = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        written.write_text("\n".join(lines) + "\n", encoding="utf-8")
        written.replace(path)
    except (OSError, UnicodeEncodeError) as refused:
        with suppress(OSError):
            written.unlink()
        reason = getattr(refused, "strerror", None) or "a name holds bytes that are no UTF-8"
        raise Failure(f"{path} cannot be written: {reason}.", Exit.USAGE) from None


def _text(value: str) -> str:
    """A basic string of TOML."""
    escaped = "".join(f"\\u{ord(sign):04x}" if ord(sign) < 32 or sign in '"\\\x7f' else sign for sign in value)
    return f'"{escaped}"'


def chosen(given: Profile, name: str = "") -> Profile:
    """What the options give, over the environment, over the named profile or the current one."""
    environment = Profile(*(os.environ.get(f"METALAKE_{each.name.upper()}", "") for each in fields(Profile)))
    known, current = stored()
    name = name or os.environ.get("METALAKE_PROFILE", "") or current
    if name and name not in known:
        others = f"There are {', '.join(sorted(known))}." if known else "There are none."
        raise Failure(f"There is no profile {name} in {path_of_file()}. {others}", Exit.USAGE)
    whole = given.over(environment).over(known.get(name, Profile()))
    return replace(whole, url=whole.url or DEFAULT_URL)


def credential_of(profile: Profile) -> Credential:
    """From the environment or the keyring; empty where neither has one."""
    if token := os.environ.get("METALAKE_TOKEN"):
        return Credential(token=token)
    if profile.user and (password := os.environ.get("METALAKE_PASSWORD")):
        return Credential(password=password)
    keyring = _keyring()
    if keyring is None:
        return Credential()
    if token := _ask(keyring, _entry(profile, "token")):
        return Credential(token=token)
    if profile.user and (password := _ask(keyring, _entry(profile, "password"))):
        return Credential(password=password)
    return Credential()


def keep(profile: Profile, what: str, secret: str) -> None:
    """Store a "token" or a "password" in the keyring. Raises Failure if there is no keyring."""
    keyring = _keyring()
    if keyring is None:
        hint = "Install it (pip install keyring), or set METALAKE_TOKEN."
        raise Failure(f"The library keyring is not installed. {hint}", Exit.USAGE)
    try:
        keyring.set_password(KEYRING, _entry(profile, what), secret)
    except Exception as refused:  # backends without a keyring raise various exceptions
        raise Failure(f"The system's keyring keeps nothing: {type(refused).__name__}.", Exit.USAGE) from None


def forget(profile: Profile) -> None:
    """Delete a profile's secrets from the keyring, if any."""
    if keyring := _keyring():
        for what in ("token", "password"):
            with suppress(Exception):  # also for what is not there
                keyring.delete_password(KEYRING, _entry(profile, what))


def _entry(profile: Profile, what: str) -> str:
    """The name of a secret in the keyring: tokens are those of a server, passwords those of a user."""
    return f"{profile.url} {profile.user if what == 'password' else 'token'}"


def _keyring() -> Any:
    """The system's keyring, if its library is installed."""
    try:
        import keyring  # type: ignore[import-not-found]
    except ImportError:
        return None
    return keyring


def _ask(keyring: Any, name: str) -> str:
    try:
        return keyring.get_password(KEYRING, name) or ""
    except Exception:  # backends without a keyring raise various exceptions
        return ""
