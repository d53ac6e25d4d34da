"""Providers are composed of small stores, whole ones; what is one system's own stays in its folder."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from metalake.interfaces import LARGEST
from metalake.kinds import Kind
from providers.absent import NoPartitions
from providers.base import Provider, lies_outside
from providers.registry import PROVIDERS, provider_class
from providers.settings import NESTED, ExternalSettings
from providers.stores import RemotePartitions, RemotePointers, RemoteSchemas, RemoteStore, RemoteTables
from providers.verbs import VERBS
from providers.view_stores import ReadOnlyViews, RemoteViewPointers, RemoteViews
from tests.architecture.rooms import PROJECT, REPOSITORY, ROOMS

OF_THE_REGISTRY = {path.rpartition(".")[0] for path in PROVIDERS.values() if path.startswith("providers.")}
SYSTEMS = (*sorted(OF_THE_REGISTRY), "providers.hive_like")
BUILT_ON_IT = ("providers.glue.", "providers.hive.")
INTERFACES = {
    "schemas": RemoteSchemas,
    "tables": RemoteTables,
    "partitions": RemotePartitions,
    "pointers": RemotePointers,
    "views": RemoteViews,
    "view_pointers": RemoteViewPointers,
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def lies_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def stores() -> list[type[RemoteStore]]:
    """Of every provider that this server knows, those of the tests too."""
    found = set[type[RemoteStore]]()
    for name in PROVIDERS:
        for offer in provider_class(name).offers({}).values():
            if offer.remote is not None:
                found.add(offer.remote)
                if issubclass(offer.remote, RemoteTables):
                    found |= {offer.remote.partitions, offer.remote.pointers}
    return sorted(found, key=lambda store: store.__qualname__)


def test_a_provider_is_whole() -> None:
    """What the base class cannot ask for: it says what it is, tests its connection and describes its properties."""
    for name in PROVIDERS:
        provider = provider_class(name)
        assert provider.label and provider.test_connection is not Provider.test_connection, name
        assert Kind.SCHEMA in provider.offers({}), name
        if lies_outside(provider.offers({})):
            assert issubclass(provider.settings, ExternalSettings), name
            assert provider.system_names is not Provider.system_names, name
        undescribed = [field for field, info in provider.settings.model_fields.items() if not info.description]
        assert not undescribed, name
        grouped = [property for names in provider.settings.grouped().values() for property in names]
        assert set(grouped) <= set(provider.settings.declared()) and len(grouped) == len(set(grouped)), name
        if PROVIDERS[name].startswith("providers."):
            assert set(grouped) == set(provider.settings.declared()), f"{name}: each property stands in a group"


def offers_table() -> str:
    """The table of docs/providers.md, of the providers that this repository has."""
    lines = ["| Provider | Kept in | Schemas | Tables | Table formats | Partitions | Views | Iceberg views |"]
    lines.append("|---" * lines[0].count(" | ") + "|---|")
    for name in sorted(name for name, path in PROVIDERS.items() if path.startswith("providers.")):
        provider = provider_class(name)
        offers = provider.offers({})
        schema, table, view = (offers[kind] for kind in (Kind.SCHEMA, Kind.TABLE, Kind.VIEW))
        nests = "nested" if schema.nested else "nested by their names" if NESTED in provider.settings.declared() else ""
        partitions = getattr(table.remote, "partitions", NoPartitions)
        cells = [
            f"`{name}`",
            provider.label if lies_outside(offers) else "Metalake",
            ", ".join(filter(None, ["read, write", nests])),
            "read, write",
            ", ".join(sorted(table.formats)),
            "none" if issubclass(partitions, NoPartitions) else "read, write",
            "read" if view.remote and issubclass(view.remote, ReadOnlyViews) else "read, write",
            "yes" if "iceberg" in view.formats else "no",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_page_of_providers_says_what_they_declare() -> None:
    """Whoever changes a declaration replaces the table there by the one that this test prints."""
    table = offers_table()
    assert table in (REPOSITORY / "docs" / "providers.md").read_text(), table


def test_an_interface_is_small() -> None:
    sizes = {name: len(interface.__abstractmethods__) for name, interface in INTERFACES.items()}
    assert not {name: size for name, size in sizes.items() if not 5 <= size <= LARGEST}


def test_a_store_lacks_nothing() -> None:
    lacking = {store: store.__abstractmethods__ for store in stores() if inspect.isabstract(store)}
    assert stores() and not lacking


def test_a_store_that_lacks_a_member_cannot_be_made() -> None:
    class Half(RemotePartitions):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Half(None)  # type: ignore[abstract]


def test_a_verb_is_a_member_of_its_store() -> None:
    for verb in VERBS.values():
        assert callable(getattr(INTERFACES[verb.store], verb.method)), verb
        assert {verb.undone_by, verb.discarded_by} <= {"", *VERBS}, verb


def test_no_other_code_knows_a_system() -> None:
    """But for the registry, where a provider is one line; none imports another."""
    for path in (path for room in ROOMS for path in (REPOSITORY / room).rglob("*.py")):
        module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        others = [system for system in SYSTEMS if not lies_in(module, system)]
        if module.startswith(BUILT_ON_IT):
            others.remove("providers.hive_like")
        known = [name for name in imports(path) if any(lies_in(name, system) for system in others)]
        assert not known, f"{module} imports {known}"


def test_whatever_is_no_system_has_its_place_in_the_contract() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == ["providers"])
    placed = {f"providers.{name}" for layer in layers for name in re.split(r"[\s:|()]+", layer) if name}
    there = {f"providers.{path.stem}" for path in (REPOSITORY / "providers").iterdir() if path.name[0] not in "._"}
    assert there - placed <= OF_THE_REGISTRY and placed <= there


def test_the_general_interface_knows_no_format_of_one_system() -> None:
    general = "remote_objects base stores view_stores absent verbs outcomes remote schema_names settings"
    for name in general.split():
        known = [each for each in imports(REPOSITORY / "providers" / f"{name}.py") if lies_in(each, "formats.hive")]
        assert not known, f"providers/{name}.py imports {known}"
