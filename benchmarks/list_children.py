"""Listing the children of a schema takes the same with 1,000 and with 1,000,000 schemas in the catalog."""

from __future__ import annotations

import sys

from benchmarks.harness import claim, finish, median, on_both_databases, statements, timed


def main(arguments: list[str]) -> None:
    on_both_databases("benchmarks.list_children", arguments)
    from authz.callers.identity import actor_of
    from authz.models import User
    from benchmarks.population import CATALOG, METALAKE, analyze, children, first_catalog, grant, member, role, schema
    from catalogs.services import schemas
    from metalake.kinds import Kind
    from metalake.lineage import Address
    from metalake.models import Securable
    from metalake.privileges import Privilege

    many = int(arguments[0]) if arguments else 1_000_000
    owner = first_catalog()
    admin = User.objects.get(username="admin")
    parent = schema(owner, "parent")
    children(parent, (f"child{n:03}" for n in range(100)), Kind.SCHEMA, admin)
    reader = member("reader")
    readers = role("readers", reader)
    grant(readers, Privilege.USE_CATALOG, [parent.lineage_ids[1]])
    half = Securable.objects.filter(parent=parent).values_list("pk", flat=True)[:50]
    grant(readers, Privilege.USE_SCHEMA, list(half))

    def listing(user: User) -> tuple[float, int]:
        actor = actor_of(user)
        ident = Address(metalake=METALAKE, catalog=CATALOG, schema="parent")
        act = lambda: schemas.list_schemas(actor, ident)  # noqa: E731
        return median(timed(act, 200)), statements(act)

    def fill(upto: int) -> None:
        have = Securable.objects.filter(kind=Kind.SCHEMA).count()
        width = 1000
        while have < upto:
            top = schema(owner, f"other{have}")
            some = min(width, upto - have - 1)
            children(top, (f"s{n}" for n in range(some)), Kind.SCHEMA, admin)
            have += some + 1
        analyze()

    fill(1000)
    few = {user.username: listing(user) for user in (admin, reader)}
    fill(many)
    for user in (admin, reader):
        lots = listing(user)
        name = user.username
        print(f"  {name}: {few[name][0]:.2f} ms at 1,000 schemas, {lots[0]:.2f} ms at {many:,}, {lots[1]} statements")
        claim(f"listing as {name}, {many:,} : 1,000", lots[0] / few[name][0], 1.5, unit="x")
    finish()


if __name__ == "__main__":
    main(sys.argv[1:])
