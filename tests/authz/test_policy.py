"""The real evaluator against the reference model, on random worlds written to the database."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from authz import operations, policy, snapshot
from authz.actor import Actor
from authz.models import Grant, Role
from authz.services import snapshot_changes
from catalogs.services.children import children_shown, schemas_shown
from metalake.errors import Forbidden, NotFound
from metalake.kinds import Kind, slot_of
from metalake.lineage import Located
from metalake.models import Securable
from metalake.privileges import Effect, Privilege
from tests.authz import model
from tests.authz.stored import HOUR, Line, Stored, batches
from tests.authz.worlds import Question, random_questions, random_request, random_world
from tests.profiles import share

pytestmark = [pytest.mark.store, pytest.mark.django_db]

WORLDS = 2_000
QUESTIONS = 50


def ask(stored: Stored, place: int, question: Question) -> str | None:
    """The evaluator's answer in the model's words; None for what a later feature or a service decides."""
    assert question.obj is not None
    actor, line = stored.actor(place, question.user, question.how), stored.line(place, question.obj)
    kind = line.nodes[-1].kind
    try:
        match question.operation:
            case "list_catalogs" | "list_schemas" | "list_tables" | "list_views":
                return "ok" if policy.sees(actor, line) else "unseen"
            case "create_schema":
                return create_schema(actor, line, question.missing)
            case "load_owner":
                policy.require(actor, operations.load_of(kind), line)
            case "set_owner":
                policy.require(actor, operations.own(kind), line)
            case "rename_table":
                policy.require(actor, operations.MOVE_TABLE, line)
            case name if name.upper() in vars(operations) and "role" not in name:
                policy.require(actor, getattr(operations, name.upper()), line)
            case _:
                return None
    except Forbidden:
        return "forbidden"
    except NotFound:
        return "unseen"
    return "ok"


def create_schema(actor: Actor, line: Line, missing: int) -> str:
    """As services.schemas does: a hidden catalog is a miss, everything else without the right is forbidden."""
    if not policy.sees(actor, Line(line.nodes[:2])):
        return "unseen"
    if policy.permits(actor, operations.CREATE_SCHEMA, line):
        return "ok"
    bootstraps = missing and policy.decide(
        operations.BOOTSTRAP_SCHEMA, policy.rights_on(actor, line), line.nodes[-1].kind
    )
    return "ok" if bootstraps else "forbidden"


def supported(world: model.World, question: Question) -> bool:
    return question.obj is not None and world.kind(question.obj) != "role"


@pytest.mark.timeout(600)
def test_agrees_with_the_reference_model() -> None:
    assert agreed(share(WORLDS)) > share(40_000)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_agrees_with_the_reference_model_on_20000_worlds() -> None:
    assert agreed(share(WORLDS)) > share(40_000)


def agreed(worlds: int) -> int:
    """How many questions both answered, all of them alike."""
    asked: dict[str, set[str]] = {}
    disagreements = []
    total = 0
    for first, stored in batches(worlds):
        for place, world in enumerate(stored.worlds):
            for question in random_questions(world, first + place, QUESTIONS):
                if not supported(world, question):
                    continue
                found = ask(stored, place, question)
                if found is None:
                    continue
                wanted = model.answer(world, *question)
                asked.setdefault(question.operation, set()).add(found)
                total += 1
                if found != wanted:
                    disagreements.append((first + place, question, wanted, found))
    assert disagreements == []
    assert all({"ok"} < answers for answers in asked.values()), asked
    return total


LISTS: dict[str, tuple[str, Any]] = {
    "catalog": ("metalake", policy.visible_catalogs),
    "table": ("schema", partial(policy.visible_leaves, kind=Kind.TABLE)),
    "view": ("schema", partial(policy.visible_leaves, kind=Kind.VIEW)),
    "schema": ("catalog schema", policy.visible_schemas),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("most", [snapshot.MOST_NAMED, -1], ids=["grants named", "grants asked for"])
def test_lists_show_what_the_model_shows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST_NAMED", most)
    shown: dict[str, int] = {}
    for first, stored in batches(share(200)):
        for place, world in enumerate(stored.worlds):
            rng = random.Random(first + place)
            for user in list(world.users)[:4]:
                for kind, (containers, visible) in LISTS.items():
                    for obj in telling(world, [o for o in world.objects.values() if o.kind in containers.split()])[:3]:
                        how = random_request(rng, world, 1 / 3)
                        line = stored.line(place, obj)
                        rows = Securable.objects.filter(parent_id=line.nodes[-1].id, slot=slot_of(kind), kind=kind)
                        actor = stored.actor(place, user, how)
                        found = set(visible(actor, line, rows).values_list("pk", flat=True))
                        if kind != "catalog":
                            assert by_statement(actor, line, Kind(kind)) == found, (first + place, user, kind, obj, how)
                        if not policy.sees(actor, line):
                            found = set()
                        wanted = {stored.id(place, child) for child in model.visible(world, user, obj, kind, how)}
                        assert found == wanted, (first + place, user, kind, obj, how)
                        shown[kind] = shown.get(kind, 0) + len(wanted)
    assert min(shown.values()) > share(200), shown


def by_statement(actor: Actor, line: Line, kind: Kind) -> set[int]:
    """The ids that the statement of hot reads lists."""
    container = Located(nodes=line.nodes)
    if kind is Kind.SCHEMA:
        rows = schemas_shown(actor, container, None, None)
    else:
        rows = children_shown(actor, container, kind, policy.shows_leaves(actor, line, kind), None, None)
    assert [name for _, name in rows] == sorted((name for _, name in rows), key=str.encode)
    return {id for id, _ in rows}


def telling(world: model.World, containers: list[model.Securable]) -> list[int]:
    """Those first whose children are not all alike, for the grants they carry or for their owners."""
    on = {grant.obj for grant in world.grants}

    def odd(container: model.Securable) -> int:
        children = [world.objects[child] for child in world.children.get(container.id, ())]
        return sum(child.id in on or child.owner != container.owner for child in children)

    return [container.id for container in sorted(containers, key=odd, reverse=True)]


def test_what_has_ended_is_as_good_as_gone() -> None:
    """Asked now, by the clock, in the middle of the third hour of the worlds."""
    worlds = [world for world in map(random_world, range(100)) if any(g.starts or g.ends for g in world.grants)]
    stored = Stored(worlds, since=time.time() - 2.5 * HOUR)
    kept = [grant for of_role in stored.policy.timed.values() for grants in of_role.values() for grant in grants]
    grants = [grant for world in worlds for grant in world.grants if grant.starts or grant.ends]
    assert len(kept) == sum(not grant.has_ended(2) for grant in grants) < len(grants)
    for place, world in enumerate(worlds):
        for question in random_questions(world, place, QUESTIONS):
            if supported(world, question) and (found := ask(stored, place, question._replace(how=model.BARE))):
                assert found == model.answer(world, *question._replace(how=model.Request(2))), (place, question)


def test_following_all_grants_equals_loading_them() -> None:
    stored = Stored([random_world(seed) for seed in range(40)])
    nothing = replace(stored.policy, grants={}, timed={})
    assert grants_in(stored.policy)["timed"]
    assert grants_in(followed(nothing)) == grants_in(stored.policy)
    Grant.rows.filter(id__in=list(Grant.objects.values_list("id", flat=True))[::3]).delete()
    Grant.rows.filter(starts_at=stored.moment(1)).update(starts_at=None)
    Grant.rows.filter(ends_at=stored.moment(5)).update(starts_at=stored.moment(4), ends_at=None)
    changed = grants_in(snapshot.load())
    assert grants_in(followed(stored.policy)) == changed != grants_in(stored.policy)
    assert changed["timed"]


def followed(policy: snapshot.Snapshot) -> snapshot.Snapshot:
    """Told of every role on every object, and of what is gone besides, as it is published."""
    told = []
    for role in Role.objects.all():
        on = Grant.objects.filter(group=role.group_id).values_list("content_object_id", flat=True)
        told += snapshot_changes.grants_of(role, {*on, *policy.grants.get(role.pk, ()), *policy.timed.get(role.pk, ())})
    return policy.after(policy.epoch + 1, "x", json.loads(json.dumps(told)))


def grants_in(policy: snapshot.Snapshot) -> dict[str, Any]:
    """Their order says nothing."""
    timed = {r: {on: sorted(grants) for on, grants in of_role.items()} for r, of_role in policy.timed.items()}
    return {"lasting": {r: of_role for r, of_role in policy.grants.items() if of_role}, "timed": timed}


def test_a_snapshot_brought_up_to_date_equals_one_loaded_anew() -> None:
    stored = Stored([random_world(seed) for seed in range(20)])
    base = stored.policy
    role = next(iter(base.grants))
    securable, mask = next(iter(base.grants[role].items()))
    held = [
        {"privilege": privilege.value, "effect": effect.value}
        for privilege in Privilege
        for effect in Effect
        if mask & snapshot.mask_of(privilege, effect)
    ]
    told = [snapshot.grants_change(role, securable, []), snapshot.grants_change(role, securable, held)]
    changed = base.after(base.epoch + 1, "x", told)
    assert changed.grants[role] == base.grants[role]
    emptied = base.after(base.epoch + 1, "x", [snapshot.role_gone(role)])
    assert emptied.grants[role] == {}
    assert base.grants[role], "the older snapshot is untouched"
