"""The catalogs of a metalake as Trino's catalog files, etc/catalog/*.properties (docs/engines/trino.md).

Keys are those of Trino's documentation: connectors Iceberg, Hive, Lakehouse, PostgreSQL, MySQL and MariaDB,
"Metastores", "Object storage".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from metalake_client.engines import rendered
from metalake_client.engines.catalogs import EngineCatalog, iceberg_uri
from metalake_client.engines.databases import OWN_RIGHTS, PASSWORD, database_of
from metalake_client.engines.formats import shown_formats
from metalake_client.engines.rendered import TOKEN, Part, Refusal, Rendered, Settings, is_masked, value_of, variable_of
from metalake_client.engines.storage import Kind, Storage, storage_of
from metalake_client.failures import Exit, Failure

OLDEST, RAN = 435, 476
SWITCHED = 458  # from here on no file system is there that is not switched on
NESTED = 463  # from here on the REST catalog has nested namespaces
LAKEHOUSE = 477  # from here on there is the Lakehouse connector
RENAMED = 482  # fs.native-s3.enabled became fs.s3.enabled, and so the others
AUTH_TYPE = 483  # s3.iam-role asks for s3.auth-type
RESERVED = frozenset({"system"})

OURS = "Metalake's rights of the token's user hold; Trino opens the files with its own access to the storage."
ICEBERG_ONLY = "_iceberg"
"""What follows the name of a Hive or Glue catalog where only its Iceberg tables are, through Metalake."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Whose metalake, and for which Trino."""

    uri: str
    version: int


def render(url: str, metalake: str, catalogs: Iterable[EngineCatalog], *, version: int = RAN) -> Rendered:
    """A file for each catalog of Trino; some catalogs of the metalake are two there.

    Raises Failure for a Trino that is too old, and for catalogs that Trino would take for one.
    """
    if version < OLDEST:
        raise Failure(f"Trino {version} is too old: {OLDEST} is the oldest that is known here.", Exit.USAGE)
    mark = rendered.mark_of("trino", url, metalake)
    asked = Asked(uri=iceberg_uri(url, metalake), version=version)
    providers = {name: partial(_named, way, asked) for name, way in PROVIDERS.items()}
    parts = rendered.parts_of("Trino", catalogs, providers)
    files = {
        f"{name}.properties": _file(rendered.mark_with(mark, part.catalog.name), settings)
        for part in parts.parts
        for name, settings in part.settings.items()
    }
    return Rendered(mark, files, parts.notes, parts.refused)


def _named(way: Callable[[EngineCatalog, Asked], Part], asked: Asked, catalog: EngineCatalog) -> Part:
    """A catalog by its provider's way, under names that Trino can have."""
    name = name_of(catalog.name)
    part = way(catalog, asked)
    note = (f"Trino calls it {name}, since names of its catalogs are lower-case.",) if name != catalog.name else ()
    return Part(catalog=catalog, settings=part.settings, notes=(*note, *part.notes))


def name_of(catalog: str) -> str:
    """The name of a catalog in Trino. Raises Refusal for one that Trino cannot have."""
    if "/" in catalog:
        raise Refusal(f"Catalog {catalog} cannot be in Trino, which names a catalog by its file: there is a / in it.")
    if catalog.lower() in RESERVED:
        raise Refusal(f"Catalog {catalog} cannot be in Trino, which keeps the name {catalog.lower()} for itself.")
    return catalog.lower()


# -- The ways of the providers


def _iceberg(catalog: EngineCatalog, asked: Asked) -> Part:
    """Metalake's Iceberg wire."""
    storage = storage_of(catalog)
    settings = _rest(catalog, asked) | _storage(storage, asked)
    notes = (OURS, *_nested_notes(catalog, asked), *_storage_notes(storage), *_needed(catalog, storage))
    return Part(catalog=catalog, settings={name_of(catalog.name): settings}, notes=notes)


def _glue(catalog: EngineCatalog, asked: Asked) -> Part:
    """The Lakehouse connector, which reads all formats; before it, the Hive connector where only Hive's are shown."""
    shown = shown_formats(catalog)
    if asked.version < LAKEHOUSE and shown != {"hive"}:
        raise Refusal(
            f"Catalog {catalog.name} cannot be in Trino {asked.version}, whose Hive connector reads Hive tables alone: "
            f"set table-type-filter=hive on it so that only those are shown, or take Trino {LAKEHOUSE} or newer."
        )
    is_hive = asked.version < LAKEHOUSE
    storage = storage_of(catalog)
    settings = {"connector.name": "hive" if is_hive else "lakehouse", **_glue_metastore(catalog)}
    if not is_hive and value_of(catalog, "default-table-format") == "hive":
        settings["lakehouse.table-type"] = "HIVE"
    stores = "Trino asks AWS Glue and S3 itself: only their own rights hold."
    notes = [stores, *_session_token(catalog), *_needed(catalog, storage)]
    both = {name_of(catalog.name): settings | _storage(storage, asked)}
    if not is_hive and shown & {"all", "iceberg"}:
        both |= _iceberg_only(catalog, asked, storage)
        notes.append(f"its Iceberg tables are in {name_of(catalog.name)}{ICEBERG_ONLY}, too, with Metalake's rights.")
    return Part(catalog=catalog, settings=both, notes=(*notes, *_flat_names(catalog, "Glue")))


