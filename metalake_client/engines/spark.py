"""The catalogs of a metalake as settings of Spark: data in, data out (docs/engines/spark.md).

A provider becomes a catalog of Spark by its line in PROVIDERS; a catalog of another provider is told, and left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from metalake_client.engines.catalogs import EngineCatalog, iceberg_uri
from metalake_client.engines.databases import MARIADB, OWN_RIGHTS, PASSWORD, database_of
from metalake_client.engines.rendered import Refusal, value_of
from metalake_client.engines.spark_pairs import KYUUBIS_NEWEST, Pair, pair_for
from metalake_client.engines.spark_storage import PROPERTIES, Storage, storage_of
from metalake_client.failures import Exit, Failure

ICEBERG = "org.apache.iceberg.spark"
METASTORE = "spark.hadoop.hive.metastore.uris"
JDBC = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
MIXED = "io.metalake.spark.MixedCatalog"
REDACTED = "(?i)secret|passw|token|credential|(access|account|private).?key|authorization"
"""Spark shows no value of a setting whose name has one of these, in SET, plans, its log, its pages and its events."""
TOKENS = "mlk_[A-Za-z0-9_-]+"
TOKEN = "env:METALAKE_TOKEN"  # noqa: S105 (Iceberg reads a value after env: from the environment)
READ = (*PROPERTIES, "metastore.uris", "aws-glue-catalog-id", "aws-glue-endpoint", "warehouse")
"""The properties of catalogs that become settings."""
SPARKS_OWN = ("spark_catalog", "global_temp")  # in whatever case

OURS = "Metalake's rights hold for what is read and written of it; the files themselves are the storage's to guard."
STORES = "Only the store's own rights hold: Spark asks {store} itself."


@dataclass(frozen=True, kw_only=True)
class SparkCatalog:
    """A catalog of the metalake as configured in Spark; without `settings` it is left out, and `notes` say why."""

    name: str
    way: str = ""
    rights: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # the secrets that the caller may bring and has not
    notes: tuple[str, ...] = ()
    hive_views: str = ""  # the catalog of Spark that has Hive's views by their own names


@dataclass(frozen=True, kw_only=True)
class SparkConfig:
    """Spark's settings for a metalake, Maven coordinates of the jars that they need, and notes."""

    settings: Mapping[str, str]
    packages: tuple[str, ...]
    catalogs: tuple[SparkCatalog, ...]

    @property
    def notes(self) -> list[str]:
        return [f"{each.name}: {note}" for each in self.catalogs for note in each.notes]

    @property
    def open(self) -> dict[str, str]:
        """The settings that everybody may read."""
        return {key: value for key, value in self.settings.items() if not is_secret(key)}

    @property
    def secret(self) -> dict[str, str]:
        """Those that may stand in no file and no argument, unless they refer to the environment."""
        return {key: value for key, value in self.settings.items() if is_secret(key)}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The parameters of a session: metalake, credential, Spark version."""

    uri: str
    tables: str  # where the native wire has the catalogs
    pair: Pair
    spark_version: str
    token: str
    user: str
    password: str
    hive_catalog: str | None
    direct: Collection[str]
    secrets: Mapping[str, Mapping[str, str]]
    mixed: bool
    kyuubi: bool


def is_secret(setting: str) -> bool:
    return re.search(REDACTED, setting) is not None


def spark_settings(
    url: str,
    metalake: str,
    catalogs: Collection[EngineCatalog],
    *,
    spark_version: str,
    token: str = TOKEN,
    user: str = "",
    password: str = "",
    hive_catalog: str | None = None,
    direct: Collection[str] = (),
    secrets: Mapping[str, Mapping[str, str]] | None = None,
    mixed: bool = False,
    kyuubi: bool = True,
) -> SparkConfig:
    """The Spark settings that configure these catalogs under their names.

    `token` is a token, or `env:NAME`; `user` and `password` stand in its place. `hive_catalog` is the catalog whose
    metastore is to be Spark's own. Catalogs in `direct` are asked past Metalake, where their provider can be.
    `secrets` has, by catalog, the values of properties that the server masks. `mixed` is for a Spark that has the jar
    of metalake_client/spark/dispatch: Hive's tables are there beside Iceberg's by one name, or say why not; without
    `kyuubi` it has not the jar of Kyuubi's connector.
    Raises Failure for a Spark that cannot work, and for a name among the options that is no such catalog.
    """
    asked = Asked(
        uri=iceberg_uri(url, metalake),
        tables=f"{url.rstrip('/')}/api/metalakes/{quote(metalake)}/catalogs",
        pair=pair_for(spark_version),
        spark_version=spark_version,
        token=token,
        user=user,
        password=password,
        hive_catalog=hive_catalog,
        direct=direct,
        secrets=secrets or {},
        mixed=mixed,
        kyuubi=kyuubi,
    )
    _require_known(catalogs, asked)
    return _config(tuple(_spark_catalog(each, asked) for each in catalogs), asked)


def _config(catalogs: tuple[SparkCatalog, ...], asked: Asked) -> SparkConfig:
    settings = {
        "spark.sql.extensions": f"{ICEBERG}.extensions.IcebergSparkSessionExtensions",
        "spark.redaction.regex": REDACTED,
        "spark.redaction.string.regex": TOKENS,
        "spark.sql.redaction.options.regex": f"{REDACTED}|url",
    }
    packages = {asked.pair.iceberg: None}
    for each in catalogs:
        settings |= each.settings
        packages |= dict.fromkeys(each.packages)
    metastores = [each for each in catalogs if METASTORE in each.settings]
    for each in sorted(metastores, key=lambda each: each.name != asked.hive_catalog)[:1]:
        settings[METASTORE] = each.settings[METASTORE]  # the session's own: the chosen one, or else the first
    return SparkConfig(settings=settings, packages=tuple(packages), catalogs=catalogs)


def _require_known(catalogs: Collection[EngineCatalog], asked: Asked) -> None:
    known = {each.name: each.provider for each in catalogs}
    hives = sorted(name for name, provider in known.items() if provider == "hive")
    if asked.hive_catalog is not None and asked.hive_catalog not in hives:
        there = f"those are {', '.join(hives)}" if hives else "there is none"
        raise Failure(f"hive_catalog names a Hive catalog, and {asked.hive_catalog} is none: {there}.", Exit.USAGE)
    for name in (*asked.direct, *asked.secrets):
        if name not in known:
            there = f"There are {', '.join(sorted(known))}." if known else "There are none."
            raise Failure(f"There is no catalog {name} that you may use. {there}", Exit.MISSING)
    for name in asked.direct:
        if known[name] != "glue":
            raise Failure(f"direct: {name} is no Glue catalog; others are reached through Metalake.", Exit.USAGE)


def _spark_catalog(catalog: EngineCatalog, asked: Asked) -> SparkCatalog:
    made = PROVIDERS.get(catalog.provider)
    why = ""
    if not catalog.is_enabled:
        why = "it is not there, since it is disabled; its owner enables it (gcli catalog enable)."
    elif catalog.name.lower() in SPARKS_OWN:
        why = f"it is not there, since Spark keeps the name {catalog.name.lower()} for itself; give it another one."
    elif catalog.type != "relational" or made is None:
        what = catalog.provider if catalog.type == "relational" else f"{catalog.type}: {catalog.provider}"
        why = f"it is not there, since Spark has no support for its provider ({what})."
    elif replaced := _replaced(catalog):
        why = f"it is not there. {replaced}"
    try:
        if not why and made is not None:
            return made(catalog, asked)
    except Refusal as refused:
        why = f"it is not there. {refused}"
    return SparkCatalog(name=catalog.name, notes=(why,))


def _replaced(catalog: EngineCatalog) -> str:
    """Which property its owner has to change, since Spark or Iceberg would replace a part of it; or nothing."""
    try:
        for key in READ:
            if key not in catalog.masked:
                value_of(catalog, key)
    except Refusal as why:
        return str(why)
    return ""


# -- The ways of the providers


def _through_rest(catalog: EngineCatalog, asked: Asked) -> SparkCatalog:
    """Metalake's Iceberg wire."""
    files = _storage(catalog, asked)
    return SparkCatalog(
        name=catalog.name,
        way="Metalake's Iceberg REST",
        rights=OURS,
        settings=_named(catalog.name, f"{ICEBERG}.SparkCatalog", _rest(catalog, asked) | files.properties),
        packages=files.packages,
        missing=files.missing,
        notes=files.notes,
    )


