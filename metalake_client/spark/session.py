"""metalake_session: a Spark in which every catalog of a metalake is there under its name."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from metalake_client.engines.catalogs import EngineCatalog, catalogs_of
from metalake_client.engines.spark import MIXED, SparkConfig, is_secret, spark_settings
from metalake_client.engines.spark_pairs import PAIRS, RUNTIME, Pair, pair_for, require_runtime
from metalake_client.failures import Exit, Failure
from metalake_client.rest import Client
from metalake_client.spark.dispatch import dispatch_jar
from metalake_client.spark.errors import is_sparks_error, reason_of
from metalake_client.spark.java import require_java
from metalake_client.spark.metalake import MetalakeOfSession
from metalake_client.spark.views import Views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS, PACKAGES, EXTENSIONS = "spark.jars", "spark.jars.packages", "spark.sql.extensions"
CONNECTOR = "kyuubi-spark-connector-hive_"
TALKATIVE = ("org.apache.iceberg.shaded.org.apache.hc.client5.http", "software.amazon.awssdk.request")


def metalake_session(
    url: str,
    metalake: str,
    token: str = "",
    *,
    user: str = "",
    password: str = "",
    hive_catalog: str | None = None,
    direct: Collection[str] = (),
    secrets: Mapping[str, Mapping[str, str]] | None = None,
    jars: Sequence[str | Path] | None = None,
    settings: Mapping[str, str] | None = None,
    only: Collection[str] | None = None,
) -> SparkSession:
    """Start Spark, or make a session of the one that runs in this process, with the catalogs that the caller may use.

    One request goes to Metalake; a catalog is connected to when it is first used. `jars` are files, Iceberg's runtime
    among them; without them Spark fetches what it needs from Maven Central. `settings` are more of Spark's; `only` are
    the wanted catalogs. For the others see spark_settings; `session.metalake` tells what is there. Raises Failure.
    """
    version = _pyspark_version()
    pair, client = pair_for(version), _client(url, token, user, password)
    config = spark_settings(
        url,
        metalake,
        _wanted(catalogs_of(client, metalake), only),
        spark_version=version,
        token=token,
        user=user,
        password=password,
        hive_catalog=hive_catalog,
        direct=direct,
        secrets=secrets,
        mixed=True,
        kyuubi=_has_kyuubi(jars),
    )
    session = _session(config, pair, jars, dict(settings or {}))
    views = Views(client, metalake, session, config.catalogs)
    session.metalake = MetalakeOfSession(url, metalake, config.catalogs, views)
    return session


def _wanted(catalogs: Iterable[EngineCatalog], only: Collection[str] | None) -> list[EngineCatalog]:
    """The catalogs of these names. Raises Failure for a name without one."""
    known = {each.name: each for each in catalogs}
    for name in only or ():
        if name not in known:
            raise Failure(f"There is no catalog {name} that you may use.", Exit.MISSING)
    return [known[name] for name in (known if only is None else only)]


def _pyspark_version() -> str:
    try:
        import pyspark
    except ImportError:
        wanted = " or ".join(f"'pyspark=={pair.spark}.*'" for pair in PAIRS)
        raise Failure(f"PySpark is not installed: pip install {wanted}.", Exit.USAGE) from None
    return str(pyspark.__version__)


def _client(url: str, token: str, user: str, password: str) -> Client:
    if not (token or user):
        raise Failure("Who asks? Give a token, or a user and a password.", Exit.REFUSED)
    return Client(url, token=token, user=user, password=password)


def _has_kyuubi(jars: Sequence[str | Path] | None) -> bool:
    """Whether Spark has, or will fetch, the connector for any number of metastores."""
    running = _running()
    if running is not None:
        return any(CONNECTOR in jar.name for jar in _jars_of(running))
    return jars is None or any(CONNECTOR in Path(jar).name for jar in jars)


def _running() -> Any:
    """A session of the Spark of this process, if there is one, whichever thread started it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _jars_of(session: Any) -> list[Path]:
    """The jars that a Spark was started with, those that it fetched included."""
    given = session._jsparkSession.sparkContext().conf().get(JARS, "")
    return [Path(urlsplit(each).path) for each in given.split(",") if each]


