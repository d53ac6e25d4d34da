"""The jobs that write tables, each with a world, changes to it, and what to read of its results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from metalake_client.failures import Failure
from metalake_client.rest import Client
from pipelines.results import KEY, UNIT
from tests.names import own_name
from tests.pipelines import test_access_review, test_audit_rollup, test_view_check
from tests.pipelines.conftest import Lab
from tests.pipelines.submitting import Submitted

PATIENCE = 240  # seconds for a run
MASTER = "local-cluster[1,1,1024]"

Change = Callable[[int], None]


@dataclass(frozen=True)
class Case:
    """A job: `begin` makes a world and says how to change it, so that the next run has something to write.

    `groups` are tables that one commit shows; `queries` read all that is the same in two metalakes.
    """

    module: str
    arguments: tuple[str, ...]
    begin: Callable[[Lab], Change]
    groups: tuple[tuple[str, ...], ...]
    queries: tuple[str, ...]


def begin_review(lab: Lab) -> Change:
    test_access_review.small_world(lab)
    token = lab.admin.call("POST", "tokens", body={"name": own_name("t"), "user": "mia"})["token"]["secret"]
    table = ("catalogs", "lake", "schemas", "travel", "tables", "airports")
    Client(lab.server.url, token=token).call("GET", "metalakes", lab.metalake, *table)  # which its role needs
    airports = ("table", "lake.travel.airports", ["select_table"])
    return lambda number: test_access_review.make_role(lab, f"more{number}", "mia", [airports])


def begin_rollup(lab: Lab) -> Change:
    past = test_audit_rollup.begun(lab)

    def change(number: int) -> None:
        past.audit(3, "table.altered", f"lake.nyc.late{number}", changed="y")
        past.use(2 + number // 12, f"used_{lab.metalake}", times=10 + number, hour=6 + number % 12)

    return change


def begin_check(lab: Lab) -> Change:
    test_view_check.make_lake(lab)
    path = ("catalogs", "lake", "schemas", "nyc", "views")
    columns = [("id", "long")]
    return lambda number: lab.call(
        "POST", *path, body=test_view_check.view(f"more{number}", "SELECT id, city FROM orders", columns)
    )


CASES = {
    "access_review": Case(
        "pipelines.access_review",
        ("--days=90", "--sample=50"),
        begin_review,
        (("access.rights", "access.grants", "access.role_needs", "access.reviews"),),
        (
            "select principal, privilege, kind, object_name, exceptions.name from system.access.rights",
            "select role, privilege, effect, object_name, holders, verdict, by_name from system.access.grants",
            # without what the job itself used, which is more the further its earlier runs came
            "select role, privilege, object_name, uses from system.access.role_needs where role <> 'system-jobs'",
            "select grants, redundant, shadowed from system.access.reviews",
        ),
    ),
    "audit_rollup": Case(
        "pipelines.audit_rollup",
        ("--days=2",),
        begin_rollup,
        (
            ("audit.changes", "audit.refusals", "audit.use", "audit.daily_use", "audit.days"),
            ("audit.dormant_objects", "audit.dormant_people"),
        ),
        (
            "select day, event, actor, name from system.audit.changes where day >= date'2021-01-01'",
            "select day, asked, why from system.audit.refusals where day >= date'2021-01-01'",
            "select day, hour, operation, outcome, times from system.audit.use",
            "select day, member, engine, allowed, refused from system.audit.daily_use",
            "select day, changes, refusals from system.audit.days where day >= date'2021-01-01'",
            "select kind, path from system.audit.dormant_objects",
        ),
    ),
    "view_check": Case(
        "pipelines.view_check",
        (),
        begin_check,
        (("lineage.view_checks", "lineage.view_reads", "lineage.view_columns"),),
        (
            "select view[2], dialect, is_broken, problems, differences from system.lineage.view_checks",
            "select view[2], levels, name from system.lineage.view_reads",
            "select view[2], column, type, of_name, of_column from system.lineage.view_columns",
        ),
    ),
}


class Runs:
    """The runs of one job in one metalake."""

    def __init__(self, case: Case, lab: Lab, folder: Path) -> None:
        self.case, self.lab, self.folder = case, lab, folder
        self.change = case.begin(lab)

    def start(self, folder: Path | None = None, *, master: str = MASTER, disk: int | None = None) -> Submitted:
        return Submitted(
            self.case.module,
            self.case.arguments,
            self.lab.environment,
            folder or self.folder,
            master=master,
            warehouses=[Path(self.lab.server.environment["METALAKE_WAREHOUSE"])],
            disk=disk,
        )

    def run_to_its_end(self) -> float:
        """How many seconds it took."""
        began, run = time.monotonic(), self.start()
        assert run.ends(PATIENCE) == 0, run.output[-5000:]
        return time.monotonic() - began

    def results(self) -> list[list[str]]:
        """All that the job left, without what differs between two metalakes."""
        rows = [self.lab.rows(query) for query in self.case.queries]
        return [sorted(str(sorted(row.items())).replace(self.lab.metalake, "m") for row in each) for each in rows]

    def require_whole(self, *, branches: bool) -> None:
        """Nothing is seen of a unit in one table that is not in the others; at the end no branch is left."""
        for group in self.case.groups:
            seen = {name: self._units(name, branches) for name in group}
            assert len(set(seen.values())) == 1, seen

    def _units(self, name: str, branches: bool) -> frozenset[tuple[str, str]]:
        schema, _, table = name.partition(".")
        try:
            metadata = self.lab.admin.call_iceberg(
                "GET", self.lab.metalake, "system", "namespaces", schema, "tables", table
            )["metadata"]
        except Failure as failure:
            assert failure.kind == "NoSuchTableException", failure
            return frozenset()
        refs = metadata.get("refs") or {}
        assert branches or {*refs} <= {"main"}, refs
        snapshots = {each["snapshot-id"]: each for each in metadata.get("snapshots") or ()}
        at, units = (refs.get("main") or {}).get("snapshot-id"), dict[str, str]()
        while at in snapshots:
            summary = snapshots[at]["summary"]
            if UNIT in summary:
                units.setdefault(summary[UNIT], summary[KEY])
            at = snapshots[at].get("parent-snapshot-id")
        return frozenset(units.items())
