"""Creating a schema with all its parents and owners: one transaction, the same few statements at any depth."""

from __future__ import annotations

import itertools
import sys
from functools import partial

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed

DEPTHS = (1, 5, 10, 16)


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.create_schema", arguments)
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from authz.models import AuditEntry
    from benchmarks.population import CATALOG, METALAKE, first_catalog
    from catalogs.models import Schema
    from catalogs.services import schemas
    from metalake.lineage import Address
    from metalake.models import Outbox

    owner = first_catalog()
    numbers = itertools.count(1)

    def create(depth: int) -> None:
        path = ":".join([f"top{next(numbers)}", *(f"level{n}" for n in range(1, depth))])
        schemas.create_schema(owner, Address(metalake=METALAKE, catalog=CATALOG, schema=path), None, {})

    for depth in DEPTHS:
        duration = median(timed(partial(create, depth), 50))
        before = [model.objects.count() for model in (Schema, AuditEntry, Outbox)]
        most = 8 if connection.vendor == "sqlite" else 12  # PostgreSQL locks catalog, parent and owner too
        claim(f"SQL statements at depth {depth:2} ({duration:.2f} ms)", statements(partial(create, depth)), most)
        after = [model.objects.count() for model in (Schema, AuditEntry, Outbox)]
        assert [new - old for new, old in zip(after, before, strict=True)] == [depth] * 3
        with CaptureQueriesContext(connection) as captured:
            create(depth)
        begun = sum(query["sql"].startswith("BEGIN") for query in captured.captured_queries)
        assert begun, "the transaction was not seen"
        claim(f"transactions at depth {depth:2}", begun, 1)
    owners = Schema.objects.values_list("owner_user_id", flat=True).distinct().count()
    claim("owners of all that was made", owners, 1)
    finish()


if __name__ == "__main__":
    main(sys.argv[1:])