def _session(config: SparkConfig, pair: Pair, jars: Sequence[str | Path] | None, more: dict[str, str]) -> Any:
    if logging.getLogger("py4j").level == logging.NOTSET:  # it would tell all that Python and Java say to each other
        logging.getLogger("py4j").setLevel(logging.INFO)
    running = _running()
    if running is None:
        session = _started(config, pair, jars, more)
        given = config.secret | {key: value for key, value in more.items() if is_secret(key)}
    else:
        session = _beside(running, config)
        given = {**config.settings, **more}
    _give(session, given, to_later_sessions=running is None)
    _hush(session)
    if MIXED in config.settings.values():
        _add_dispatch(session)
    return session


def _started(config: SparkConfig, pair: Pair, jars: Sequence[str | Path] | None, more: dict[str, str]) -> Any:
    """A new Spark. What is secret is not among its settings yet: they are arguments of a process."""
    from pyspark.sql import SparkSession

    wanted = config.open | {key: value for key, value in more.items() if not is_secret(key)}
    files = None if jars is None else [Path(jar) for jar in jars]
    if files is None:
        wanted[PACKAGES] = _joined(more.get(PACKAGES), *config.packages)
    else:
        for file in files:
            if not file.is_file():
                raise Failure(f"There is no jar {file}.", Exit.USAGE)
        require_runtime(pair, [file.name for file in files])
        wanted[JARS] = _joined(more.get(JARS), *map(str, files))
    require_java(pair.java, pair.spark)
    wanted[EXTENSIONS] = _joined(more.get(EXTENSIONS), config.settings[EXTENSIONS])
    builder = SparkSession.builder
    for key, value in wanted.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as refused:
        if not is_sparks_error(refused):
            raise
        reason = reason_of(refused).rstrip(".") or "it gives no reason"
        raise Failure(f"Spark did not start: {reason}. Its own words are on the error stream.") from None


def _beside(running: Any, config: SparkConfig) -> Any:
    """A session of the Spark that runs. Raises Failure where that lacks what cannot be added."""
    extensions = running.conf.get(EXTENSIONS, "")
    if config.settings[EXTENSIONS] not in extensions.split(","):
        hint = f"Stop it, or start it with {EXTENSIONS}={config.settings[EXTENSIONS]} and {config.packages[0]}."
        raise Failure(f"The Spark that runs in this process has no Iceberg. {hint}", Exit.CONFLICT)
    for key in ("spark.sql.catalogImplementation", "spark.hadoop.hive.metastore.uris"):
        wanted = config.settings.get(key)
        if wanted is not None and running._jsparkSession.sparkContext().conf().get(key, "") != wanted:
            raise Failure(
                f"hive_catalog asks for a Spark that was started with {key}={wanted}; stop this one.", Exit.CONFLICT
            )
    return running.newSession()


def _add_dispatch(session: Any) -> None:
    """Give Spark the catalog of mixed databases, which is compiled for it the first time."""
    import pyspark

    runtime = next((jar for jar in _jars_of(session) if RUNTIME.search(jar.name)), None)
    if runtime is None:
        raise Failure("The Spark that runs has no jar of Iceberg's runtime among its spark.jars.", Exit.CONFLICT)
    jar = dispatch_jar(Path(pyspark.__file__).parent / "jars", runtime)
    java = session._jvm.java
    java.lang.Thread.currentThread().getContextClassLoader().addURL(java.io.File(str(jar)).toURI().toURL())
    session.sparkContext._jsc.addJar(str(jar))


def _joined(*parts: str | None) -> str:
    return ",".join(dict.fromkeys(each for part in parts if part for each in part.split(",")))


def _give(session: Any, settings: Mapping[str, str], *, to_later_sessions: bool) -> None:
    """Settings for this session, and for those that newSession() makes, where Spark is ours."""
    own = session._jsparkSession.sessionState().conf()
    shared = session._jsparkSession.sparkContext().conf()
    for key, value in settings.items():
        own.setConfString(key, value)
        if to_later_sessions or "redaction" in key:
            shared.set(key, value)


def _hush(session: Any) -> None:
    """The loggers that write down the headers of requests, tokens included, where Spark's log is set to DEBUG."""
    java = session._jvm.org.apache.logging.log4j
    for name in TALKATIVE:
        java.core.config.Configurator.setLevel(name, java.Level.INFO)
