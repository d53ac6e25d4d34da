"""The parts of a review that run on Spark's executors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipelines.review.grants import Given, Needs, Used, last_use
from pipelines.review.holdings import holdings
from pipelines.review.regions import Regions
from pipelines.review.rules import Rule
from pipelines.review.state import Grant, Named, Principal
from pipelines.review.tables import RIGHTS
from pipelines.review.usage import Need, needs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLICES = 16  # tasks: enough to show progress; starting a Python worker costs as much as thousands of rows


def rights(
    session: SparkSession,
    about: tuple[Any, ...],
    principals: Sequence[Principal],
    grants: Iterable[Grant],
    rules: Sequence[Rule],
    types: Mapping[int, str],
) -> tuple[DataFrame, Callable[[], int]]:
    """The rows of RIGHTS, and a function that returns the number of finished principals.

    `about` are the common leading values of all rows, `grants` those in force.
    """
    by_role: dict[int, list[Grant]] = defaultdict(list)
    for grant in grants:
        by_role[grant.given.role].append(grant)
    context = session.sparkContext
    known, done = context.broadcast((dict(by_role), list(rules), dict(types))), context.accumulator(0)

    def resolved(some: Iterable[Principal]) -> Iterator[tuple[Any, ...]]:
        of_roles, given_rules, given_types = known.value
        regions = Regions(given_rules, given_types)
        for principal in some:
            for each in list(holdings(principal, of_roles, regions)):
                exceptions = [_shown(one) for one in each.exceptions]
                yield (*about, principal.name, each.privilege, each.kind, *_shown(each.on), exceptions)
            done.add(1)

    slices = max(1, min(SLICES, len(principals)))
    rows = context.parallelize(principals, slices).mapPartitions(resolved)
    return session.createDataFrame(rows, RIGHTS.columns, verifySchema=False), lambda: int(done.value or 0)


def _shown(on: Named) -> tuple[int, str, str]:
    return on.lineage[-1], on.kind, on.name


def used(
    session: SparkSession,
    uses: Sequence[Used],
    grants: Sequence[Given],
    roles: Mapping[str, Sequence[int]],
    operations: Mapping[str, Needs],
) -> tuple[dict[Given, float], dict[Given, Need]]:
    """When each grant was last used, and the needs of roles."""
    holders: dict[int, set[str]] = defaultdict(set)
    for user, of_user in roles.items():
        for role in of_user:
            holders[role].add(user)
    context = session.sparkContext
    known = context.broadcast((list(grants), dict(roles), dict(holders), dict(operations)))

    def counted(some: Iterable[Used]) -> Iterator[tuple[Given, tuple[float, Need | None]]]:
        given, given_roles, given_holders, given_operations = known.value
        mine = list(some)
        needed = needs(given, mine, given_roles, given_operations)
        for grant, last in last_use(given, mine, given_holders, given_operations).items():
            yield grant, (last, needed.get(grant))

    slices = max(1, min(SLICES, len(uses) // 10_000))
    pairs = context.parallelize(uses, slices).mapPartitions(counted).reduceByKey(_both).collect() if uses else []
    return (
        {grant: last for grant, (last, _) in pairs},
        {grant: need for grant, (_, need) in pairs if need is not None},
    )


def _both(one: tuple[float, Need | None], other: tuple[float, Need | None]) -> tuple[float, Need | None]:
    need = one[1].and_(other[1]) if one[1] and other[1] else one[1] or other[1]
    return max(one[0], other[0]), need
