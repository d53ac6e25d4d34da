"""The lineage of a table that 1,000 views read, five levels deep.

`python -m benchmarks.view_lineage [views]` takes that many views instead of 1,000. It goes through the native wire,
called in this process, and what the views read is written as reading their SQL would.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed

if TYPE_CHECKING:
    from metalake.models import Securable

VIEWS, LEVELS, ROUNDS = 1000, 5, 15
LIMIT = 200.0  # milliseconds


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.view_lineage", arguments)
    views = int(arguments[0]) if arguments else VIEWS
    world = World(views)
    links = world.lineage("tables/few")["readBy"]
    assert len(links) == LEVELS, links
    whole = world.lineage("tables/many")["readBy"]
    assert len(whole) == views and max(each["level"] for each in whole) == LEVELS
    used = time.process_time()
    times = timed(lambda: world.lineage("tables/many"), ROUNDS, 0)
    used = (time.process_time() - used) / ROUNDS * 1000
    print(f"  load {os.getloadavg()[0]:.1f}: {used:.1f} ms on a core of our own")
    claim(f"lineage of a table under {views:,} views", median(times), LIMIT, unit=" ms")
    few, many = (statements(lambda of=of: world.lineage(f"tables/{of}")) for of in ("few", "many"))  # type: ignore[misc]
    claim(f"SQL statements of it, beyond those of a table under {LEVELS} views ({few})", many - few, 0)
    finish()


class World:
    """Two tables with views on views on them: many of them, and one on each level."""

    def __init__(self, views: int) -> None:
        from django.test import Client

        from authz.callers.identity import issue_token
        from authz.models import User
        from benchmarks import population
        from metalake.kinds import Kind

        actor = population.first_catalog()
        self.owner = User.objects.get(username="admin")
        self.schema = population.schema(actor, "s")
        population.children(self.schema, ["few", "many"], Kind.TABLE, self.owner)
        for table, wide in (("few", 1), ("many", views // LEVELS)):
            for level in range(LEVELS):
                self._add(table, level, wide)
        population.analyze()
        self.client, self.token = Client(), issue_token(self.owner, "bench")

    def _add(self, table: str, level: int, wide: int) -> None:
        """Views of one level, each of which reads one of the level below."""
        from metalake.kinds import Kind
        from metalake.models import Securable
        from views_mgmt.models import ViewMeta

        rows = Securable.objects.bulk_create(
            Securable.made(Kind.VIEW, f"{table}{level}_{n}", self.schema, owner_user_id=self.owner.pk, creator="bench")
            for n in range(wide)
        )
        metalake, catalog, schema = self.schema.lineage_ids
        place = {"metalake_id": metalake, "catalog_id": catalog, "schema_id": schema}
        has = {"engine": "spark", "format": "metalake", "read_version": 1}
        ViewMeta.objects.bulk_create(ViewMeta(view_id=row.id, view_name=row.name, **place, **has) for row in rows)
        self._note(rows, table, level)

    def _note(self, rows: list[Securable], table: str, level: int) -> None:
        from benchmarks.population import CATALOG
        from views_mgmt.models import ViewRead
        from views_mgmt.services.dependencies import key_of

        metalake = self.schema.lineage_ids[0]
        names = [(CATALOG, "s", f"{table}{level - 1}_{n}" if level else table) for n in range(len(rows))]
        ViewRead.objects.bulk_create(
            ViewRead(
                view_id=row.id,
                metalake_id=metalake,
                key=key_of((catalog, schema, name)),
                catalog=catalog,
                schema=schema,
                name=name,
                dialects=["spark"],
                columns=[["id", "id"], ["total", "price"]],
            )
            for row, (catalog, schema, name) in zip(rows, names, strict=True)
        )

    def lineage(self, of: str) -> Any:
        path = f"/api/metalakes/bench/catalogs/lake/schemas/s/{of}/lineage"
        answer = self.client.get(path, headers={"Authorization": f"Bearer {self.token}"})
        assert answer.status_code == 200, answer.content
        return answer.json()


if __name__ == "__main__":
    main(sys.argv[1:])
