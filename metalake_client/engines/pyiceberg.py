"""The catalogs of a metalake as PyIceberg's .pyiceberg.yaml, and its variables (docs/engines/pyiceberg.md).

PyIceberg reads its file without replacing anything in it; it takes secrets from variables named after catalogs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from metalake_client.engines import rendered
from metalake_client.engines.catalogs import EngineCatalog, iceberg_uri
from metalake_client.engines.formats import require_iceberg
from metalake_client.engines.rendered import TOKEN, Part, Refusal, Rendered, Settings
from metalake_client.engines.storage import Kind, Storage, storage_of

FILE, VARIABLES = ".pyiceberg.yaml", "pyiceberg.sh"

OURS = "Metalake's rights of the token's user hold; PyIceberg opens the files with its own access to the storage."
ONLY = "only its Iceberg tables are there, through Metalake."

Way = Callable[[str, EngineCatalog], Part]


def render(url: str, metalake: str, catalogs: Iterable[EngineCatalog]) -> Rendered:
    """The file of catalogs, and a shell's file that sets PyIceberg's variables from those with the secrets.

    Raises Failure for catalogs whose names PyIceberg takes for one.
    """
    mark = rendered.mark_of("pyiceberg", url, metalake)
    providers = {name: partial(way, iceberg_uri(url, metalake)) for name, way in PROVIDERS.items()}
    parts = rendered.parts_of("PyIceberg", catalogs, providers)
    lines, exports = ["catalog:"], list[str]()
    for part in parts.parts:
        for name, settings in part.settings.items():
            lines += [f"  {_text(name)}:", *(f"    {key}: {_text(value)}" for key, value in settings.items())]
            exports += _exports(name, storage_of(part.catalog))
    first = f"# {rendered.mark_with(mark)}"
    files = {FILE: "\n".join([first, *lines, ""]), VARIABLES: "\n".join([first, *exports, ""])} if exports else {}
    return Rendered(mark, files, parts.notes, parts.refused)


def name_of(catalog: str) -> str:
    """The name of a catalog in PyIceberg: in its variables all but letters and digits is one hyphen.

    Raises Refusal for one of which nothing is left.
    """
    name = "-".join(re.findall("[a-z0-9]+", catalog.lower()))
    if not name:
        raise Refusal(f"Catalog {catalog} cannot be in PyIceberg, whose variables have the letters A to Z and digits.")
    return name


# -- The ways of the providers


def _iceberg(uri: str, catalog: EngineCatalog) -> Part:
    return _through_rest(uri, catalog, OURS)


def _iceberg_alone(uri: str, catalog: EngineCatalog) -> Part:
    """The Iceberg tables of another system."""
    require_iceberg("PyIceberg", catalog)
    return _through_rest(uri, catalog, OURS, ONLY)


PROVIDERS: Mapping[str, Way] = {"lakehouse-iceberg": _iceberg, "hive": _iceberg_alone, "glue": _iceberg_alone}


# -- Their parts


def _through_rest(uri: str, catalog: EngineCatalog, *notes: str) -> Part:
    name, storage = name_of(catalog.name), storage_of(catalog)
    note = (f"PyIceberg calls it {name}: its variables know no other signs.",) if name != catalog.name else ()
    settings: Settings = {"type": "rest", "uri": uri, "warehouse": catalog.name}
    if Kind.S3 in storage.kinds:
        s3 = storage.s3
        known = {"s3.endpoint": s3.endpoint, "s3.region": s3.region}
        settings |= {key: value for key, value in known.items() if value}
    needed = rendered.needs(_keys(storage).values())
    return Part(catalog=catalog, settings={name: settings}, notes=(*note, *notes, *needed))


def _keys(storage: Storage) -> dict[str, str]:
    """The variables with keys of S3, by PyIceberg's names of them."""
    if Kind.S3 not in storage.kinds:
        return {}
    keys = ("access-key-id", "secret-access-key", "session-token")
    return {f"s3.{key}": storage.s3.variables[key] for key in keys if key in storage.s3.variables}


def _exports(name: str, storage: Storage) -> list[str]:
    """Lines of a shell that give PyIceberg what no file may hold."""
    given = {"token": TOKEN} | _keys(storage)
    return [f'export {variable_of(name, key)}="${{{variable}}}"' for key, variable in given.items()]


def variable_of(name: str, key: str) -> str:
    """PyIceberg's variable for a property of a catalog."""
    spelt = key.replace(".", "__").replace("-", "_")
    return f"PYICEBERG_CATALOG__{name.replace('-', '_')}__{spelt}".upper()


def _text(value: str) -> str:
    """A string of YAML in double quotes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
