"""The catalogs of a metalake as DuckDB's SQL: one file of secrets and ATTACH (docs/engines/duckdb.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from string import ascii_lowercase, ascii_uppercase
from urllib.parse import urlsplit

from metalake_client.engines import rendered
from metalake_client.engines.catalogs import EngineCatalog, iceberg_uri
from metalake_client.engines.databases import OWN_RIGHTS, PASSWORD, POSTGRESQL, database_of
from metalake_client.engines.formats import require_iceberg
from metalake_client.engines.quoting import double_quoted, text
from metalake_client.engines.rendered import TOKEN, Part, Refusal, Rendered, variable_of
from metalake_client.engines.storage import Kind, Storage, storage_of

FILE = "metalake.sql"
EXTENSIONS = ("httpfs", "avro", "iceberg")
POSTGRES_TLS = ("sslmode=disable", "", "sslmode=require", "sslmode=verify-full sslrootcert=system")
MYSQL_TLS = ("disabled", "", "required", "verify_identity")
RESERVED = frozenset({"main", "memory", "system", "temp"})

OURS = "Metalake's rights of the token's user hold; DuckDB opens the files with its own access to the storage."
ONLY = "only its Iceberg tables are there, through Metalake: DuckDB asks no metastore."

Way = Callable[[str, EngineCatalog], Part]
_FOLD = str.maketrans(ascii_uppercase, ascii_lowercase)


def render(url: str, metalake: str, catalogs: Iterable[EngineCatalog]) -> Rendered:
    """One file of SQL. Raises Failure for catalogs whose names DuckDB takes for one."""
    mark = rendered.mark_of("duckdb", url, metalake)
    uri = iceberg_uri(url, metalake)
    providers = {name: partial(way, uri) for name, way in PROVIDERS.items()}
    parts = rendered.parts_of("DuckDB", catalogs, providers, fold=folded)
    secret, token = f"metalake {metalake}", from_environment(TOKEN)
    databases = {name: None for part in parts.parts for each in part.settings.values() if (name := each.get("TYPE"))}
    statements = [f"{verb} {each};" for each in (*EXTENSIONS, *databases) for verb in ("INSTALL", "LOAD")]
    statements.append(f"CREATE OR REPLACE SECRET {double_quoted(secret)} (TYPE iceberg, TOKEN {token});")
    for part in parts.parts:
        for options in part.settings.values():
            if "TYPE" in options:
                statements += _attach_database(part.catalog, options)
            else:
                statements += _s3_secrets(part.catalog, storage_of(part.catalog))
                statements.append(_attach(part.catalog, options["ENDPOINT"], secret))
    lines = [f"-- {rendered.mark_with(mark)}", *parts.in_sql(), *statements, ""]
    return Rendered(mark, {FILE: "\n".join(lines)}, parts.notes, parts.refused)


def folded(name: str) -> str:
    """A name as DuckDB compares names: without regard to the case of the letters A to Z."""
    return name.translate(_FOLD)


# -- The ways of the providers


def _iceberg(uri: str, catalog: EngineCatalog) -> Part:
    return _attached(uri, catalog, OURS)


def _iceberg_alone(uri: str, catalog: EngineCatalog) -> Part:
    """The Iceberg tables of another system."""
    require_iceberg("DuckDB", catalog)
    return _attached(uri, catalog, OURS, ONLY)


def _database(uri: str, catalog: EngineCatalog) -> Part:
    """DuckDB's extensions for PostgreSQL and MySQL; that for MySQL sees all databases of the server."""
    _require_free(catalog)
    database, variable = database_of(catalog), variable_of(catalog, PASSWORD)
    login = {"HOST": text(database.host.strip("[]")), "PORT": str(database.port), "USER": text(database.user)}
    login["PASSWORD"] = from_environment(variable)
    options = {"TYPE": "mysql", "ATTACH": ""}
    if database.driver is POSTGRESQL:
        login["DATABASE"] = text(database.name)
        options = {"TYPE": "postgres", "ATTACH": POSTGRES_TLS[database.tls]}
    elif mode := MYSQL_TLS[database.tls]:
        login["SSL_MODE"] = text(mode)
    options["SECRET"] = ", ".join(f"{name} {value}" for name, value in login.items())
    notes = (OWN_RIGHTS.format("DuckDB"), *rendered.needs([variable]))
    return Part(catalog=catalog, settings={catalog.name: options}, notes=notes)


