"""A metalake's system catalog, to which its jobs write their results, and the principal that writes there.

Its tables are governed like any others. The principal is a service account without a password, whose only tokens are
those of runs (jobs.running.run_rows); its role has all its privileges. See docs/decisions/system-catalog.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from access.explain import queries
from access.explain.permissions import Place
from authz import operations, policy
from authz.actor import Actor
from authz.callers.run_tokens import require_person
from authz.models import Grant, Invitation, Member, Role, User
from authz.name_rules import JOBS_PRINCIPAL
from authz.services import grants, owners, people, roles
from authz.services.change import enter
from authz.services.grant_entries import Ask
from authz.services.ownership_rules import Party, party_of
from catalogs.models import Catalog, Schema
from catalogs.services import catalogs, schemas
from jobs.models import SystemCatalog
from metalake.errors import AlreadyExists, Conflict, Forbidden, NotFound
from metalake.kinds import LEAVES, CatalogType, Kind
from metalake.lineage import Address, Located
from metalake.models import Metalake, Securable
from metalake.privileges import Privilege

CATALOG, PROVIDER = "system", "lakehouse-iceberg"
SCHEMAS = ("access", "audit", "lineage")
PRINCIPAL, ROLE = JOBS_PRINCIPAL, "system-jobs"
RIGHTS = (
    Privilege.USE_CATALOG,
    Privilege.USE_SCHEMA,
    Privilege.CREATE_TABLE,
    Privilege.SELECT_TABLE,
    Privilege.MODIFY_TABLE,
)
MOST_READERS = 1_000


@dataclass(frozen=True)
class System:
    """What this call created, and the members who may read the tables, by schema.

    With `more_readers`, a schema has more than MOST_READERS, and only the first are named.
    """

    made: tuple[str, ...]
    readers: dict[str, list[str]]
    more_readers: bool


def create(actor: Actor, metalake: str) -> System:
    """Create the system catalog with its schemas, principal and role, or whichever of them is missing.

    Only the metalake's owner may. Each part is a separate transaction; after a partial failure, call it again. Raises
    AlreadyExists if the name of the catalog, the principal or the role is taken.
    """
    require_person(actor, "makes no system catalog")
    top = enter(actor, metalake)
    policy.require(actor, operations.CREATE_SYSTEM_CATALOG, top)
    require_free(actor, top)
    made = [*_make_catalog(actor, metalake, top), *_hand_over(actor.refreshed(), metalake, top)]
    made += _make_principal(actor.refreshed(), metalake, top)
    readers = {schema: _readers(actor.refreshed(), metalake, schema) for schema in SCHEMAS}
    shown = {schema: names[:MOST_READERS] for schema, names in readers.items()}
    return System(tuple(made), shown, any(len(names) > MOST_READERS for names in readers.values()))


def principal_of(metalake_id: int) -> User:
    """The account that writes a metalake's results.

    Raises NotFound if there is no system catalog, Conflict if it does not belong to the metalake's owner any more.
    """
    member = Member.objects.filter(metalake_id=metalake_id, user__username=PRINCIPAL).select_related("user").first()
    top = Metalake.objects.get(pk=metalake_id)
    if member is None or _ours(metalake_id) is None:
        raise NotFound(
            "The metalake has no system catalog for the results of this job yet: its owner makes it (gcli system "
            "create).",
            kind=Kind.CATALOG,
        )
    if strange := _of_others(metalake_id, party_of(top)):
        raise _not_ours(strange[0])
    return member.user


def check_home(actor: Actor, home: Located) -> None:
    """Raise Forbidden if the actor may not create in or move into the system catalog, to own what jobs write to."""
    top = Located(nodes=home.nodes[:1])
    if home.catalog.name != CATALOG or actor.name == PRINCIPAL:
        return
    if policy.permits(actor, operations.CREATE_SYSTEM_CATALOG, top):
        return
    if SystemCatalog.objects.filter(catalog_id=home.catalog.id).exists():
        raise Forbidden(
            f"{actor.name} makes nothing in the system catalog, where only jobs and the owner of the metalake do: "
            "choose another catalog.",
            kind=home.kind,
        )


def is_made(metalake_id: int) -> bool:
    return _ours(metalake_id) is not None


def _ours(metalake_id: int) -> Catalog | None:
    """The system catalog; name and properties prove nothing, since anyone who may create catalogs chooses them."""
    return Catalog.objects.filter(parent_id=metalake_id, name=CATALOG, system__isnull=False).first()


def _of_others(metalake_id: int, owner: Party) -> list[Securable]:
    """Those of the system catalog, its result schemas and their contents that have a wrong owner.

    The right one is the metalake's owner or, for the schemas' contents, also the principal, who creates the tables.
    """
    catalog = _ours(metalake_id)
    if catalog is None:
        return []
    inside = Q(parent__parent_id=catalog.pk, parent__name__in=SCHEMAS, kind__in=LEAVES)
    rows = Securable.objects.filter(Q(pk=catalog.pk) | Q(parent_id=catalog.pk, name__in=SCHEMAS) | inside)
    made_there = {owner, (User.objects.filter(username=PRINCIPAL).values_list("pk", flat=True).first(), None)}
    return [row for row in rows.order_by("pk") if party_of(row) not in (made_there if row.kind in LEAVES else {owner})]


def _not_ours(row: Securable) -> Conflict:
    what = f"The {row.kind} {_full_name(row)} has another owner than the metalake"
    advice = "drop it, or hand it to the owner of the metalake"
    if row.kind not in LEAVES:
        advice = "the owner of the metalake takes it over (gcli system create)"
    return Conflict(f"{what}, who would read everybody's access there: {advice}.", kind=row.kind)


def _full_name(row: Securable) -> str:
    names = [row.name]
    while row.kind != Kind.CATALOG and row.parent is not None:
        row = row.parent
        names.insert(0, row.name)
    return ".".join(names)


def require_free(actor: Actor, top: Located) -> None:
    """Raise AlreadyExists if a name is taken: whoever created that object could read the results."""
    if _ours(top.id) is None and Catalog.objects.filter(parent_id=top.id, name=CATALOG).exists():
        raise AlreadyExists(
            f"Catalog {CATALOG} is one that somebody registered, so the system catalog cannot have its name: rename it "
            "first.",
            kind=Kind.CATALOG,
        )
    role = Role.objects.filter(parent_id=top.id, name=ROLE).first()
    if role is not None and party_of(role) not in (party_of(top.metalake), (actor.id, None)):
        raise AlreadyExists(
            f"Role {ROLE} is somebody else's, who may have given it to others: drop it first, and it is made anew.",
            kind=Kind.ROLE,
        )
    account = User.objects.filter(username=PRINCIPAL).first()
    if account is not None and _signs_in(account):
        raise AlreadyExists(
            f"{PRINCIPAL} is an account that signs in, so it cannot be the principal of jobs: an operator renames it.",
            kind="user",
        )


def _signs_in(account: User) -> bool:
    return account.has_usable_password() or account.is_staff or Invitation.objects.filter(user=account).exists()


def _make_catalog(actor: Actor, metalake: str, top: Located) -> list[str]:
    made = []
    row = _ours(top.id)
    if row is None:
        comment, kind = "Results of Metalake's jobs.", CatalogType.RELATIONAL.value
        row = catalogs.create_catalog(actor, metalake, CATALOG, kind, PROVIDER, comment, {}, also=_mark)
        made.append(f"catalog {CATALOG}")
    for name in SCHEMAS:
        if not Schema.objects.filter(parent_id=row.pk, name=name).exists():
            schemas.create_schema(actor.refreshed(), Address(metalake=metalake, catalog=CATALOG, schema=name), None, {})
            made.append(f"schema {CATALOG}.{name}")
    return made


def _mark(row: Catalog) -> None:
    SystemCatalog.objects.create(catalog=row)


def _hand_over(actor: Actor, metalake: str, top: Located) -> list[str]:
    """Transfer the catalog and its schemas to the metalake's owner, who may be a group, or not their creator.

    Raises Conflict for other owners' tables in such a schema: jobs would write into them.
    """
    owner, rows = owners.get_owner(actor, metalake, Kind.METALAKE, metalake), _of_others(top.id, party_of(top.metalake))
    if leaf := next((row for row in rows if row.kind in LEAVES), None):
        raise _not_ours(leaf)
    for row in rows:
        owners.set_owner(actor.refreshed(), metalake, Kind(row.kind), _full_name(row), owner.name, owner.type)
    return [f"owner of {row.kind} {_full_name(row)}" for row in rows if party_of(row) != (actor.id, None)]


def _make_principal(actor: Actor, metalake: str, top: Located) -> list[str]:
    made = []
    if not Member.objects.filter(metalake_id=top.id, user__username=PRINCIPAL).exists():
        people.add_user(actor, metalake, PRINCIPAL)
        made.append(f"user {PRINCIPAL}")
    entries = [(privilege.value, "allow") for privilege in RIGHTS]
    role = Role.objects.filter(parent_id=top.id, name=ROLE).first()
    if role is None:
        roles.create_role(actor, metalake, ROLE, securables=[Ask(Kind.CATALOG, CATALOG, entries)])
        owner = owners.get_owner(actor, metalake, Kind.METALAKE, metalake)
        owners.set_owner(actor.refreshed(), metalake, Kind.ROLE, ROLE, owner.name, owner.type)
        made.append(f"role {ROLE}")
    elif not Grant.objects.filter(group=role.group_id, content_object=_ours(top.id)).exists():  # of a former catalog
        grants.grant_privileges(actor, metalake, ROLE, Kind.CATALOG, CATALOG, entries)
        made.append(f"grants of role {ROLE}")
    if ROLE not in people.get_user(actor.refreshed(), metalake, PRINCIPAL).roles:
        roles.assign_roles(actor.refreshed(), metalake, "user", PRINCIPAL, [ROLE])
        made.append(f"role {ROLE} of {PRINCIPAL}")
    return made


def _readers(actor: Actor, metalake: str, schema: str) -> list[str]:
    on = Place(Kind.SCHEMA, f"{CATALOG}.{schema}")
    _, reached = queries.who_reaches(actor, metalake, on, None, Privilege.SELECT_TABLE, "")
    return [access.user for access, _ in zip(reached, range(MOST_READERS + 1), strict=False)]
