"""The system catalog of a metalake: where its jobs write their results, and the principal that writes there.

Its tables are governed like any other's. The principal is a member without a password, whose tokens are those of runs
(jobs.running.ledger); its role says all that it may do. See docs/decisions/system-catalog.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from authz import operations, policy
from authz.access import questions
from authz.access.asking import Place
from authz.actor import Actor
from authz.models import Invitation, Member, Role, User
from authz.services import owners, people, roles
from authz.services.changing import enter
from authz.services.entries import Ask
from catalogs.models import Catalog, Schema
from catalogs.services import catalogs, schemas
from jobs.services.runs import require_person
from metalake.errors import AlreadyExists, Conflict, NotFound
from metalake.kinds import CatalogType, Kind
from metalake.lineage import Address, Located, Node
from metalake.privileges import Privilege

CATALOG, PROVIDER = "system", "lakehouse-iceberg"
SCHEMAS = ("access", "audit", "lineage")
PRINCIPAL, ROLE = "system-jobs", "system-jobs"
RIGHTS = (
    Privilege.USE_CATALOG,
    Privilege.USE_SCHEMA,
    Privilege.CREATE_TABLE,
    Privilege.SELECT_TABLE,
    Privilege.MODIFY_TABLE,
)
MARK = "system-catalog"  # the property by which it is known to be ours
MOST_READERS = 1_000


@dataclass(frozen=True)
class System:
    """What there is, what this call made of it, and the members who may read the tables, by schema.

    `more_readers`: there are more than MOST_READERS of a schema, and the first are named.
    """

    made: tuple[str, ...]
    readers: dict[str, list[str]]
    more_readers: bool


def create(actor: Actor, metalake: str) -> System:
    """Make the system catalog with its schemas, principal and role, or what of them is missing.

    The metalake's owner alone may. Each part is a change of its own; a call that stopped half-way is made again.
    Raises AlreadyExists where the name of the catalog, the principal or the role is another's.
    """
    require_person(actor)
    top = enter(actor, metalake)
    policy.require(actor, operations.CREATE_SYSTEM_CATALOG, top)
    _require_free(actor, top)
    made = [*_make_catalog(actor, metalake, top), *_make_principal(actor.refreshed(), metalake, top)]
    readers = {schema: _readers(actor.refreshed(), metalake, schema) for schema in SCHEMAS}
    shown = {schema: names[:MOST_READERS] for schema, names in readers.items()}
    return System(tuple(made), shown, any(len(names) > MOST_READERS for names in readers.values()))


def principal_of(metalake_id: int) -> User:
    """The account that writes results in a metalake. Raises NotFound where the system catalog has not been made."""
    member = Member.objects.filter(metalake_id=metalake_id, user__username=PRINCIPAL).select_related("user").first()
    ours = Catalog.objects.filter(parent_id=metalake_id, name=CATALOG).first()
    if member is None or ours is None or not _is_ours(ours):
        raise NotFound(
            "The metalake has no system catalog for the results of this job yet: its owner makes it (gcli system "
            "create).",
            kind=Kind.CATALOG,
        )
    return member.user


def _is_ours(catalog: Catalog) -> bool:
    return catalog.provider == PROVIDER and catalog.properties.get(MARK) == "true"


def _require_free(actor: Actor, top: Located) -> None:
    """Raise AlreadyExists for a namesake: what is written there would be read by whoever made it."""
    catalog = Catalog.objects.filter(parent_id=top.id, name=CATALOG).first()
    if catalog is not None and not _is_ours(catalog):
        raise AlreadyExists(
            f"Catalog {CATALOG} is another one, so the system catalog cannot have its name: rename it first.",
            kind=Kind.CATALOG,
        )
    if catalog is not None and _owner(catalog) not in (_owner(top.metalake), (actor.id, None)):
        raise Conflict(
            f"Catalog {CATALOG} has another owner than the metalake, who would read everybody's access in it: make the "
            "metalake's owner its owner first.",
            kind=Kind.CATALOG,
        )
    account = User.objects.filter(username=PRINCIPAL).first()
    if account is not None and _signs_in(account):
        raise AlreadyExists(
            f"{PRINCIPAL} is an account that signs in, so it cannot be the principal of jobs: an operator renames it.",
            kind="user",
        )


def _owner(row: Catalog | Node) -> tuple[int | None, int | None]:
    return row.owner_user_id, row.owner_group_id


def _signs_in(account: User) -> bool:
    return account.has_usable_password() or account.is_staff or Invitation.objects.filter(user=account).exists()


def _make_catalog(actor: Actor, metalake: str, top: Located) -> list[str]:
    made = []
    row = Catalog.objects.filter(parent_id=top.id, name=CATALOG).first()
    if row is None:
        comment = "Results of Metalake's jobs."
        properties = {MARK: "true"}
        row = catalogs.create_catalog(
            actor, metalake, CATALOG, CatalogType.RELATIONAL.value, PROVIDER, comment, properties
        )
        made.append(f"catalog {CATALOG}")
    if _owner(row) != _owner(top.metalake):  # a group's member made it
        owner = owners.get_owner(actor, metalake, Kind.METALAKE, metalake)
        owners.set_owner(actor.refreshed(), metalake, Kind.CATALOG, CATALOG, owner.name, owner.type)
    for name in SCHEMAS:
        if not Schema.objects.filter(parent_id=row.pk, name=name).exists():
            schemas.create_schema(actor.refreshed(), Address(metalake=metalake, catalog=CATALOG, schema=name), None, {})
            made.append(f"schema {CATALOG}.{name}")
    return made


def _make_principal(actor: Actor, metalake: str, top: Located) -> list[str]:
    made = []
    if not Member.objects.filter(metalake_id=top.id, user__username=PRINCIPAL).exists():
        people.add_user(actor, metalake, PRINCIPAL)
        made.append(f"user {PRINCIPAL}")
    if not Role.objects.filter(parent_id=top.id, name=ROLE).exists():
        entries = [(privilege.value, "allow") for privilege in RIGHTS]
        roles.create_role(actor, metalake, ROLE, securables=[Ask(Kind.CATALOG, CATALOG, entries)])
        made.append(f"role {ROLE}")
    if ROLE not in people.get_user(actor.refreshed(), metalake, PRINCIPAL).roles:
        roles.assign_roles(actor.refreshed(), metalake, "user", PRINCIPAL, [ROLE])
        made.append(f"role {ROLE} of {PRINCIPAL}")
    return made


def _readers(actor: Actor, metalake: str, schema: str) -> list[str]:
    on = Place(Kind.SCHEMA, f"{CATALOG}.{schema}")
    _, reached = questions.who_reaches(actor, metalake, on, None, Privilege.SELECT_TABLE, "")
    return [access.user for access, _ in zip(reached, range(MOST_READERS + 1), strict=False)]
