"""Tables of an outside system: read through, made, altered, renamed and dropped there by intents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.utils import timezone

from authz import operations, policy
from authz.locks import Lock
from authz.policy import Actor
from catalogs import lookup
from catalogs.lookup import by_id
from catalogs.models import Intent, Mirror
from catalogs.services import chains, finding, places
from catalogs.services import free_names as naming
from catalogs.services.changes import keeping
from catalogs.services.claims import require_unclaimed
from catalogs.services.holding import hold_each
from formats.native.changes import as_json
from formats.native.tables import CreateTableRequest
from metalake.errors import Conflict, Invalid, NotFound, Unsupported
from metalake.events import event_of, record, stands
from metalake.hierarchy import check_segment
from metalake.kinds import Kind, Slot
from metalake.lineage import Address, Located
from metalake.models import Securable, new_id
from metalake.names import dotted
from outside import ground, intents, mirror, nesting
from outside.calls import pages, provider_at_external
from outside.intents import Draft, Name, Work, step
from outside.reading import current, fetch, kept_of, listed_since, settled
from outside.work import again, alteration_work, drop_work, files_kept, names_on, retried
from providers.answers import METADATA_FILE, NewTable, Remote
from providers.base import Provider


@dataclass(frozen=True)
class ExternalTable:
    """A table as its own system has it, and when that was asked."""

    found: Located
    provider: Provider
    definition: dict[str, Any]
    taken_at: datetime

    @property
    def published(self) -> Located:
        return self.found

    def shown(self) -> dict[str, Any]:
        """The native wire's table without its name and audit."""
        return self.provider.tables.show(self.definition)


def take_list(
    actor: Actor, schema: Located, *, force: bool = False, iceberg: bool = False
) -> tuple[set[str] | None, datetime]:
    """The names that may be shown of a schema's tables, and as of when; None where all rows may.

    Also what was just made here, which a listing may not know yet. With `iceberg`, other formats are left out.
    """
    provider = provider_at_external(schema)
    levels = mirror.levels_at(schema.id)
    if levels is None:
        return set(), timezone.now()
    names: set[str] | None = None
    taken_at = listed_since(schema.id, schema.catalog.id, provider, force)
    if taken_at is None:
        taken_at = timezone.now()
        names = _fetch_names(actor, schema, provider, levels, taken_at)
    if iceberg or provider.tables.hides_some:
        shown = _shown(schema, provider, iceberg)
        names = shown if names is None else names & shown
    return names, taken_at


def _fetch_names(actor: Actor, schema: Located, provider: Provider, levels: list[str], taken_at: datetime) -> set[str]:
    names: set[str] = set()
    try:
        for page in pages(actor, schema, provider, "list_tables", schema=levels):
            mirror.meet_tables(schema, page, taken_at)
            names |= mirror.table_names(page)
    except NotFound:
        fetch(actor, schema, provider, kept_of(schema))
        raise
    return settled(actor, schema, provider, names, Kind.TABLE, taken_at)


def _shown(schema: Located, provider: Provider, iceberg: bool) -> set[str]:
    """By what is known of them: a table that was only listed so far is shown, and found out when it is loaded."""
    rows = mirror.of_tables(schema.id)
    said, unsaid = rows.exclude(formats=""), rows.filter(formats="")
    shows = provider.tables.shows
    listed = (Remote(name, {}, formats=formats) for name, formats in said.values_list("wire_name", "formats"))
    shown = {table.name for table in listed if (not iceberg or METADATA_FILE in table.formats) and shows(table)}
    return shown | {
        name
        for name, definition in unsaid.values_list("wire_name", "definition").iterator()
        if not definition
        or (shows(Remote(name, definition)) and not (iceberg and provider.pointers.location(definition) is None))
    }


def loaded(
    actor: Actor, found: Located, *, force: bool = False, as_published: bool = False, iceberg: bool = False
) -> ExternalTable:
    """Raises NotFound where it is gone there, hidden by the catalog's settings or, with `iceberg`, of another format.

    Just after a write, what it published is shown: asking once more might fail, and the write has not.
    """
    provider = provider_at_external(found)
    kept = kept_of(found) if as_published else current(actor, found, provider, force=force)
    _require_shown(found, provider, kept, iceberg)
    return ExternalTable(found, provider, kept.definition, kept.taken_at)


