"""Every write says what it holds: by the one way that looks again, or why nothing can be moved away from it."""

from __future__ import annotations

import ast
from functools import cache

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
    ("authz/services/own_password.py", "change_password"): "accounts keep their names",
    ("authz/callers/accounts.py", "vouch_for"): "accounts keep their names",
    ("authz/services/tokens.py", "issue"): "accounts keep their names",
    ("authz/services/tokens.py", "revoke"): "by its id, of the caller's own",
    ("access/plans/plan.py", "_store"): "a new row of the caller's own",
    ("access/plans/apply.py", "_note"): "by its id, of the caller's own",
    ("catalogs/services/metalakes.py", "create_metalake"): "lies in nothing that could be renamed",
    ("outside/mirror.py", "import_leaves"): "the server's own, by ids",
    ("outside/mirror_schemas.py", "import_schemas"): "the server's own, by ids",
    ("outside/views.py", "_note_metadata"): "the server's own, by its id",
    ("outside/reads.py", "_remove_dropped"): "the server's own, by its id",
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


@cache
def all_calls() -> list[tuple[str, str, ast.Call]]:
    """Each call: its file, the outermost function that it is in, and itself."""
    found = []
    for path in RULES:
        functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
        inner = {below for top in functions for below in ast.walk(top) if below is not top}
        for top in functions:
            if top not in inner:
                nodes = [node for node in ast.walk(top) if isinstance(node, ast.Call)]
                found += [(path.relative_to(REPOSITORY).as_posix(), top.name, node) for node in nodes]
    return found


def calls(name: str) -> list[tuple[str, str, ast.Call]]:
    """Those of a function by this name."""
    return [each for each in all_calls() if _name(each[2].func) == name]


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def held(call: ast.Call) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == "holds"), None)


def test_a_write_that_holds_nothing_says_why() -> None:
    found = ((file, function, held(call)) for file, function, call in calls("write"))
    values = [each for each in found if each[2] is not None]
    of_nothing = [each for each in values if isinstance(each[2], ast.Constant) and each[2].value is None]
    assert {each[:2] for each in of_nothing} == HOLDS_NOTHING.keys()
    assert {each[:2] for each in values if each not in of_nothing} == WAYS


def test_no_other_transaction_is_begun() -> None:
    assert {(file, function) for file, function, _ in calls("atomic")} == OTHERS


def test_whoever_grants_or_owns_holds_the_object() -> None:
    """Changes of rights that name objects say which, and those of roles and people alone name none."""
    on = {(file, of): any(word.arg == "on" for word in call.keywords) for file, of, call in calls("change")}
    without = {of for (file, of), named in on.items() if not named}
    assert without == {
        *("add_person", "invite", "add_user", "remove_user", "add_group", "remove_group", "set_group_users"),
        *("drop_role", "assign_roles", "unassign_roles"),
        *("withdraw", "approve", "decline"),  # of a request, which changes no right itself
    }
