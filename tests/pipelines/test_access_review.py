"""The access review, whole: read from a real server, resolved in a real Spark, compared, published, told."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.pipelines.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
MODULE = "pipelines.access_review"
KILLED = """
import pipelines.access_review as review, pipelines.results as results
class Killed(BaseException): pass
def killed(*_): raise Killed
"""


def small_world(lab: Lab) -> None:
    """mia may read travel but for one table; rita may read one table twice over, and never did."""
    catalog = {"name": "lake", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}}
    lab.call("POST", "catalogs", body=catalog)
    for name in ("travel", "travel:nyc"):
        lab.call("POST", "catalogs", "lake", "schemas", body={"name": name})
    columns = [{"name": "a", "type": "integer", "nullable": True}]
    for schema, table in (("travel", "airports"), ("travel:nyc", "flights"), ("travel:nyc", "secret")):
        path = ("catalogs", "lake", "schemas", schema, "tables")
        lab.call("POST", *path, body={"name": table, "columns": columns})
    for user in ("mia", "rita"):
        lab.call("POST", "users", body={"name": user})
    travel = ("schema", "lake.travel")
    make_role(lab, "readers", "mia", [
        ("catalog", "lake", ["use_catalog", "use_schema"]),
        (*travel, ["select_table"]),
        ("table", "lake.travel:nyc.secret", ["-select_table"]),
    ])  # fmt: skip
    make_role(lab, "planners", "rita", [
        ("catalog", "lake", ["use_catalog"]),
        (*travel, ["use_schema", "select_table"]),
        ("schema", "lake.travel:nyc", ["select_table"]),
        ("table", "lake.travel:nyc.flights", ["select_table"]),
    ])  # fmt: skip


def make_role(lab: Lab, name: str, user: str, given: list[tuple[str, str, list[str]]]) -> None:
    securables = [
        {
            "type": kind,
            "fullName": on,
            "privileges": [
                {"name": each.lstrip("-"), "condition": "deny" if each[0] == "-" else "allow"} for each in privileges
            ],
        }
        for kind, on, privileges in given
    ]
    lab.call("POST", "roles", body={"name": name, "properties": {}, "securableObjects": securables})
    lab.call("PUT", "permissions", "users", user, "grant", body={"roleNames": [name]})


def used(lab: Lab, *uses: tuple[str, str]) -> str:
    """Code by which the record of use has these loads of tables by now."""
    ids = {line["name"]: line["id"] for line in lab.admin.lines("bulk", "metalakes", lab.metalake, "access", "state")
           if line.get("topic") == "object"}  # fmt: skip
    hour = int(time.time()) // 3600
    lines: list[dict[str, Any]] = [{"completeUntil": "2026-01-01T00:00:00.000000Z"}]
    lines += [
        {"operation": "load_table", "outcome": "allowed", "user": user, "on": ids[table], "hour": hour, "last": 5}
        for user, table in uses
    ]
    return f"import pipelines.access_review as r\nr.use_of = lambda *_: iter({lines!r})"


def rights(lab: Lab, principal: str, privilege: str) -> list[tuple[str, list[str]]]:
    rows = lab.rows(
        "select object_name, exceptions.name as but from system.access.rights where review = 'now' and kind = 'table' "
        f"and principal = '{principal}' and privilege = '{privilege}'"
    )
    return sorted((row["object_name"], row["but"]) for row in rows)


def test_it_works(lab: Lab) -> None:
    small_world(lab)
    before = used(lab, ("rita", "flights"), ("mia", "airports"))
    code, output = lab.run(MODULE, "--days=0", "--sample=500", before=before)
    assert code == 0, output
    assert "no difference" in output and lab.token not in output
    assert rights(lab, "mia", "select_table") == [("lake.travel", ["lake.travel:nyc.secret"])]
    assert rights(lab, "rita", "select_table") == [("lake.travel", [])]
    assert rights(lab, "admin", "select_table") == [(lab.metalake, [])]
    verdicts = {
        (row["role"], row["object_name"], row["privilege"]): (row["verdict"], row["by_name"])
        for row in lab.rows("select * from system.access.grants where verdict is not null")
    }
    assert verdicts == {
        ("planners", "lake.travel:nyc", "select_table"): ("redundant", "lake.travel"),
        ("planners", "lake.travel:nyc.flights", "select_table"): ("redundant", "lake.travel"),
    }
    needs = {
        (row["role"], row["privilege"]): (row["object_name"], row["narrowest_name"])
        for row in lab.rows("select * from system.access.role_needs")
    }
    assert needs["planners", "select_table"] == ("lake.travel", "lake.travel:nyc.flights")
    assert needs["readers", "select_table"] == ("lake.travel", "lake.travel.airports")
    said = lab.call("GET", "access", "review")
    assert said["review"]["redundantCount"] == 2
    assert [each["on"]["fullName"] for each in said["findings"] if each["verdict"]] == [
        "lake.travel:nyc", "lake.travel:nyc.flights",
    ]  # fmt: skip
    code, output = lab.run(MODULE, "--days=0", before=before)
    assert code == 0 and "Nothing changed" in output


def state_of(lab: Lab) -> str:
    """All that a review left, without the moments and keys that differ from run to run."""
    tables = ("rights", "grants", "role_needs", "reviews")
    rows = {
        name: sorted(str(sorted(row.items())) for row in lab.rows(f"select * from system.access.{name}"))
        for name in tables
    }
    return json.dumps([rows, [sorted(lab.refs("access", name)) for name in tables]])


@pytest.mark.parametrize(
    ("case", "end"),
    [
        ("written and not published", "results.Pending.publish = killed"),
        ("published and not at its end", "review.delivery.deliver = killed"),
    ],
)
def test_a_run_that_is_killed_and_run_again(lab: Lab, case: str, end: str) -> None:
    small_world(lab)
    before = used(lab, ("rita", "flights"))
    replaced = end.split(" = ")[0]
    half = ["try:", "    review.main(['--days=0', '--sample=100'])", "except Killed:", "    pass"]
    lab.python("\n".join([before, KILLED, f"own = {replaced}", end, *half, f"{replaced} = own"]))
    assert "review" not in lab.call("GET", "access", "review")
    assert ("written and" in case) == (lab.rows("select * from system.access.reviews") == [])
    code, output = lab.run(MODULE, "--days=0", "--sample=100", before=before)
    assert code == 0 and ("no difference" if "written and" in case else "Nothing changed") in output, output
    left = state_of(lab)
    assert '["main"], ["main"], ["main"], ["main"]' in left
    assert lab.call("GET", "access", "review")["review"]["redundantCount"] == 2
    assert rights(lab, "mia", "select_table") == [("lake.travel", ["lake.travel:nyc.secret"])]


def test_what_the_server_says_otherwise_is_not_shown(lab: Lab) -> None:
    small_world(lab)
    wrong = (
        "import pipelines.review.comparing as c\nown = c.answers\nc.answers = lambda *a: [not each for each in own(*a)]"
    )
    code, output = lab.run(MODULE, "--sample=50", before=f"{used(lab)}\n{wrong}")
    lab.python("import pipelines.review.comparing as c\nimport importlib\nimportlib.reload(c)")
    assert code == 1 and "50 of 50 rows are not what the server says" in output
    assert lab.rows("select * from system.access.rights") == []
    assert lab.refs("access", "rights") <= {"main"}


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("--as-of=then", "--as-of is a moment"),
        ("--days=many", "--days is a whole number"),
        ("--colour=red", "is no argument"),
    ],
)
def test_wrong_arguments(lab: Lab, argument: str, says: str) -> None:
    code, output = lab.run(MODULE, argument)
    assert code == 2 and says in output and "Traceback" not in output


def test_who_may_not_read_all_is_refused(lab: Lab) -> None:
    lab.call("POST", "users", body={"name": "nils"})
    lab.token = lab.token_of("nils")
    code, output = lab.run(MODULE)
    assert code == 3 and "nils may not" in output
