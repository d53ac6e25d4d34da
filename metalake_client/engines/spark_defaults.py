"""The settings of spark.py as Spark's spark-defaults.conf (docs/engines/spark.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from metalake_client.engines import rendered
from metalake_client.engines.catalogs import EngineCatalog
from metalake_client.engines.databases import DRIVERS, PASSWORD
from metalake_client.engines.rendered import Rendered, variable_of
from metalake_client.engines.spark import spark_settings
from metalake_client.engines.spark_storage import PROPERTIES

FILE = "spark-defaults.conf"
DEFAULT_VERSION = "4.1"


def render(
    url: str,
    metalake: str,
    catalogs: Iterable[EngineCatalog],
    *,
    version: str = DEFAULT_VERSION,
    hive_catalog: str | None = None,
) -> Rendered:
    """One file; what the server masks is a reference to the environment, which Iceberg resolves, or Spark itself.

    Raises Failure for a Spark that cannot work, and where `hive_catalog` is no Hive catalog among these.
    """
    mark = rendered.mark_of("spark", url, metalake)
    shown = list(catalogs)
    secrets = {each.name: _references(each, version) for each in shown}
    config = spark_settings(url, metalake, shown, spark_version=version, hive_catalog=hive_catalog, secrets=secrets)
    absent = {each.name: f"{each.name}: {each.notes[0]}" for each in config.catalogs if not each.settings}
    settings = {"spark.jars.packages": ",".join(config.packages), **config.settings}
    lines = [
        f"# {rendered.mark_with(mark)}",
        *(f"{_key(key)} {_escaped(value)}" for key, value in settings.items()),
        "",
    ]
    needed = {variable_of(each, key) for each in shown if each.name not in absent for key in secrets[each.name]}
    rights = [f"{each.name}: {each.rights}" for each in config.catalogs if each.settings]
    notes = [note for note in config.notes if note not in absent.values()]
    return Rendered(mark, {FILE: "\n".join(lines)}, (*rights, *notes, *rendered.needs(needed)), absent)


def _references(catalog: EngineCatalog, version: str) -> dict[str, str]:
    """What Iceberg's catalogs resolve, and the password of a database, which Spark itself resolves from Spark 4 on."""
    references = {key: f"env:{variable_of(catalog, key)}" for key in catalog.masked if key in PROPERTIES}
    if catalog.provider in DRIVERS and PASSWORD in catalog.masked and not version.startswith("3."):
        references[PASSWORD] = f"${{env:{variable_of(catalog, PASSWORD)}}}"
    return references


def _key(key: str) -> str:
    """As java.util.Properties reads a key."""
    return re.sub(r"([\\=:\s])", r"\\\1", key)


def _escaped(value: str) -> str:
    """As java.util.Properties reads a value."""
    return value.replace("\\", "\\\\")