def _hive(catalog: EngineCatalog, asked: Asked) -> Part:
    """The Hive connector, which redirects requests for Iceberg tables to Metalake's wire."""
    name, storage = name_of(catalog.name), storage_of(catalog)
    notes = ["Trino asks the metastore and the storage itself: only their own rights hold."]
    if not storage.kinds:
        storage = Storage(kinds=(Kind.HDFS,), s3=storage.s3)
        notes.append("it names no place of its files, so HDFS is assumed: set its property warehouse if that is wrong.")
    has_iceberg = value_of(catalog, "list-all-tables") != "false"
    iceberg = _iceberg_only(catalog, asked, storage) if has_iceberg else {}
    if Kind.FILE in storage.kinds and asked.version >= LAKEHOUSE:
        return _without_hive(catalog, iceberg)
    uris = ",".join(uri.strip() for uri in value_of(catalog, "metastore.uris").split(","))
    settings = {"connector.name": "hive", "hive.metastore.uri": uris}
    if has_iceberg:
        notes.append(f"its Iceberg tables are in {name}{ICEBERG_ONLY}, with Metalake's rights.")
        if not _is_nested(catalog):
            settings["hive.iceberg-catalog-name"] = f"{name}{ICEBERG_ONLY}"
            notes.append(f"{name} redirects to it whoever names an Iceberg table.")
    notes += [*_flat_names(catalog, "the metastore"), *_storage_notes(storage), *_needed(catalog, storage)]
    return Part(catalog=catalog, settings={name: settings | _storage(storage, asked)} | iceberg, notes=tuple(notes))


def _without_hive(catalog: EngineCatalog, iceberg: Mapping[str, Settings]) -> Part:
    """Its Iceberg tables alone, where Trino would find no row of the others. Raises Refusal where it has none."""
    why = f"Trino {LAKEHOUSE} and newer may find no row of Hive tables in local folders, without an error"
    if not iceberg:
        raise Refusal(f"Catalog {catalog.name} is left out: {why}. Take Trino {LAKEHOUSE - 1}.")
    there = f"its Iceberg tables are in {', '.join(iceberg)}, with Metalake's rights"
    return Part(catalog=catalog, settings=iceberg, notes=(f"its Hive tables are left out: {why}; {there}.",))


def _database(catalog: EngineCatalog, asked: Asked) -> Part:
    """The connector of the database's driver, which sees all databases of a MySQL server."""
    database, variable = database_of(catalog), variable_of(catalog, PASSWORD)
    settings = {
        "connector.name": database.driver.scheme,
        "connection-url": database.url(),
        "connection-user": database.user,
        "connection-password": from_environment(variable),
    }
    notes = (OWN_RIGHTS.format("Trino"), *rendered.needs([variable]))
    return Part(catalog=catalog, settings={name_of(catalog.name): settings}, notes=notes)


PROVIDERS: Mapping[str, Callable[[EngineCatalog, Asked], Part]] = {
    "lakehouse-iceberg": _iceberg,
    "glue": _glue,
    "hive": _hive,
    "jdbc-postgresql": _database,
    "jdbc-mysql": _database,
}


# -- Their parts


def _rest(catalog: EngineCatalog, asked: Asked) -> Settings:
    nested = {"iceberg.rest-catalog.nested-namespace-enabled": "true"} if asked.version >= NESTED else {}
    return {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": asked.uri,
        "iceberg.rest-catalog.warehouse": catalog.name,
        **nested,
        "iceberg.unique-table-location": "true",  # else refused to who is not the catalog's owner
        "iceberg.rest-catalog.security": "OAUTH2",
        "iceberg.rest-catalog.oauth2.token": from_environment(TOKEN),
    }


def _iceberg_only(catalog: EngineCatalog, asked: Asked, storage: Storage) -> dict[str, Settings]:
    return {f"{name_of(catalog.name)}{ICEBERG_ONLY}": _rest(catalog, asked) | _storage(storage, asked)}


