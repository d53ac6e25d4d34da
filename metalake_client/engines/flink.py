"""The catalogs of a metalake as Flink's SQL: one file of CREATE CATALOG (docs/engines/flink.md).

Iceberg's connector of Flink has one level of databases, so each schema that holds others is a catalog of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from xml.sax.saxutils import escape

from metalake_client.engines import rendered
from metalake_client.engines.catalogs import EngineCatalog, iceberg_uri
from metalake_client.engines.formats import shown_formats
from metalake_client.engines.quoting import backquoted, text
from metalake_client.engines.rendered import (
    TOKEN,
    Part,
    Refusal,
    Rendered,
    Settings,
    is_masked,
    value_of,
    variable_of,
)
from metalake_client.engines.spark_storage import PROPERTIES
from metalake_client.engines.storage import storage_of
from metalake_client.engines.trino import ICEBERG_ONLY
from metalake_client.failures import Exit, Failure

FILE = "metalake.sql"
LONGEST = 256  # characters of a name
RESERVED = frozenset({"default_catalog"})
DEFAULT_VERSION = "2.1"
WITHOUT_HIVE = 2  # from this major version on there is no connector for Hive

OURS = "Metalake's rights of the token's user hold; Flink opens the files with its own access to the storage."

Path = tuple[str, ...]
Way = Callable[[EngineCatalog, "Asked"], Part]


class Asked:
    """Whose metalake, for which Flink, which schemas hold others, and where the files will lie."""

    def __init__(self, uri: str, folder: str, version: str, parents: Mapping[str, Iterable[Sequence[str]]]) -> None:
        self.uri, self.folder, self.version = uri, folder.rstrip("/"), version
        if not re.fullmatch(r"\d+(\.\d+)+", version):
            raise Failure(f"Flink {version} is no version: {DEFAULT_VERSION} and 1.20 are.", Exit.USAGE)
        self.has_hive = int(version.partition(".")[0]) < WITHOUT_HIVE
        self.parents = {name: sorted({tuple(path) for path in paths}) for name, paths in parents.items()}


def render(
    url: str,
    metalake: str,
    catalogs: Iterable[EngineCatalog],
    *,
    parents: Mapping[str, Iterable[Sequence[str]]] | None = None,
    folder: str = ".",
    version: str = DEFAULT_VERSION,
) -> Rendered:
    """One file of SQL; for Flink 1, a folder with hive-site.xml for each Hive catalog.

    `parents` has, by catalog, the paths of the schemas that hold others (schemas.parents_of), each a list of levels.
    `folder` is the path of the folder of these files where Flink runs. Raises Failure for catalogs that would be one,
    and for a `version` that is none.
    """
    mark = rendered.mark_of("flink", url, metalake)
    asked = Asked(iceberg_uri(url, metalake), folder, version, parents or {})
    providers = {name: partial(_checked, way, asked) for name, way in PROVIDERS.items()}
    parts = rendered.parts_of("Flink", catalogs, providers)
    statements = [_create(name, options) for part in parts.parts for name, options in part.settings.items()]
    files = {FILE: "\n".join([f"-- {rendered.mark_with(mark)}", *parts.in_sql(), *statements, ""])}
    for part in parts.parts:
        first = f"<!-- {rendered.mark_with(mark, part.catalog.name)} -->\n"
        files |= {name: first + text for name, text in part.files.items()}
    return Rendered(mark, files, parts.notes, parts.refused)


def _checked(way: Way, asked: Asked, catalog: EngineCatalog) -> Part:
    if catalog.name in RESERVED:
        raise Refusal(f"Catalog {catalog.name} cannot be in Flink, which has one of that name from the start.")
    return way(catalog, asked)


def name_of(catalog: str, parent: Sequence[str] = ()) -> str:
    """The name of Flink's catalog for a schema or the top level. Raises Refusal if Flink cannot spell it."""
    if odd := next((level for level in parent if "." in level), None):
        raise Refusal(
            f"What lies in {odd!r} of {catalog} is not there: Flink writes a path of schemas with dots, and the name "
            "of this one has a dot in it."
        )
    name = ".".join((catalog, *parent))
    if len(name) > LONGEST:
        raise Refusal(
            f"What lies in {'.'.join(parent)} of {catalog} is not there: names of Flink have {LONGEST} signs."
        )
    return name


# -- The ways of the providers