def _hive(catalog: EngineCatalog, asked: Asked) -> SparkCatalog:
    """Iceberg tables through Metalake; all others from the metastore, where Spark can reach it."""
    uris = catalog.properties.get("metastore.uris", "")
    iceberg = _through_rest(catalog, asked)
    if catalog.name == asked.hive_catalog:
        made = _of_session(iceberg, asked) if asked.mixed else _extended_session(catalog, iceberg, asked)
    elif asked.mixed and asked.pair.hive and asked.kyuubi:
        made = _mixed(iceberg, asked, "kyuubi", **{"kyuubi.hive.metastore.uris": uris})
        made = replace(made, packages=(*made.packages, asked.pair.hive), hive_views=catalog.name)
    else:
        return _iceberg_alone(catalog, iceberg, asked, _why_not(catalog, asked))
    return replace(
        made,
        way=f"{iceberg.way} for Iceberg tables, {uris} for all others",
        rights=f"{OURS} Of tables that are not Iceberg's: {STORES.format(store='the metastore')}",
        settings={**made.settings, "spark.sql.catalogImplementation": "hive", METASTORE: uris},
        notes=(*made.notes, *_nested(catalog)),
    )


def _why_not(catalog: EngineCatalog, asked: Asked) -> str:
    chosen = f"choose {catalog.name} by hive_catalog={catalog.name!r}"
    if asked.pair.hive:
        return f"they take the jar of Kyuubi's connector, {asked.pair.hive}, or {chosen}"
    return (
        f"Spark {asked.spark_version} reads Hive's tables of one metastore: {chosen}, or take Spark {KYUUBIS_NEWEST} "
        "with Kyuubi's connector, which reads those of any number"
    )


