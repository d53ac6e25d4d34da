"""The review's own evaluator against the server's: random trees, grants and owners, every object and privilege."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from access.explain.reach import fits
from access.explain.rules import rules
from authz import policy
from authz.actor import Actor
from authz.snapshot import Snapshot, mask_of
from metalake.kinds import Kind, grantable_on
from metalake.lineage import Located, Node
from metalake.privileges import Effect, Privilege
from pipelines.review.regions import Change, Mark, Regions
from pipelines.review.rules import rules_in

TYPES = ("relational", "fileset", "messaging")
PERSON, OTHER, ROLE, SECOND = 7, 8, 101, 102
TELLING = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE, Privilege.MANAGE_GRANTS)
RULES = rules_in(rules())


class Tree:
    """A random metalake, with what one person's two roles carry and what they own."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.objects: list[tuple[Node, ...]] = []
        self.types: dict[int, str] = {}
        top = self._add((), "metalake")
        for _ in range(self.chance.randint(1, 3)):
            catalog = self._add(top, "catalog")
            self.types[catalog[-1].id] = self.chance.choice(TYPES)
            self._fill(catalog, 0)
        self.grants: dict[int, dict[int, int]] = {ROLE: defaultdict(int), SECOND: defaultdict(int)}
        for _ in range(self.chance.randint(0, 12)):
            self._grant()

    def _fill(self, above: tuple[Node, ...], depth: int) -> None:
        for _ in range(self.chance.randint(0, 3)):
            schema = self._add(above, "schema")
            for _ in range(self.chance.randint(0, 3)):
                self._add(schema, self.chance.choice(("table", "table", "view")))
            if depth < 3 and self.chance.random() < 0.6:
                self._fill(schema, depth + 1)

    def _add(self, above: tuple[Node, ...], kind: str) -> tuple[Node, ...]:
        owner = PERSON if self.chance.random() < 0.1 else OTHER
        lineage = (*above, Node(len(self.objects) + 1, kind, "x", owner, None))
        self.objects.append(lineage)
        return lineage

    def _grant(self) -> None:
        on = self.chance.choice(self.objects)[-1]
        fitting = [each for each in Privilege if on.kind in grantable_on(each)]
        often = [each for each in TELLING if each in fitting]
        privilege = self.chance.choice(often if often and self.chance.random() < 0.7 else fitting)
        effect = Effect.DENY if self.chance.random() < 0.3 else Effect.ALLOW
        self.grants[self.chance.choice((ROLE, SECOND))][on.id] |= mask_of(privilege, effect)

    @property
    def actor(self) -> Actor:
        nobody: dict[int, tuple[int, ...]] = {}
        members = {self.objects[0][-1].id: frozenset({PERSON})}
        links = {PERSON: (ROLE, SECOND)}
        return Actor(PERSON, "mia", Snapshot(0, "", members, links, nobody, nobody, self.grants))

    def marks(self) -> list[Mark]:
        marks = []
        for lineage in self.objects:
            node = lineage[-1]
            masks = [self.grants[role].get(node.id, 0) for role in (ROLE, SECOND)]
            allowed, denied = (
                frozenset(each.value for each in Privilege if any(mask & mask_of(each, effect) for mask in masks))
                for effect in Effect
            )
            if allowed or denied or node.owner_user_id == PERSON:
                ids = tuple(each.id for each in lineage)
                marks.append(Mark(ids, node.kind, allowed, denied, node.owner_user_id == PERSON))
        self.chance.shuffle(marks)
        return marks


def held(changes: list[Change], lineage: tuple[Node, ...], types: dict[int, str]) -> set[str]:
    """What the rows say of one object: the last change on the way down to it."""
    by_object = defaultdict(list)
    for change in changes:
        by_object[change.object].append(change)
    says: dict[str, bool] = {}
    for node in lineage:
        for change in by_object[node.id]:
            if change.kind == lineage[-1].kind:
                says[change.privilege] = change.holds
    type_ = types.get(lineage[1].id) if len(lineage) > 1 else None
    return {privilege for privilege, holds in says.items() if holds and fits(Privilege(privilege), type_)}


@pytest.mark.parametrize("block", range(4))
def test_it_agrees_with_the_server(block: int) -> None:
    compared = 0
    for seed in range(block * 100, block * 100 + 100):
        tree = Tree(seed)
        changes = list(Regions(RULES, tree.types).changes(tree.marks()))
        for lineage in tree.objects:
            kind, type_ = Kind(lineage[-1].kind), tree.types.get(lineage[1].id) if len(lineage) > 1 else None
            rights = policy.rights_on(tree.actor, Located(nodes=lineage))
            usable = {each.value for each in policy.usable(rights, kind) if fits(each, type_)}
            assert held(changes, lineage, tree.types) == usable, (seed, lineage)
            compared += 1
    assert compared > 1000


def test_a_million_objects_below_one_grant_are_one_row() -> None:
    marks = [
        Mark((1, 2), "catalog", frozenset({"use_catalog", "use_schema", "select_table"})),
        Mark((1, 2, 3), "schema", denied=frozenset({"select_table"})),
        Mark((1, 2, 3, 4), "table", allowed=frozenset({"select_table"})),
    ]
    changes = list(Regions(RULES, {2: "relational"}).changes(marks))
    of_tables = [each for each in changes if (each.kind, each.privilege) == ("table", "select_table")]
    assert of_tables == [Change(2, "table", "select_table", True), Change(3, "table", "select_table", False)]
