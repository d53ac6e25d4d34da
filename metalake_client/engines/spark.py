"""The catalogs of a metalake as settings of Spark: data in, data out (docs/engines/spark.md).

A provider becomes a catalog of Spark by its line in PROVIDERS; a catalog of another provider is told, and left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from metalake_client.engines.catalogs import EngineCatalog, iceberg_uri
from metalake_client.engines.spark_pairs import KYUUBI, Pair, pair_for
from metalake_client.failures import Exit, Failure

ICEBERG = "org.apache.iceberg.spark"
REDACTED = "(?i)secret|passw|token|credential|access.?key|private.?key|authorization"
"""Spark shows no value of a setting whose name has one of these, in SET, plans, its log, its pages and its events."""
TOKENS = "mlk_[A-Za-z0-9_-]+"
TOKEN = "env:METALAKE_TOKEN"  # noqa: S105 (Iceberg reads a value after env: from the environment)
SPARKS_OWN = ("spark_catalog", "global_temp")  # in whatever case

OURS = "Metalake's rights hold for what is read and written of it; the files themselves are the storage's to guard."
STORES = "Only the store's own rights hold: Spark asks {store} itself."

# What a catalog says of its storage, in the words of Iceberg's Java; its secrets are the caller's to bring.
STORAGE = {
    "s3.endpoint": "s3.endpoint",
    "s3.region": "client.region",
    "s3.access-key-id": "s3.access-key-id",
    "s3.secret-access-key": "s3.secret-access-key",
    "s3.session-token": "s3.session-token",
    "aws-region": "client.region",
    "aws-access-key-id": "s3.access-key-id",
    "aws-secret-access-key": "s3.secret-access-key",
    "aws-session-token": "s3.session-token",
    "adls.account-name": "adls.auth.shared-key.account.name",
    "adls.account-key": "adls.auth.shared-key.account.key",
    "gcs.oauth2.token": "gcs.oauth2.token",
    "gcs.project-id": "gcs.project-id",
}
BUNDLES = {"s3": "aws", "s3a": "aws", "s3n": "aws", "gs": "gcp", "gcs": "gcp", "abfs": "azure", "abfss": "azure"}


@dataclass(frozen=True, kw_only=True)
class SparkCatalog:
    """A catalog of the metalake as Spark knows it; without `settings` it is not there, and `notes` say why."""

    name: str
    way: str = ""
    rights: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # the secrets that the caller may bring and has not
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SparkConfig:
    """All settings of a Spark for a metalake, Maven coordinates of the jars that they need, and what to know."""

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
    """What a session is asked for: whose metalake, by which credential, on which Spark."""

    uri: str
    pair: Pair
    token: str
    user: str
    password: str
    hive_catalog: str | None
    direct: Collection[str]
    secrets: Mapping[str, Mapping[str, str]]


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
) -> SparkConfig:
    """The settings by which Spark has these catalogs under their names.

    `token` is a token, or `env:NAME`; `user` and `password` stand in its place. `hive_catalog` is the catalog whose
    metastore is to be Spark's own. Catalogs in `direct` are asked past Metalake, where their provider can be.
    `secrets` has, by catalog, the values of properties that the server masks. Raises Failure for a Spark that
    cannot work, and for a name among the options that is no such catalog.
    """
    pair, secrets = pair_for(spark_version), secrets or {}
    _require_known(catalogs, hive_catalog, [*direct, *secrets])
    asked = Asked(
        uri=iceberg_uri(url, metalake),
        pair=pair,
        token=token,
        user=user,
        password=password,
        hive_catalog=hive_catalog,
        direct=direct,
        secrets=secrets,
    )
    made = tuple(_spark_catalog(each, asked) for each in catalogs)
    settings = {
        "spark.sql.extensions": f"{ICEBERG}.extensions.IcebergSparkSessionExtensions",
        "spark.redaction.regex": REDACTED,
        "spark.redaction.string.regex": TOKENS,
        "spark.sql.redaction.options.regex": f"{REDACTED}|url",
    }
    packages = {pair.iceberg: None}
    for each in made:
        settings |= each.settings
        packages |= dict.fromkeys(each.packages)
    return SparkConfig(settings=settings, packages=tuple(packages), catalogs=made)


def _require_known(catalogs: Collection[EngineCatalog], hive_catalog: str | None, named: list[str]) -> None:
    known = {each.name: each.provider for each in catalogs}
    hives = sorted(name for name, provider in known.items() if provider == "hive")
    if hive_catalog is not None and hive_catalog not in hives:
        there = f"those are {', '.join(hives)}" if hives else "there is none"
        raise Failure(f"hive_catalog is the name of a Hive catalog, and {hive_catalog} is none: {there}.", Exit.USAGE)
    for name in named:
        if name not in known:
            there = f"There are {', '.join(sorted(known))}." if known else "There are none."
            raise Failure(f"There is no catalog {name} that you may use. {there}", Exit.MISSING)


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
    if why or made is None:
        return SparkCatalog(name=catalog.name, notes=(why,))
    return made(catalog, asked)


# -- The ways of the providers


def _through_rest(catalog: EngineCatalog, asked: Asked) -> SparkCatalog:
    """Metalake's Iceberg wire."""
    own, bundles, missing = _storage(catalog, asked)
    return SparkCatalog(
        name=catalog.name,
        way="Metalake's Iceberg REST",
        rights=OURS,
        settings=_named(catalog.name, f"{ICEBERG}.SparkCatalog", _rest(catalog, asked) | own),
        packages=bundles,
        missing=missing,
        notes=_bring(catalog, missing),
    )


