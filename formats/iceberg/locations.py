"""Table locations: normalisation for comparing them, and the check against allowed places.

A location is stored and returned as sent, and never decoded: storages read a percent sign literally, so what we check
is what they open. The rules prevent published attacks on catalogs: a location that escapes its prefix (`..`, `//`, `t1`
against `t10`), one that is pasted into a storage policy (`*`, `$`, quotes), one that a later reader decodes again.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from metalake.errors import Invalid
from metalake.protected_files import is_protected, meets_protected

MAX_LENGTH = 2_048

# Hadoop's own spellings of one storage; a claim on one is a claim on all.
SAME_STORAGE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss"}
BUCKETS = {"s3", "s3a", "s3n", "gs", "gcs", "oss"}
AZURE = {"abfs", "abfss", "wasb", "wasbs"}
CLUSTERS = {"hdfs", "viewfs"}
SCHEMES = {"file"} | BUCKETS | AZURE | CLUSTERS


SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?::[0-9]{1,5})?")
AZURE_AUTHORITY = re.compile(r"(?:[a-z0-9-]+@)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
POLICY_CHARACTERS = frozenset("*?$\"'{}`\\[]<>|;#")
ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


class Location(NamedTuple):
    """A parsed location, to be compared segment by segment."""

    scheme: str
    authority: str
    segments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}" + "".join(f"/{segment}" for segment in self.segments)

    def holds(self, other: Location) -> bool:
        same_root = self.scheme == other.scheme and self.authority == other.authority
        return same_root and other.segments[: len(self.segments)] == self.segments


def normalise(location: str) -> str:
    """The normal form of a location: lower-case scheme, `file:///` for local paths, no trailing slash.

    Raises Invalid, naming what is wrong, for anything a storage, an engine or a policy could read differently.
    """
    place = _parse(location)
    for segment in place.segments:
        _check_segment(segment, location)
    if place.scheme == "file" and not place.segments:
        raise _invalid(location, "it is the root of the file system")
    return str(place)


def canonical(location: str) -> str:
    """The form for claims, so that a place is claimed only once: `normalise`, and one scheme per storage.

    Raises Invalid.
    """
    return str(_same_storage(_parse(normalise(location))))


def is_under(location: str, prefix: str) -> bool:
    """Whether `location` is `prefix` or below it, segment by segment. Raises Invalid for a malformed one.

    Also accepts data files, whose partition values may have characters that `normalise` refuses.
    """
    return _same_storage(_parse(prefix)).holds(_same_storage(_parse(location)))


def is_inside(location: str, prefix: str) -> bool:
    """Whether `location` is strictly below `prefix`. Raises Invalid for a malformed one."""
    return is_under(location, prefix) and not is_under(prefix, location)


def steps_below(location: str, folder: str) -> tuple[str, ...]:
    """The segments of a location below a folder that contains it. Raises Invalid for a malformed one."""
    return _parse(location).segments[len(_parse(folder).segments) :]


def are_one(location: str, other: str) -> bool:
    """Whether both locations are the same place; a malformed location equals nothing."""
    try:
        return canonical(location) == canonical(other)
    except Invalid:
        return False


def overlap(location: str, other: str, *, within: bool = True) -> bool:
    """Whether one location contains the other; with `within` false, only whether `location` contains `other`.

    A malformed location overlaps nothing.
    """
    try:
        return is_under(other, location) or (within and is_under(location, other))
    except Invalid:
        return False


def may_meet(location: str, other: str) -> bool:
    """Whether one location contains the other, as spelled or with the symbolic links of this machine followed."""
    return overlap(location, other) or overlap(real_path(location), real_path(other))


def with_scheme(location: str) -> str:
    """The location as sent, but a bare path gets `file://`: engines may read it as a path of another storage."""
    return f"file://{location}" if location.startswith("/") else location


def check_allowed(location: str, allowed: Sequence[str], *, file_roots: Sequence[str]) -> str:
    """Return the location as sent, with a scheme; raise Invalid unless it is under one of `allowed`.

    A `file:` location must, with symbolic links followed, also be under one of `file_roots`, and must neither contain
    nor be part of this server's own data.
    """
    spelled = normalise(location)
    if spelled.startswith("file:"):
        _check_local(spelled, allowed, file_roots)
    elif not any(is_under(spelled, prefix) for prefix in allowed):
        raise _invalid(location, "it is not under a location this catalog allows")
    return with_scheme(location)


def _parse(location: str) -> Location:
    """Parse a location. Raises Invalid for text that could be split in more than one way."""
    if not isinstance(location, str) or not location:
        raise Invalid("A location must be text such as s3://bucket/folder", kind="location")
    if len(location.encode("utf-8", "surrogatepass")) > MAX_LENGTH:
        raise Invalid(f"A location is over {MAX_LENGTH} bytes long", kind="location")
    if not location.isprintable():
        raise _invalid(location, "it holds a control character, an invisible one or an unusual space")
    if "\\" in location:
        raise _invalid(location, "it holds a backslash")
    if "?" in location or "#" in location:
        raise _invalid(location, "it holds a query or a fragment")
    scheme, authority, path = _split_scheme(location)
    _check_authority(scheme, authority, location)
    return Location(scheme, authority, _split_path(path, location))


def _split_scheme(location: str) -> tuple[str, str, str]:
    if location.startswith("/"):
        scheme, rest = "file", location
    elif match := SCHEME.fullmatch(location):
        scheme, rest = match[1].lower(), match[2]
    else:
        raise _invalid(location, "it has no scheme and is not an absolute path")
    if scheme not in SCHEMES:
        raise _invalid(location, f"the scheme {scheme} is not one of {', '.join(sorted(SCHEMES))}")
    if location.startswith("/") or (scheme == "file" and not rest.startswith("//")):
        return scheme, "", rest
    if not rest.startswith("//"):
        raise _invalid(location, f"{scheme}: must be followed by //")
    authority, slash, path = rest[2:].partition("/")
    return scheme, authority, slash + path


def _check_authority(scheme: str, authority: str, location: str) -> None:
    if scheme == "file":
        if authority:
            raise _invalid(location, "a file has no host; write file:///folder")
    elif scheme in AZURE:
        # container@account is how Azure names a container: there is no password in it.
        if not AZURE_AUTHORITY.fullmatch(authority):
            raise _invalid(location, "its container or account is not a lower-case name")
    elif "@" in authority:
        raise _invalid(location, "it holds user information")
    elif scheme in BUCKETS:
        if not BUCKET.fullmatch(authority):
            raise _invalid(location, "its bucket is not a lower-case bucket name")
    elif authority and not HOST.fullmatch(authority):
        raise _invalid(location, "its host is not a host name")
    if ".." in authority:
        raise _invalid(location, "its bucket or host holds two dots in a row")


def _split_path(path: str, location: str) -> tuple[str, ...]:
    if path and not path.startswith("/"):
        raise _invalid(location, "its path is not absolute")
    path = path[1:].removesuffix("/") if len(path) > 2 else path[1:]
    segments = tuple(path.split("/")) if path else ()
    if "" in segments:
        raise _invalid(location, "it holds an empty segment (//)")
    if "." in segments or ".." in segments:
        raise _invalid(location, "it holds a . or .. segment")
    return segments


def _check_segment(segment: str, location: str) -> None:
    if forbidden := POLICY_CHARACTERS.intersection(segment):
        raise _invalid(location, f"it holds {min(forbidden)}")
    if segment != segment.strip():
        raise _invalid(location, "a segment begins or ends with a space")
    if not unicodedata.is_normalized("NFKC", segment):
        raise _invalid(location, "a character has a second spelling (it is not in Unicode NFKC form)")
    if "%" in segment:
        _check_escapes(segment, location)


def _check_escapes(segment: str, location: str) -> None:
    """Refuse percent escapes that change their meaning when a reader decodes them, once or repeatedly."""
    if segment.count("%") != len(ESCAPE.findall(segment)):
        raise _invalid(location, "a percent sign is not followed by two hexadecimal digits")
    for digits in ESCAPE.findall(segment):
        character = chr(int(digits, 16))
        if character == "%":
            raise _invalid(location, "it is percent-encoded twice (%25)")
        if UNRESERVED.fullmatch(character):
            raise _invalid(location, f"%{digits} stands for {character}, which must be written as itself")
        if character == "/" or character in POLICY_CHARACTERS or ord(character) < 0x20 or ord(character) == 0x7F:
            raise _invalid(location, f"it hides a separator, a control or a policy character as %{digits}")


def _same_storage(place: Location) -> Location:
    if place.scheme in AZURE:
        return place._replace(scheme="abfss", authority=place.authority.replace(".blob.", ".dfs.", 1))
    authority = place.authority.lower() if place.scheme in CLUSTERS else place.authority
    return place._replace(scheme=SAME_STORAGE.get(place.scheme, place.scheme), authority=authority)


def is_allowed(location: str, allowed: Sequence[str], file_roots: Sequence[str]) -> bool:
    """Whether `check_allowed` accepts the location."""
    try:
        check_allowed(location, allowed, file_roots=file_roots)
    except Invalid:
        return False
    return True


def _check_local(location: str, allowed: Sequence[str], file_roots: Sequence[str]) -> None:
    real = real_path(location)
    if not any(is_under(real, real_path(root)) for root in file_roots):
        raise _invalid(location, "local files are not allowed there on this server")
    if meets_protected(real):  # only after the roots, so that errors do not reveal where the server's data is
        raise _invalid(location, "it holds the server's own data; choose another folder")
    if not any(is_under(real, real_path(prefix)) for prefix in allowed):
        raise _invalid(location, "it is not under a location this catalog allows")


def require_deletable(location: str) -> None:
    """Raise Invalid for a file of the server's own data, which no caller may delete."""
    real = real_path(location)
    if real.startswith("/") and is_protected(real):
        raise _invalid(location, "it is the server's own and is never deleted")


def is_local(location: str) -> bool:
    """Whether a location is a file of this machine, in any spelling."""
    return location.startswith("/") or location[:5].lower() == "file:"


def named_path(location: str) -> str:
    """The path of a local location, without following symbolic links."""
    return "/" + "/".join(_parse(location).segments)


def real_path(location: str) -> str:
    """The path of a local location with symbolic links followed; other locations unchanged."""
    place = _parse(location)
    return os.path.realpath("/" + "/".join(place.segments)) if place.scheme == "file" else location


def _invalid(location: str, reason: str) -> Invalid:
    # Text before an @ or after a ? may be a credential, so it is left out of the message.
    redacted = re.split(r"[?#]", re.sub(r"//.*@", "//...@", location, flags=re.DOTALL))[0][:200]
    return Invalid(f"Location {redacted!r} is not usable: {reason}", kind="location")