PROVIDERS: Mapping[str, Way] = {
    "lakehouse-iceberg": _iceberg,
    "hive": _iceberg_alone,
    "glue": _iceberg_alone,
    "jdbc-postgresql": _database,
    "jdbc-mysql": _database,
}


# -- Their parts


def _attached(uri: str, catalog: EngineCatalog, *notes: str) -> Part:
    """A catalog under its own name, on Metalake's Iceberg wire."""
    _require_free(catalog)
    storage = storage_of(catalog)
    sentences = [*notes, *_storage_notes(storage), *rendered.needs(_keys(storage).values())]
    return Part(catalog=catalog, settings={catalog.name: {"ENDPOINT": uri}}, notes=tuple(sentences))


def _require_free(catalog: EngineCatalog) -> None:
    if folded(catalog.name) in RESERVED:
        raise Refusal(f"Catalog {catalog.name} cannot be in DuckDB, which keeps this name for a database of its own.")


def _attach_database(catalog: EngineCatalog, options: Mapping[str, str]) -> list[str]:
    kind, secret = options["TYPE"], double_quoted(f"metalake {catalog.name} database")
    return [
        f"CREATE OR REPLACE SECRET {secret} (TYPE {kind}, {options['SECRET']});",
        f"ATTACH {text(options['ATTACH'])} AS {double_quoted(catalog.name)} (TYPE {kind}, SECRET {secret});",
    ]


def _attach(catalog: EngineCatalog, uri: str, secret: str) -> str:
    options = f"TYPE iceberg, ENDPOINT {text(uri)}, SECRET {double_quoted(secret)}"
    return f"ATTACH {text(catalog.name)} AS {double_quoted(catalog.name)} ({options});"


def _keys(storage: Storage) -> dict[str, str]:
    """The variables with keys of S3, by the names that DuckDB has for them; none where they are not complete."""
    names = {"KEY_ID": "access-key-id", "SECRET": "secret-access-key", "SESSION_TOKEN": "session-token"}
    variables = {name: storage.s3.variables[key] for name, key in names.items() if key in storage.s3.variables}
    return variables if {"KEY_ID", "SECRET"} <= variables.keys() and Kind.S3 in storage.kinds else {}


def _s3_secrets(catalog: EngineCatalog, storage: Storage) -> list[str]:
    """A secret for the catalog's places on S3; for all of S3 where it names none, since DuckDB takes no empty scope."""
    keys = _keys(storage)
    if not keys:
        return []
    given = {name: from_environment(variable) for name, variable in keys.items()}
    if storage.s3.region:
        given["REGION"] = text(storage.s3.region)
    if storage.s3.endpoint:
        address = urlsplit(storage.s3.endpoint)
        given |= {"ENDPOINT": text(address.netloc), "USE_SSL": "true" if address.scheme == "https" else "false"}
        given["URL_STYLE"] = "'path'" if storage.s3.path_style else "'vhost'"
    if places := _on_s3(storage):
        given["SCOPE"] = f"[{', '.join(map(text, places))}]" if len(places) != 1 else text(places[0])
    options = ", ".join(f"{name} {value}" for name, value in given.items())
    return [f"CREATE OR REPLACE SECRET {double_quoted(f'metalake {catalog.name} s3')} (TYPE s3, {options});"]


def _on_s3(storage: Storage) -> list[str]:
    return [place for place in storage.places if place.startswith(("s3:", "s3a:", "s3n:"))]


def _storage_notes(storage: Storage) -> list[str]:
    other = [kind for kind in storage.kinds if kind is not Kind.FILE and not (kind is Kind.S3 and _keys(storage))]
    notes = [f"give DuckDB a secret of yours for {kind}: none is written here." for kind in other]
    if _keys(storage) and not _on_s3(storage):
        notes.append("it names no place, so its keys open what no other catalog names: set warehouse where two do so.")
    return notes


def from_environment(variable: str) -> str:
    """A call of the function getenv, which DuckDB's command line has; elsewhere it is made (docs/engines/duckdb.md)."""
    return f"getenv({text(variable)})"