def _glue(catalog: EngineCatalog, asked: Asked) -> SparkCatalog:
    """Iceberg tables through Metalake, or from Glue itself."""
    if catalog.name not in asked.direct:
        return _iceberg_alone(catalog, _through_rest(catalog, asked), asked, GLUE_HIVE)
    files = _storage(catalog, asked)
    glue = {
        "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "glue.id": catalog.properties.get("aws-glue-catalog-id"),
        "glue.endpoint": catalog.properties.get("aws-glue-endpoint"),
        "warehouse": catalog.properties.get("warehouse"),
    }
    given = {key: value for key, value in glue.items() if value}
    return SparkCatalog(
        name=catalog.name,
        way="AWS Glue itself, for Iceberg tables",
        rights=STORES.format(store="AWS Glue"),
        settings=_named(catalog.name, f"{ICEBERG}.SparkCatalog", given | files.properties),
        packages=tuple(dict.fromkeys((*files.packages, asked.pair.bundle("aws")))),
        missing=files.missing,
        notes=(*files.notes, *_nested(catalog), GLUE_KEYS, f"{GLUE_HIVE}."),
    )


GLUE_KEYS = "Iceberg asks Glue with the keys of AWS's default chain (AWS_ACCESS_KEY_ID, a profile, the machine's role)."
GLUE_HIVE = "Spark reads Glue's tables that are not Iceberg's with a client of Glue that Amazon has in its EMR alone"


def _database(catalog: EngineCatalog, asked: Asked) -> SparkCatalog:
    """Spark's own catalog of a database; that of MySQL sees all databases of the server."""
    database, brought = database_of(catalog), asked.secrets.get(catalog.name, {})
    if strange := sorted(brought.keys() - {PASSWORD}):
        raise Failure(f"secrets of {catalog.name}: Spark has no use for {strange[0]}.", Exit.USAGE)
    driver = database.driver
    scheme = "mysql" if driver is MARIADB else ""  # by which Spark knows how MariaDB's SQL differs
    url = database.url(scheme, "/", driver.for_spark)
    properties = {"url": url, "driver": driver.java_class, "user": database.user}
    password = {"password": brought[PASSWORD]} if brought else {}
    bring = (
        f"the server gives no secrets away: secrets={{{catalog.name!r}: {{{PASSWORD!r}: ...}}}}, or the setting "
        f"spark.sql.catalog.{catalog.name}.password before its first use, brings the password."
    )
    return SparkCatalog(
        name=catalog.name,
        way=f"{driver.scheme} at {database.host}:{database.port}, by JDBC",
        rights=OWN_RIGHTS.format("Spark"),
        settings=_named(catalog.name, JDBC, properties | password),
        packages=(driver.package,),
        missing=() if brought else (PASSWORD,),
        notes=() if brought else (bring,),
    )


