"""What must hold of a catalog and its outside system once nothing is under way: the invariants I1-I11."""

from __future__ import annotations

from collections import Counter

from authz.models import AuditEntry, Grant
from catalogs.lookup import by_id
from catalogs.models import Intent, LocationClaim, Mirror, Reservation, Table
from catalogs.services.provider_of import provider_at
from metalake.kinds import LEAVES, Kind
from metalake.models import Securable
from tests.outside.outside import is_foreign
from tests.outside.writes import REQUEST, Bench
from tests.providers.world import LEVELS
from views_mgmt import versions


def check_invariants(bench: Bench) -> list[str]:
    """I1-I11 of this catalog as sentences; no other write may be under way."""
    wrong = []
    live = Intent.objects.filter(state__in=Intent.LIVE)
    wrong += [f"I3: {intent} at {intent.steps} is live: {intent.last_failure}" for intent in live]
    wrong += [f"I3: {held.name} is still reserved" for held in Reservation.objects.all()]
    return wrong + _of_the_tree(bench) + _of_both_sides(bench) + _of_the_audit() + _of_references() + _of_views(bench)


def _of_the_tree(bench: Bench) -> list[str]:
    rows = {row.pk: row for row in Securable.objects.all()}
    wrong = [f"I1: {row.name} has no parent" for row in rows.values() if row.parent_id and row.parent_id not in rows]
    for row in rows.values():
        if row.parent_id in rows and row.lineage != f"{rows[row.parent_id].lineage}/{row.pk}":
            wrong.append(f"I1: {row.name} lies at {row.lineage}")
        if not row.owner_user_id and not row.owner_group_id:
            wrong.append(f"I8: {row.name} has no owner")
    names = Counter((row.parent_id, row.slot, row.name) for row in rows.values())
    return wrong + [f"I4: {name} is there {count} times" for name, count in names.items() if count > 1]


def _of_both_sides(bench: Bench) -> list[str]:
    """I2, I6, I7: the same is here and there, but for what others made; no marker of what was undone; nothing lost."""
    there = bench.outside.objects()
    markers = {name: bench.outside.marker_of(found.definition) for name, found in there.items()}
    above = {row.pk: row.wire_name for row in Mirror.objects.filter(in_catalog__name=bench.catalog)}
    here: dict[str, Mirror] = {}
    for mirror in Mirror.objects.select_related("securable").filter(in_catalog__name=bench.catalog):
        is_leaf = mirror.securable.kind in LEAVES
        parent = above.get(mirror.securable.parent_id or 0)
        here[f"{parent}{LEVELS}{mirror.wire_name}" if is_leaf else mirror.wire_name] = mirror
    ours = {name for name in there if not is_foreign(name)}
    adopted = {name for name in ours if not markers[name]}
    wrong = [f"I2: {name} is here and not there" for name in here.keys() - there.keys()]
    wrong += [f"I2: {name} is there and not here" for name in ours - here.keys() - adopted]
    for name in here.keys() & there.keys():
        known, found = here[name], there[name]
        only_listed = not known.version and is_foreign(name)
        if not only_listed and (known.identity, known.version) != (found.identity, found.version):
            wrong.append(f"I2: {name} is another than is known")
    aborted = {str(id) for id in Intent.objects.filter(state=Intent.State.ABORTED).values_list("pk", flat=True)}
    wrong += [f"I6: {name} has the marker of what was undone" for name in markers if markers[name] in aborted]
    foreign = bench.outside.foreign
    return wrong + [f"I7: {name} of others was touched" for name in foreign if there.get(name) != foreign[name]]


def _of_the_audit() -> list[str]:
    entries = AuditEntry.objects.exclude(actor="metalake")
    return [
        f"I5: {entry} was audited without its request or object"
        for entry in entries
        if entry.actor != "mia" or entry.request_id != REQUEST or not entry.object_id
    ]


def _of_references() -> list[str]:
    there = set(Securable.objects.values_list("pk", flat=True))
    lost = set(Grant.objects.values_list("content_object_id", flat=True)) - there
    wrong = [f"I9: a grant on {id} that is gone" for id in lost]
    claimed = set(LocationClaim.objects.values_list("securable_id", flat=True))
    return wrong + [f"I10: {id} is claimed" for id in claimed ^ set(Table.objects.values_list("pk", flat=True))]


def _of_views(bench: Bench) -> list[str]:
    """I11: the present version of each view is what its system has, and no other view has one.

    That of an Iceberg view is what the file says to which its entry points, by its author.
    """
    rows = {row.pk: row for row in Securable.objects.filter(kind=Kind.VIEW)}
    present = {version.view_id: version for version in versions.present()}
    wrong = [f"I11: {version.view.view_name} is gone" for id, version in present.items() if id not in rows]
    for mirror in Mirror.objects.filter(in_catalog__name=bench.catalog, securable__kind=Kind.VIEW):
        row, version = rows[mirror.pk], present.get(mirror.pk)
        located = by_id(row.pk)
        assert located is not None
        entry = provider_at(located).views.read(mirror.definition)
        if version is None:
            wrong.append(f"I11: {row.name} has no version")
        elif entry.definition is None:
            file, author = version.stored_as["metadata-location"], version.audit_info["creator"]
            if (file, author) != (entry.metadata_location, "mia"):
                wrong.append(f"I11: {row.name} has the version of {file} by {author}")
        elif version.definition != entry.definition:
            wrong.append(f"I11: {row.name} has another version")
        elif (version.view.view_name, version.view.schema_id) != (row.name, row.parent_id):
            wrong.append(f"I11: {row.name} has the version of {version.view.view_name}")
    return wrong
