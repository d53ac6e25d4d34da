"""Every write says what it holds: by the one way that looks again, or why nothing can be moved away from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.rooms import REPOSITORY, ROOMS

RULES = [
    path
    for folder in ROOMS
    if folder not in ("metalake", "server", "formats", "providers", "iceberg_rest", "frontend")
    for path in sorted((REPOSITORY / folder).rglob("*.py"))
    if "migrations" not in path.parts
]
# What writes without holding anything, and why that is enough.
HOLDS_NOTHING = {
    ("authz/services/invitations.py", "accept"): "accounts keep their names",
    ("authz/callers/accounts.py", "vouch_for"): "accounts keep their names",
    ("authz/services/tokens.py", "issue"): "accounts keep their names",
    ("authz/services/tokens.py", "revoke"): "by its id, of the caller's own",
    ("access/plans/plan.py", "_store"): "a new row of the caller's own",
    ("access/plans/apply.py", "_note"): "by its id, of the caller's own",
    ("catalogs/services/metalakes.py", "create_metalake"): "lies in nothing that could be renamed",
    ("outside/mirror.py", "meet_leaves"): "the server's own, by ids",
    ("outside/mirror_schemas.py", "meet_schemas"): "the server's own, by ids",
    ("outside/views.py", "_note_metadata"): "the server's own, by its id",
    ("outside/reads.py", "_bury"): "the server's own, by its id",
    ("outside/monitoring.py", "decide_all"): "operators' pages name writes by their ids",
    ("outside/intents.py", "_publish"): "by ids whose names the intent holds",
}
# Who takes what it holds from its caller, or is one of the ways; the last three hold a metalake, and views by id.
WAYS = {
    ("authz/services/change.py", "change"),
    ("catalogs/services/writes.py", "write_to"),
    ("outside/intents.py", "_promise"),
    ("catalogs/managed/pointers.py", "move_all"),
    ("outside/monitoring.py", "_decide"),
    ("access/usage/reports.py", "deliver"),
    ("views_mgmt/services/findings.py", "deliver"),
    ("views_mgmt/delegated/orphans.py", "_is_done"),
}
# Transactions beside `write`, which change nothing that was found by a name.
OTHERS = {
    ("authz/transactions.py", "_write"),
    ("authz/admin.py", "revoke"),
    ("authz/facts.py", "_seal_some"),
    ("authz/models/people.py", "save"),
    ("outside/intents.py", "abort"),
    ("outside/recovery.py", "_claim"),
    ("catalogs/services/catalogs.py", "altered_provider"),
    ("catalogs/services/connections.py", "test_altered_connection"),
    ("outside/refresh.py", "begin"),
    ("catalogs/services/place_release.py", "release_for_operator"),
    ("catalogs/services/purge.py", "_note_purge"),
    ("catalogs/services/vacuum.py", "_remove_file"),
    ("catalogs/services/vacuum.py", "_remove_folder"),
    ("catalogs/vault.py", "rewrap"),
    ("views_mgmt/services/dependencies.py", "_store"),
    ("jobs/admin.py", "cancel"),
    ("jobs/running/run_rows.py", "take"),
    ("jobs/running/run_rows.py", "prepare"),
    ("jobs/running/run_rows.py", "finish"),
    ("jobs/running/run_rows.py", "lose"),
}
Call = tuple[str, str, ast.Call]


def calls(name: str) -> Iterator[Call]:
    """Each call of a function by this name: its file, the outermost function that it is in, and itself."""
    for path in RULES:
        tree = ast.parse(path.read_text())
        tops = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        inner = {id(below) for top in tops for below in ast.walk(top) if below is not top}
        for top in tops:
            if id(top) in inner:
                continue
            for node in ast.walk(top):
                if isinstance(node, ast.Call) and _name(node.func) == name:
                    yield path.relative_to(REPOSITORY).as_posix(), top.name, node


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def held(call: ast.Call) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == "holds"), None)


WRITES = [found for found in calls("write") if held(found[2]) is not None]


def test_there_are_writes_to_look_at() -> None:
    assert {found[:2] for found in WRITES} == HOLDS_NOTHING.keys() | WAYS


@pytest.mark.parametrize(("file", "function", "call"), WRITES, ids=[f"{file}:{of}" for file, of, _ in WRITES])
def test_a_write_that_holds_nothing_says_why(file: str, function: str, call: ast.Call) -> None:
    value = held(call)
    is_nothing = isinstance(value, ast.Constant) and value.value is None
    assert is_nothing == ((file, function) in HOLDS_NOTHING)


def test_no_other_transaction_is_begun() -> None:
    assert {(file, function) for file, function, _ in calls("atomic")} == OTHERS


def test_whoever_grants_or_owns_holds_the_object() -> None:
    """Changes of rights that name objects say which, and those of roles and people alone name none."""
    on = {(file, of): any(word.arg == "on" for word in call.keywords) for file, of, call in calls("change")}
    without = {of for (file, of), named in on.items() if not named}
    assert without == {
        *("add_person", "invite", "add_user", "remove_user", "add_group", "remove_group", "set_group_users"),
        *("drop_role", "assign_roles", "unassign_roles"),
    }
