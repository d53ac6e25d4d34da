"""How many statements a write takes, who calls included: BEGIN and COMMIT are not counted.

PostgreSQL takes as many as SQLite: it locks rows by statements of their own, and inserts into several tables by one.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from authz.callers.identity import issue_token
from authz.models import User
from benchmarks import population
from metalake.models import Securable
from metalake.privileges import Privilege
from tests.iceberg_rest.world import COLUMNS, Caller

CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")
PROPERTY = {"action": "set-properties", "updates": {"a": "b"}}


WRITES = ("use_catalog", "use_schema", "create_schema", "create_table", "modify_table")


def by_roles(count: int, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """A member who holds so many roles, each with a right on the catalog, the last with all that the writes need."""
    monkeypatch.setattr(population, "METALAKE", "demo")
    lake = Securable.objects.get(kind="catalog", name="lake").pk
    user, roles = population.member("rita"), population.roles(f"role{n}" for n in range(count))
    population.hold((user, role) for role in roles)
    population.grant_all((role, Privilege.USE_CATALOG, lake, "allow") for role in roles[:-1])
    population.grant_all((roles[-1], Privilege(right), lake, "allow") for right in WRITES)
    return Caller("rita")


@pytest.mark.store
@pytest.mark.parametrize(("depth", "roles"), [(1, 0), (5, 10), (16, 1000)])
@pytest.mark.django_db(transaction=True)
def test_writes_take_few_statements_at_any_depth_with_any_roles(
    depth: int, roles: int, owner: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = by_roles(roles, monkeypatch) if roles else owner
    owner.headers["HTTP_AUTHORIZATION"] = f"Bearer {issue_token(User.objects.get(username=owner.name), 'count')}"
    levels = [f"level{n}" for n in range(depth)]
    tables = f"namespaces/{'%1F'.join(levels)}/tables"
    owner.make_namespace("first")  # with which this process loads the policy
    taken = {
        "namespace": statements(owner, "POST", "namespaces", {"namespace": levels}),
        "table": statements(owner, "POST", tables, {"name": "t", "schema": COLUMNS}),
        "commit": statements(owner, "POST", f"{tables}/t", {"requirements": [], "updates": [PROPERTY]}),
        "drop": statements(owner, "DELETE", f"{tables}/t"),
    }
    assert taken == {"namespace": 8, "table": 10, "commit": 7, "drop": 12}, "on both databases"


def statements(caller: Caller, method: str, path: str, body: Any = None) -> int:
    with CaptureQueriesContext(connection) as captured:
        answer = caller.ask(method, path, body)
    assert answer.status in (200, 204), answer.content
    return sum(not query["sql"].startswith(CONTROL) for query in captured.captured_queries)
