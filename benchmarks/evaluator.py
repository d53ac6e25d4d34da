"""One decision at 100,000 grants and depth 10: identity, lineage and rights, as in a request."""

from __future__ import annotations

import sys

from benchmarks.harness import claim, finish, median, on_both_databases, percentile, statements, timed

GRANTS = 100_000
DEPTH = 10


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.evaluator", arguments)
    from authz import operations, policy
    from authz.callers.identity import authenticate, issue_token
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, analyze, children, first_catalog, grant, member, role, schema
    from catalogs.lookup import find
    from metalake.kinds import Kind
    from metalake.lineage import Address
    from metalake.privileges import Privilege

    owner = first_catalog()
    admin = User.objects.get(username="admin")
    # metalake, catalog, seven schemas and a table make ten levels.
    path = ":".join(f"level{n}" for n in range(DEPTH - 3))
    home = schema(owner, path)
    tables = children(home, (f"t{n}" for n in range(GRANTS // 10)), Kind.TABLE, admin)
    reader = member("reader")
    roles = [role(f"role{n}", *([reader] if n < 5 else [])) for n in range(10)]
    for one in roles:
        grant(one, Privilege.SELECT_TABLE, tables)
    grant(roles[0], Privilege.USE_CATALOG, [home.lineage_ids[1]])
    grant(roles[1], Privilege.USE_SCHEMA, [home.lineage_ids[2]])
    analyze()

    header = f"Bearer {issue_token(reader, 'bench')}"
    ident = Address(metalake=METALAKE, catalog=CATALOG, schema=path, leaf="t5000")

    def ask() -> None:
        actor = authenticate(header)
        policy.require(actor, operations.LOAD_TABLE, find(actor, ident))

    actor = authenticate(header)
    table = find(actor, ident)
    assert len(table.nodes) == DEPTH
    alone = timed(lambda: policy.require(actor, operations.LOAD_TABLE, table), 20_000, 500)
    print(f"  evaluator alone: p50 {median(alone) * 1000:.1f} us, p99 {percentile(alone, 0.99) * 1000:.1f} us")
    claim("evaluator p99", percentile(alone, 0.99), 1, unit=" ms")
    whole = timed(ask, 5000, 200)
    print(f"  identity + lineage + rights: p50 {median(whole):.3f} ms, p99 {percentile(whole, 0.99):.3f} ms")
    claim("SQL statements for identity and rights", statements(ask), 2)
    finish()


if __name__ == "__main__":
    main(sys.argv[1:])