PROVIDERS: dict[str, Callable[[EngineCatalog, Asked], SparkCatalog]] = {
    "lakehouse-iceberg": _through_rest,
    "hive": _hive,
    "glue": _glue,
    "jdbc-postgresql": _database,
    "jdbc-mysql": _database,
}


# -- Their parts


def _named(name: str, implementation: str, properties: Mapping[str, str]) -> dict[str, str]:
    catalog = f"spark.sql.catalog.{name}"
    return {catalog: implementation} | {f"{catalog}.{key}": value for key, value in properties.items()}


def _rest(catalog: EngineCatalog, asked: Asked) -> dict[str, str]:
    where = {"type": "rest", "uri": asked.uri, "warehouse": catalog.name}
    if not asked.user:
        return where | {"token": asked.token}
    login = {"username": asked.user, "password": asked.password}
    return where | {"rest.auth.type": "basic"} | {f"rest.auth.basic.{key}": value for key, value in login.items()}


def _storage(catalog: EngineCatalog, asked: Asked) -> Storage:
    return storage_of(catalog, asked.secrets.get(catalog.name, {}), asked.pair)


def _nested(catalog: EngineCatalog) -> tuple[str, ...]:
    if catalog.properties.get("nested-namespaces") != "true":
        return ()
    where = {"hive": "the metastore", "glue": "Glue"}.get(catalog.provider, "its system")
    return (f"its schema sales.emea is called sales_x001f_emea by whoever asks {where} itself.",)


# -- What is not Iceberg's


def _mixed(iceberg: SparkCatalog, asked: Asked, hive: str, **more: str) -> SparkCatalog:
    """One catalog that sends each table to whose it is: metalake_client/spark/dispatch."""
    at, own = f"spark.sql.catalog.{iceberg.name}", {"hive": hive, "tables": f"{asked.tables}/{quote(iceberg.name)}"}
    mixed = {f"{at}.mixed.{key}": value for key, value in (own | more).items()}
    return replace(iceberg, settings={**iceberg.settings, at: MIXED, **mixed})


def _of_session(iceberg: SparkCatalog, asked: Asked) -> SparkCatalog:
    """The catalog and spark_catalog are one, for Spark plans Hive's own tables for that name alone."""
    made = _mixed(iceberg, asked, "session")
    at = f"spark.sql.catalog.{iceberg.name}"
    twin = {f"spark.sql.catalog.spark_catalog{key.removeprefix(at)}": value for key, value in made.settings.items()}
    note = "it is spark_catalog, too, and is called so in plans and messages."
    return replace(made, settings={**made.settings, **twin}, notes=(*made.notes, note), hive_views=iceberg.name)


def _extended_session(catalog: EngineCatalog, iceberg: SparkCatalog, asked: Asked) -> SparkCatalog:
    """Iceberg's own dispatch, which the session's catalog alone can have: there all tables are."""
    properties = _rest(catalog, asked) | _storage(catalog, asked).properties
    session = _named("spark_catalog", f"{ICEBERG}.SparkSessionCatalog", properties)
    note = f"as {catalog.name} it has its Iceberg tables, and as spark_catalog all."
    settings = {**iceberg.settings, **session}
    return replace(iceberg, settings=settings, notes=(*iceberg.notes, note), hive_views="spark_catalog")


def _iceberg_alone(catalog: EngineCatalog, iceberg: SparkCatalog, asked: Asked, why: str) -> SparkCatalog:
    made = _mixed(iceberg, asked, "none", message=f"{why}.") if asked.mixed else iceberg
    note = f"its tables that are not Iceberg's are not there: {why}."
    return replace(made, way=f"{iceberg.way}, for Iceberg tables", notes=(*iceberg.notes, *_nested(catalog), note))