def _iceberg(catalog: EngineCatalog, asked: Asked) -> Part:
    """Metalake's Iceberg wire."""
    return _through_rest(catalog, asked, catalog.name, (OURS,))


def _glue(catalog: EngineCatalog, asked: Asked) -> Part:
    """Its Iceberg tables, through Metalake."""
    if not shown_formats(catalog) & {"all", "iceberg"}:
        raise Refusal(
            f"Catalog {catalog.name} is not in Flink, which has no catalog of AWS Glue but for Iceberg tables."
        )
    only = "only its Iceberg tables are there: Flink has no catalog of AWS Glue for others."
    return _through_rest(catalog, asked, catalog.name, (OURS, only))


def _hive(catalog: EngineCatalog, asked: Asked) -> Part:
    """All but Iceberg tables through Flink's Hive catalog, where there is one; those through Metalake."""
    has_iceberg, name = value_of(catalog, "list-all-tables") != "false", catalog.name + ICEBERG_ONLY
    there = f"its Iceberg tables are in {name}, with Metalake's rights."
    if not asked.has_hive:
        why = f"Flink {asked.version} has no connector for Hive; --flink-version 1.20 is for one that has"
        if not has_iceberg:
            raise Refusal(f"Catalog {catalog.name} is not there: {why}.")
        return _through_rest(catalog, asked, name, (f"its Hive tables are left out: {why}.", there))
    site = f"{catalog.name.replace('/', '_')}/hive-site.xml"
    conf = f"{asked.folder}/{site.rpartition('/')[0]}"
    notes = (
        "Flink asks the metastore and the storage itself: only their own rights hold.",
        f"Flink needs its connector for Hive, and {conf} on the machines where it runs.",
    )
    hive = {catalog.name: {"type": "hive", "hive-conf-dir": conf}}
    files = {site: _hive_site(value_of(catalog, "metastore.uris"))}
    if not has_iceberg:
        return Part(catalog=catalog, settings=hive, notes=notes, files=files)
    iceberg = _through_rest(catalog, asked, name, (there,))
    return Part(catalog=catalog, settings={**hive, **iceberg.settings}, notes=(*notes, *iceberg.notes), files=files)


PROVIDERS: Mapping[str, Way] = {"lakehouse-iceberg": _iceberg, "glue": _glue, "hive": _hive}


# -- Their parts


def _through_rest(catalog: EngineCatalog, asked: Asked, name: str, notes: tuple[str, ...]) -> Part:
    """A catalog of this name, and one for each schema that holds others."""
    storage, variables = _storage(catalog)
    options = {
        "type": "iceberg",
        "catalog-type": "rest",
        "uri": asked.uri,
        "warehouse": catalog.name,
        "token": from_environment(TOKEN),
        **storage,
    }
    settings, sentences = {name: options}, list(notes)
    for parent in asked.parents.get(catalog.name, ()):
        try:
            settings[name_of(name, parent)] = options | {"base-namespace": ".".join(parent)}
        except Refusal as why:
            sentences.append(str(why))
    return Part(catalog=catalog, settings=settings, notes=(*sentences, *rendered.needs(variables)))


def _storage(catalog: EngineCatalog) -> tuple[Settings, set[str]]:
    """Iceberg's settings of where the files lie, and the variables that they refer to."""
    settings, variables = dict[str, str](), set[str]()
    for key, iceberg in PROPERTIES.items():
        if is_masked(catalog, key):
            variables.add(variable := variable_of(catalog, key))
            settings[iceberg] = from_environment(variable)
        elif value := value_of(catalog, key):
            settings[iceberg] = value
    if storage_of(catalog).s3.path_style:
        settings["s3.path-style-access"] = "true"
    return settings, variables


def from_environment(variable: str) -> str:
    """The reference to a variable of the environment that Iceberg's REST catalog resolves by itself."""
    return f"env:{variable}"


def _hive_site(uris: str) -> str:
    name = "<name>hive.metastore.uris</name>"
    value = f"<value>{escape(','.join(uri.strip() for uri in uris.split(',')))}</value>"
    return f"<configuration>\n  <property>{name}{value}</property>\n</configuration>\n"


def _create(name: str, options: Settings) -> str:
    given = ",\n  ".join(f"{text(key)} = {text(value)}" for key, value in options.items())
    return f"CREATE CATALOG IF NOT EXISTS {backquoted(name)} WITH (\n  {given}\n);"