def _require_shown(found: Located, provider: Provider, kept: Mirror, iceberg: bool) -> None:
    """Raise NotFound of a table that the catalog's settings hide or, with `iceberg`, that is in another format."""
    is_shown = provider.tables.shows(Remote(kept.wire_name, kept.definition))
    if not is_shown or (iceberg and provider.pointers.location(kept.definition) is None):
        raise found.missing()


def create(actor: Actor, ident: Address, home: Located, asked: CreateTableRequest) -> Located:
    """Make a table as the native wire describes it."""
    return make(actor, ident, home, lambda provider, schema: provider.tables.draft(schema, asked))


def make(actor: Actor, ident: Address, home: Located, defined: Callable[[Provider, Remote], NewTable]) -> Located:
    """Make a table outside as `defined` for its schema there, which is made first where it only led to others."""
    provider = provider_at_external(home)
    name = provider.names.folded(ident.leaf or "")
    check_segment(name, Kind.TABLE)
    naming.require_free(home, name)
    place = _place_to_make(actor, home, provider)
    schema = place or _home_there(actor, home, provider)
    levels = mirror.provider_levels(schema)
    new = defined(provider, schema)
    named = provider.tables.named_places(new.definition, new.plan)
    bound = ground.require_named(actor, home, schema, provider, named)
    plan = ground.kept_to(bound, new.plan)
    require_unclaimed(provider, new.definition.get("location"), provider.pointers.location(new.definition))

    def decide(actor: Actor) -> Draft:
        fresh = again(actor, home, operations.CREATE_TABLE)
        naming.require_free(fresh, name)
        marker = new_id()
        first, on_the_way = _making(place, fresh, marker)
        return Draft(
            id=marker,
            verb="create_table",
            catalog_id=fresh.catalog.id,
            full_name=dotted([*fresh.full_name, name]),
            names=[*on_the_way, (fresh.id, Slot.TABULAR, name)],
            must_stay=names_on(fresh),
            steps=[
                *first,
                step(
                    "create_table",
                    schema=levels,
                    table=name,
                    definition=new.definition,
                    plan=plan,
                    marker=str(marker),
                    by_owner=places.chooses(actor, fresh),
                ),
            ],
            arguments={"schema_id": fresh.id, "name": name},
        )

    intents.carry(actor, decide, holds=partial(hold_each, [(home, Lock.MOVES)]))
    return lookup.find(actor, replace(ident, leaf=name))


def _home_there(actor: Actor, home: Located, provider: Provider) -> Remote:
    """A schema that has its place, asked now. Raises NotFound where it is gone, or another has its name there."""
    kept = current(actor, home, provider, force=True)
    return Remote(kept.wire_name, kept.definition, kept.identity, kept.version, kind=Kind.SCHEMA)


def _place_to_make(actor: Actor, home: Located, provider: Provider) -> Remote | None:
    """What a schema is to become there that only led to others so far; None for one that has its place."""
    if mirror.levels_at(home.id) is not None:
        return None
    if there := nesting.foreign_place(actor, home, provider, home.path):
        return there
    levels = provider.names.levels_of(home.path)
    return Remote(mirror.wire_name(levels), provider.schemas.draft(None, {}), kind=Kind.SCHEMA)


def _making(place: Remote | None, home: Located, marker: int) -> tuple[list[dict[str, Any]], list[Name]]:
    """The call that makes the place of a schema, and its name: held, so that nobody meets it before it is published."""
    if place is None:
        return [], []
    arguments = {"schema": mirror.provider_levels(place), "definition": place.definition, "marker": str(marker)}
    return [step("create_schema", may_adopt=True, **arguments)], names_on(home)[-1:]


def _publish_place(intent: Intent, home: Located) -> None:
    for each in intent.steps:
        if each["verb"] == "create_schema":
            name = mirror.wire_name(each["arguments"]["schema"])
            mirror.keep(home.id, home.catalog.id, name, Remote(**each["result"]), timezone.now())


def _home(actor: Actor, intent: Intent) -> Located:
    home = by_id(intent.arguments["schema_id"])
    if home is None:
        raise NotFound(f"The schema of {intent.full_name} does not exist.", kind=Kind.SCHEMA)
    policy.require(actor, operations.CREATE_TABLE, home)
    return home


