"""A top-level folder of the server is named wherever all are, since nothing checks what pyproject.toml leaves out."""

from __future__ import annotations

from django.apps import apps

from tests.architecture.rooms import CLIENTS, PROJECT, REPOSITORY, ROOMS

TOOLS = PROJECT["tool"]
NO_ROOMS = ("benchmarks", "tests", *CLIENTS)


def test_every_folder_of_code_is_a_room() -> None:
    folders = {path.parent.name for path in REPOSITORY.glob("*/__init__.py")}
    assert folders - set(NO_ROOMS) == set(ROOMS)


def test_every_app_of_ours_is_a_room() -> None:
    ours = {app.name for app in apps.get_app_configs() if (REPOSITORY / app.name).is_dir()}
    assert {"catalogs", "outside"} < ours <= set(ROOMS)


def test_a_room_is_named_where_all_are() -> None:
    assert {name.rstrip(".*") for name in TOOLS["setuptools"]["packages"]["find"]["include"]} == set(ROOMS)
    assert set(ROOMS) < set(TOOLS["ruff"]["lint"]["isort"]["known-first-party"])
    contracts = {contract["name"]: contract for contract in TOOLS["importlinter"]["contracts"]}
    layers = " ".join(contracts["Doors above rules, rules above the world, all above vocabulary"]["layers"])
    words = {word.strip("()").split(".")[0] for word in layers.split()}
    assert words - {"|", ":"} == set(ROOMS)
    assert set(ROOMS) < set(contracts["Clients know nothing of the server"]["forbidden_modules"])
    assert set(contracts["Vendors' libraries stay inside the providers"]["source_modules"]) == {*ROOMS} - {"providers"}
