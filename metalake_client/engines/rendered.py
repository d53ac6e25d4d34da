"""The rendered settings of an engine: files, and notes for their users."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from metalake_client.engines.catalogs import MASK, EngineCatalog
from metalake_client.failures import Exit, Failure

Settings = dict[str, str]

TOKEN = "METALAKE_TOKEN"  # noqa: S105 (the name of a variable)
"""The environment variable with the token that an engine sends to Metalake."""

# What some engine replaces in a value: Trino ${ENV:NAME}, Hadoop ${env.NAME}, Iceberg env:NAME.
_REPLACED = re.compile(r"\$\{|^\s*env:", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Refusal(Exception):
    """An engine cannot have a catalog; the message is a sentence that says why, and what to do."""


@dataclass(frozen=True)
class Rendered:
    """`files`: texts by names relative to one folder, each with `mark` in its first line.

    `notes` are sentences: what is not there and why, whose rights hold, which variables are needed. `refused` says, by
    catalog, why there is nothing of it in the files.
    """

    mark: str
    files: Mapping[str, str]
    notes: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one catalog of the metalake is in an engine: its settings by the engine's own names of catalogs.

    `files` are what those settings refer to, without the first line that says whose they are.
    """

    catalog: EngineCatalog
    settings: Mapping[str, Settings]
    notes: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parts:
    """All catalogs of a metalake in an engine."""

    parts: tuple[Part, ...]
    refused: Mapping[str, str]

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{part.catalog.name}: {note}" for part in self.parts for note in part.notes)

    def in_sql(self) -> list[str]:
        """The notes, and what was left out and why, as SQL comments that end no statement."""
        lines = [*self.notes, *(f"Left out: {why}" for why in self.refused.values())]
        return [f"-- {' '.join(line.replace(';', ',').split())}" for line in lines]


def parts_of(
    engine: str,
    catalogs: Iterable[EngineCatalog],
    providers: Mapping[str, Callable[[EngineCatalog], Part]],
    fold: Callable[[str], str] = str,
) -> Parts:
    """Each catalog by its provider's line; `fold` gives the name under which the engine compares names.

    Raises Failure where the engine would take two of the names for one, naming both.
    """
    parts, refused = [], {}
    for catalog in catalogs:
        try:
            parts.append(_part(engine, catalog, providers))
        except Refusal as why:
            refused[catalog.name] = str(why)
    _require_different(engine, parts, fold)
    _require_own_variables(parts)
    return Parts(tuple(parts), refused)


def _part(engine: str, catalog: EngineCatalog, providers: Mapping[str, Callable[[EngineCatalog], Part]]) -> Part:
    if not catalog.is_enabled:
        raise Refusal(f"Catalog {catalog.name} is disabled; its owner enables it (gcli catalog enable).")
    declared = providers.get(catalog.provider) if catalog.type == "relational" else None
    if declared is None:
        what = catalog.provider or catalog.type
        raise Refusal(f"Catalog {catalog.name} is of the provider {what}, for which {engine} has no support here.")
    return declared(catalog)


def _require_different(engine: str, parts: Iterable[Part], fold: Callable[[str], str]) -> None:
    owners: dict[str, str] = {}
    for part in parts:
        for name in part.settings:
            other = owners.setdefault(fold(name), part.catalog.name)
            if other != part.catalog.name:
                raise Failure(
                    f"Catalogs {other} and {part.catalog.name} would both be {fold(name)} in {engine}: "
                    "rename one, or name those that are wanted by --catalog.",
                    Exit.CONFLICT,
                )


def _require_own_variables(parts: Iterable[Part]) -> None:
    owners: dict[str, str] = {}
    for part in parts:
        for key in part.catalog.masked:
            variable = variable_of(part.catalog, key)
            other = owners.setdefault(variable, part.catalog.name)
            if other != part.catalog.name:
                raise Failure(
                    f"Catalogs {other} and {part.catalog.name} would both take their {key} from {variable}: "
                    "rename one, or name those that are wanted by --catalog.",
                    Exit.CONFLICT,
                )


def mark_of(engine: str, url: str, metalake: str) -> str:
    """The beginning of the first line of a file that is ours, after the sign of a comment.

    Raises Failure for a URL with a password in it.
    """
    if urlsplit(url).username or urlsplit(url).password:
        raise Failure("The server's URL must hold no user or password: it would stand in files.", Exit.USAGE)
    return _in_comment(f"Written by gcli engine config {engine} for metalake {metalake} at {url.rstrip('/')} (")


def mark_with(mark: str, catalog: str = "") -> str:
    """The whole first line; with the catalog where the file is of one."""
    return f"{mark}{mark_of_catalog(catalog) if catalog else 'all)'}: it is replaced, so do not edit it."


def mark_of_catalog(catalog: str) -> str:
    """What follows the mark in the first line of a file that is of one catalog."""
    return _in_comment(f"catalog {catalog})")


def _in_comment(text: str) -> str:
    """XML allows no two hyphens in a comment."""
    return text.replace("--", "- -")


def value_of(catalog: EngineCatalog, key: str) -> str:
    """A property's value, empty where there is none. Raises Refusal for one in which an engine would replace a part."""
    value = catalog.properties.get(key, "").strip()
    if value == MASK:
        raise Refusal(f"Catalog {catalog.name}: the server masks {key}, which has to be plain.")
    if _REPLACED.search(value) or _CONTROL.search(value):
        raise Refusal(
            f"Catalog {catalog.name}: {key} has a sign that engines replace by something else ('${{', 'env:' or a "
            "control character); its owner has to change it."
        )
    return value


def is_masked(catalog: EngineCatalog, key: str) -> bool:
    return catalog.properties.get(key) == MASK


def variable_of(catalog: EngineCatalog, key: str) -> str:
    """The environment variable from which an engine takes a property that the server masks."""
    return re.sub("[^A-Z0-9]+", "_", f"METALAKE_{catalog.name}_{key}".upper())


def needs(variables: Collection[str]) -> tuple[str, ...]:
    """The note that tells which variables hold what the server keeps to itself."""
    if not variables:
        return ()
    return (f"the server gives no secrets away: set {', '.join(sorted(variables))} where the engine runs.",)