def _publish_creation(actor: Actor, intent: Intent) -> None:
    now, home, name = timezone.now(), _home(actor, intent), intent.arguments["name"]
    naming.require_free(home, name)
    _publish_place(intent, home)
    row = Securable.made(Kind.TABLE, name, home, owner_user_id=actor.id, creator=actor.name)
    row.save(force_insert=True)
    mirror.keep(row.id, home.catalog.id, name, Remote(**intent.steps[-1]["result"]), now)
    full_name = [*home.full_name, name]
    record(event_of(actor, "table.created", Kind.TABLE, row.id, full_name, home.metalake.id, [stands(row)]))


intents.register("create_table", Work(_publish_creation, allowed=_home))


def alter(actor: Actor, found: Located, updates: Sequence[Any]) -> None:
    again(actor, found, operations.ALTER_TABLE)
    provider = provider_at_external(found)

    def attempt() -> None:
        kept = current(actor, found, provider, force=True)
        meant = keeping(updates, lambda: provider.tables.show(kept.definition)["properties"])
        expected = provider.tables.altered(kept.definition, meant)
        if expected != kept.definition:
            before, after = (provider.tables.named_places(each) for each in (kept.definition, expected))
            ground.require_new(actor, found, provider, before, after)
            draft = partial(
                _alteration,
                found=found,
                kept=kept,
                changes=as_json(meant),
                expected=expected,
                actions=sorted({update.action for update in updates}),
            )
            intents.carry(actor, draft, holds=_holding(found))

    retried(attempt)


def _holding(found: Located) -> Callable[[], None]:
    """What a write to a table waits for: nothing else is put into its schema, and it stays where it is."""
    return partial(hold_each, [(found.above(), Lock.MOVES), (found, Lock.CHANGES)])


def _alteration(
    actor: Actor,
    found: Located,
    kept: Mirror,
    changes: list[dict[str, Any]],
    expected: dict[str, Any],
    actions: list[str],
) -> Draft:
    fresh, marker = again(actor, found, operations.ALTER_TABLE), new_id()
    return Draft(
        id=marker,
        verb="alter_table",
        catalog_id=fresh.catalog.id,
        full_name=dotted(fresh.full_name),
        names=names_on(fresh)[-1:],
        must_stay=names_on(fresh)[:-1],
        steps=[
            step(
                "alter_table",
                schema=mirror.levels_at(fresh.nodes[-2].id),
                table=kept.wire_name,
                changes=changes,
                version=kept.version,
                expected=expected,
                marker=str(marker),
                by_owner=places.chooses(actor, fresh),
            )
        ],
        arguments={"id": fresh.id, "details": {"changed": actions}},
    )


intents.register("alter_table", alteration_work(operations.ALTER_TABLE))


def rename(actor: Actor, found: Located, target: Address, *, iceberg: bool = False) -> None:
    """To another name, or another schema of the catalog, as far as the system can.

    The other schema's place is made first where it only led to others. Raises NotFound of a table that `loaded` hides.
    """
    # Before the target is looked for, so that whether it exists is told only to who may move the table.
    elsewhere = _is_elsewhere(found, target)
    again(actor, found, operations.MOVE_TABLE if elsewhere else operations.ALTER_TABLE)
    finding.find_schema(actor, target)
    provider, place, meant = provider_at_external(found), None, found.above()
    if elsewhere:
        meant = home = lookup.find(actor, target.of_schema())
        policy.require(actor, operations.CREATE_TABLE, home)
        place = _place_to_make(actor, home, provider)
        if place is None:
            _home_there(actor, home, provider)
    kept = current(actor, found, provider, force=True)
    _require_shown(found, provider, kept, iceberg)
    name = provider.names.folded(target.leaf or "")
    check_segment(name, Kind.TABLE)
    remote = Remote(kept.wire_name, kept.definition, kept.identity, kept.version)

    def decide(actor: Actor) -> Draft:
        home = lookup.find(actor, target.of_schema())
        if home.id != meant.id:
            raise home.missing()
        moves = home.id != found.nodes[-2].id
        fresh = again(actor, found, operations.MOVE_TABLE if moves else operations.ALTER_TABLE)
        if moves:
            policy.require(actor, operations.CREATE_TABLE, home)
            policy.require_no_escape(actor, fresh, home)
        naming.require_free_for_rename(fresh, home, name)
        levels = mirror.levels_at(home.id) if place is None else mirror.provider_levels(place)
        if levels is None:
            raise Conflict(f"Schema {home.path.logical()} lost its place meanwhile; try again.", kind=Kind.SCHEMA)
        marker = new_id()
        first, on_the_way = _making(place, home, marker)
        calls = provider.tables.renaming(mirror.levels_at(fresh.nodes[-2].id) or [], levels, name, remote, str(marker))
        return Draft(
            id=marker,
            verb="rename_table",
            catalog_id=fresh.catalog.id,
            full_name=dotted(fresh.full_name),
            names=[*on_the_way, *names_on(fresh)[-1:], (home.id, Slot.TABULAR, name)],
            must_stay=[*names_on(fresh)[:-1], *names_on(home)],
            steps=[
                *first,
                *(step(verb, **arguments, by_owner=places.chooses(actor, fresh)) for verb, arguments in calls),
            ],
            arguments={"id": fresh.id, "home_id": home.id, "name": name, "moves": moves},
        )

    held = [(meant, Lock.MOVES), (found.above(), Lock.MOVES), (found, Lock.CHANGES)]
    intents.carry(actor, decide, holds=partial(hold_each, held))