def _glue_metastore(catalog: EngineCatalog) -> Settings:
    """Glue by its properties; without keys, Trino takes what its machine has."""
    plain = {
        "hive.metastore.glue.region": "aws-region",
        "hive.metastore.glue.catalogid": "aws-glue-catalog-id",
        "hive.metastore.glue.endpoint-url": "aws-glue-endpoint",
        "hive.metastore.glue.iam-role": "aws-role-arn",
        "hive.metastore.glue.sts.endpoint": "aws-sts-endpoint",
        "hive.metastore.glue.default-warehouse-dir": "warehouse",
    }
    secret = {"hive.metastore.glue.external-id": "aws-external-id"}
    if not is_masked(catalog, "aws-session-token"):
        secret |= {
            "hive.metastore.glue.aws-access-key": "aws-access-key-id",
            "hive.metastore.glue.aws-secret-key": "aws-secret-access-key",
        }
    settings = {"hive.metastore": "glue"}
    settings |= {key: value for key, name in plain.items() if (value := value_of(catalog, name))}
    return settings | {
        key: from_environment(variable_of(catalog, name)) for key, name in secret.items() if is_masked(catalog, name)
    }


def _storage(storage: Storage, asked: Asked) -> Settings:
    """The file systems that are switched on, and how S3 is reached."""
    settings: Settings = {}
    for kind in storage.kinds:
        settings |= _switch(kind, asked.version)
    if Kind.S3 in storage.kinds:
        settings |= _s3(storage, asked.version)
    return settings


def _switch(kind: Kind, version: int) -> Settings:
    if version < SWITCHED:
        return {}
    if kind is Kind.HDFS or (kind is Kind.FILE and version < LAKEHOUSE):
        return {"fs.hadoop.enabled": "true"}
    native = "" if version >= RENAMED else "native-"
    if kind is Kind.FILE:
        return {f"fs.{native}local.enabled": "true", "local.location": "/"}
    return {f"fs.{native}{kind}.enabled": "true"}


def _s3(storage: Storage, version: int) -> Settings:
    s3, prefix = storage.s3, "s3." if version >= SWITCHED else "hive.s3."
    settings = {
        f"{prefix}endpoint": s3.endpoint,
        f"{prefix}region": s3.region,
        f"{prefix}iam-role": s3.role,
        f"{prefix}path-style-access": "true" if s3.path_style else "",
        f"{prefix}auth-type": "IAM_ROLE" if s3.role and version >= AUTH_TYPE else "",
    }
    names = {"external-id": "external-id"} if s3.role else {}
    if "session-token" not in s3.variables:
        names |= {"access-key-id": "aws-access-key", "secret-access-key": "aws-secret-key"}
    settings |= {prefix + names[key]: from_environment(s3.variables[key]) for key in names if key in s3.variables}
    return {key: value for key, value in settings.items() if value}


def from_environment(variable: str) -> str:
    """Trino's reference to a variable of its environment."""
    return f"${{ENV:{variable}}}"


# -- What people must know


def _is_nested(catalog: EngineCatalog) -> bool:
    return catalog.properties.get("nested-namespaces") == "true"


def _nested_notes(catalog: EngineCatalog, asked: Asked) -> tuple[str, ...]:
    if asked.version >= NESTED or not _is_nested(catalog):
        return ()
    return (f"schemas inside schemas are not there: Trino has them from {NESTED} on.",)


def _flat_names(catalog: EngineCatalog, system: str) -> tuple[str, ...]:
    if not _is_nested(catalog):
        return ()
    return (f"where Trino asks {system} itself, its schema sales:emea is called sales_x001f_emea.",)


def _storage_notes(storage: Storage) -> tuple[str, ...]:
    clouds = [kind for kind in storage.kinds if kind in (Kind.GCS, Kind.AZURE)]
    return tuple(f"add Trino's own settings of access to {kind} ({kind}.*): none are written here." for kind in clouds)


def _session_token(catalog: EngineCatalog) -> tuple[str, ...]:
    if not is_masked(catalog, "aws-session-token"):
        return ()
    return ("Trino takes no session token in a file: give its environment the temporary keys of AWS.",)


def _needed(catalog: EngineCatalog, storage: Storage) -> tuple[str, ...]:
    """The environment variables of the masked properties that Trino uses; METALAKE_TOKEN is listed once for all."""
    references = [*_s3(storage, SWITCHED).values()]
    references += _glue_metastore(catalog).values() if catalog.provider == "glue" else ()
    variables = {reference[1] for each in references if (reference := re.fullmatch(r"\$\{ENV:(.+)\}", each))}
    return rendered.needs(variables)


# -- The file


def _file(mark: str, settings: Settings) -> str:
    lines = [f"# {mark}", *(f"{key}={_escaped(value)}" for key, value in settings.items())]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """A text as java.util.Properties reads it from a file, whose bytes it takes for Latin-1."""
    units = text.replace("\\", "\\\\").encode("utf-16-be")
    pairs = (units[place] << 8 | units[place + 1] for place in range(0, len(units), 2))
    return "".join(chr(unit) if 32 <= unit < 127 else f"\\u{unit:04x}" for unit in pairs)