def _hive(catalog: EngineCatalog, asked: Asked) -> SparkCatalog:
    """Iceberg tables through Metalake, Hive's own from the metastore where Spark can ask it."""
    iceberg = _through_rest(catalog, asked)
    if catalog.name != asked.hive_catalog:
        why = (
            "its Hive tables are not there: Spark itself knows one metastore. "
            f"hive_catalog={catalog.name!r} makes it that of the session."
        )
        return _with(iceberg, notes=(*iceberg.notes, *_nested(catalog), why))
    uris = catalog.properties.get("metastore.uris", "")
    own, _, _ = _storage(catalog, asked)
    session = _named("spark_catalog", f"{ICEBERG}.SparkSessionCatalog", _rest(catalog, asked) | own)
    return _with(
        iceberg,
        way=f"Metalake's Iceberg REST for Iceberg, as {catalog.name}; all, as spark_catalog, from {uris}",
        rights=f"{OURS} Of tables that are not Iceberg's: {STORES.format(store='the metastore')}",
        settings={
            **iceberg.settings,
            **session,
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": uris,
        },
        notes=(*iceberg.notes, *_nested(catalog)),
    )


def _glue(catalog: EngineCatalog, asked: Asked) -> SparkCatalog:
    """Iceberg tables through Metalake, or from Glue itself."""
    if catalog.name not in asked.direct:
        through = _through_rest(catalog, asked)
        return _with(through, notes=(*through.notes, *_nested(catalog), GLUE_HIVE))
    own, bundles, missing = _storage(catalog, asked)
    place = catalog.properties.get("warehouse")
    glue = {
        "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "glue.id": catalog.properties.get("aws-glue-catalog-id"),
        "glue.endpoint": catalog.properties.get("aws-glue-endpoint"),
        "warehouse": place,
    }
    given = {key: value for key, value in glue.items() if value}
    return SparkCatalog(
        name=catalog.name,
        way="AWS Glue itself",
        rights=STORES.format(store="AWS Glue"),
        settings=_named(catalog.name, f"{ICEBERG}.SparkCatalog", given | own),
        packages=tuple(dict.fromkeys((*bundles, asked.pair.bundle("aws")))),
        missing=missing,
        notes=(*_bring(catalog, missing), *_nested(catalog), GLUE_KEYS, GLUE_HIVE),
    )


GLUE_KEYS = "Iceberg asks Glue with the keys of AWS's default chain (AWS_ACCESS_KEY_ID, a profile, the machine's role)."
GLUE_HIVE = "its tables that are not Iceberg's are not there: Spark reads them with a client of Glue that Amazon ships with EMR."

PROVIDERS: dict[str, Callable[[EngineCatalog, Asked], SparkCatalog]] = {
    "lakehouse-iceberg": _through_rest,
    "hive": _hive,
    "glue": _glue,
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


def _storage(catalog: EngineCatalog, asked: Asked) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    """Iceberg's properties of where the files lie, the jars that it takes, and the secrets that are not there."""
    brought = dict(asked.secrets.get(catalog.name, {}))
    if strange := sorted(set(brought) - STORAGE.keys()):
        raise Failure(f"secrets of {catalog.name}: Spark has no use for {strange[0]}.", Exit.USAGE)
    missing = tuple(key for key in catalog.masked if key in STORAGE and key not in brought)
    known = {key: value for key, value in catalog.properties.items() if key not in catalog.masked} | brought
    own = {iceberg: known[key] for key, iceberg in STORAGE.items() if known.get(key)}
    if "s3.endpoint" in own and known.get("s3.force-virtual-addressing", "false") == "false":
        own["s3.path-style-access"] = "true"
    places = ",".join((known.get("warehouse", ""), known.get("allowed-locations", ""))).split(",")
    kinds = [BUNDLES.get(place.strip().partition("://")[0].lower()) for place in places]
    if any(key.startswith(("s3.", "aws-")) for key in known):
        kinds.append("aws")
    return own, tuple(dict.fromkeys(asked.pair.bundle(kind) for kind in kinds if kind)), missing


def _bring(catalog: EngineCatalog, missing: tuple[str, ...]) -> tuple[str, ...]:
    if not missing:
        return ()
    wanted = ", ".join(f"{key!r}: ..." for key in missing)
    return (
        f"the server gives no secrets away: secrets={{{catalog.name!r}: {{{wanted}}}}} brings yours; "
        "without them Spark takes what its machine has.",
    )


def _nested(catalog: EngineCatalog) -> tuple[str, ...]:
    if catalog.properties.get("nested-namespaces") != "true":
        return ()
    where = {"hive": "the metastore", "glue": "Glue"}.get(catalog.provider, "its system")
    return (f"its schema sales.emea is called sales_x001f_emea by whoever asks {where} itself.",)


def _with(catalog: SparkCatalog, **changes: object) -> SparkCatalog:
    return SparkCatalog(**{**vars(catalog), **changes})


__all__ = ["KYUUBI", "PROVIDERS", "SparkCatalog", "SparkConfig", "is_secret", "pair_for", "spark_settings"]