def _is_elsewhere(found: Located, target: Address) -> bool:
    """Whether the target names another schema than the table's own."""
    try:
        return chains.path_in(found, target.schema or "") != found.path
    except (Invalid, Unsupported):
        return True


def _publish_rename(actor: Actor, intent: Intent) -> None:
    """The same row under its new name: grants, owner and history stay with it."""
    found, home = by_id(intent.arguments["id"]), by_id(intent.arguments["home_id"])
    if found is None or home is None:
        raise NotFound(f"{intent.full_name} does not exist.", kind=Kind.TABLE)
    name, now = intent.arguments["name"], timezone.now()
    Securable.objects.filter(pk=found.id).update(
        name=name,
        parent_id=home.id,
        lineage=f"{home.lineage}/{found.id}",
        last_modifier=actor.name,
        last_modified_time=now,
    )
    answer = next(each["result"] for each in intent.steps if each["result"] and each["verb"] != "create_schema")
    mirror.keep(found.id, home.catalog.id, name, Remote(**answer), now)
    _publish_place(intent, home)
    facts = [stands(Securable.objects.get(pk=found.id))]
    full_name, was = [*home.full_name, name], dotted(found.full_name)
    record(event_of(actor, "table.renamed", Kind.TABLE, found.id, full_name, home.metalake.id, facts, was=was))


def _may_still_rename(actor: Actor, intent: Intent) -> None:
    found = by_id(intent.arguments["id"])
    if found is None:
        raise NotFound(f"{intent.full_name} does not exist.", kind=Kind.TABLE)
    policy.require(actor, operations.MOVE_TABLE if intent.arguments["moves"] else operations.ALTER_TABLE, found)


intents.register("rename_table", Work(_publish_rename, _may_still_rename))


def drop(actor: Actor, found: Located, *, purge: bool, iceberg: bool = False) -> str | None:
    """Why its files stay that the system would have deleted. Raises NotFound of a table that `loaded` hides."""
    again(actor, found, operations.DROP_TABLE)
    provider = provider_at_external(found)
    kept = current(actor, found, provider, force=True)  # never a namesake made outside, which nobody here may drop
    _require_shown(found, provider, kept, iceberg)

    def decide(actor: Actor) -> Draft:
        fresh = again(actor, found, operations.DROP_TABLE)
        levels = mirror.levels_at(fresh.nodes[-2].id)
        return Draft(
            id=new_id(),
            verb="drop_table",
            catalog_id=fresh.catalog.id,
            full_name=dotted(fresh.full_name),
            names=names_on(fresh)[-1:],
            steps=[
                step(
                    "drop_table",
                    schema=levels,
                    table=kept.wire_name,
                    identity=kept.identity,
                    purge=purge,
                    by_owner=places.chooses(actor, fresh),
                )
            ],
            arguments={"id": fresh.id, "details": {"purge": purge}},
        )

    return files_kept(intents.carry(actor, decide, holds=_holding(found)))


intents.register("drop_table", drop_work(operations.DROP_TABLE))
