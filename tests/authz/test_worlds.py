"""The generator of worlds: its limits, its odd names, and questions that get both answers."""

from __future__ import annotations

from tests.authz.model import DENY, allowed
from tests.authz.worlds import ASKED_ON, GRANTABLE_ON, LAST_MOMENT, LOOK_ALIKES, random_questions, random_world


def test_worlds_keep_their_limits_and_repeat_with_their_seed() -> None:
    denied = total = 0
    for seed in range(150):
        world = random_world(seed)
        assert world == random_world(seed)
        kinds = [obj.kind for obj in world.objects.values()]
        assert kinds.count("metalake") <= 3 and kinds.count("catalog") <= 4 and kinds.count("role") <= 8
        assert len(kinds) - kinds.count("role") <= 60 and len(world.groups) <= 4 and len(world.users) <= 6
        assert max(len(world.lineage(obj)) for obj in world.objects) <= 8
        assert all(world.kind(grant.obj) in GRANTABLE_ON[grant.privilege] for grant in world.grants)
        denied += sum(grant.effect == DENY for grant in world.grants)
        total += len(world.grants)
    assert 0.2 < denied / total < 0.3


def test_every_third_world_has_grants_for_a_time_and_requests_differ() -> None:
    timed, hows = 0, []
    for seed in range(150):
        world = random_world(seed)
        spans = [(grant.starts, grant.ends) for grant in world.grants if (grant.starts, grant.ends) != (None, None)]
        assert all(starts is None or ends is None or starts < ends for starts, ends in spans)
        timed += bool(spans)
        hows += [question.how for question in random_questions(world, seed, 50)]
        assert random_questions(world, seed, 50) == random_questions(world, seed, 50)
        assert not any(grant.starts or grant.ends for grant in random_world(seed, timed=False).grants)
    assert 0.25 < timed / 150 < 0.42
    assert {how.now for how in hows} == set(range(LAST_MOMENT + 1))
    assert 0.1 < sum(how.active is not None for how in hows) / len(hows) < 0.2
    assert 0.1 < sum(bool(how.claimed) for how in hows) / len(hows) < 0.2


def test_siblings_look_alike_and_never_share_a_name() -> None:
    names = [sorted(w.objects[o].name for o in w.children[p]) for w in map(random_world, range(20)) for p in w.children]
    assert all(len(set(siblings)) == len(siblings) for siblings in names)
    assert any(set(LOOK_ALIKES) <= set(siblings) for siblings in names)


def test_without_strays_nobody_holds_owns_or_joins_without_being_a_member() -> None:
    for seed in range(100):
        world = random_world(seed, strays=False)
        for group in world.groups.values():
            assert all((group.metalake, user) in world.members for user in group.members)
        for role, holder in world.assignments:
            assert holder.kind == "group" or (world.objects[role].parent, holder.id) in world.members
        for obj in world.objects.values():
            assert obj.owner.kind == "group" or (world.lineage(obj.id)[-1], obj.owner.id) in world.members


def test_every_operation_gets_both_answers() -> None:
    answers: dict[str, list[bool]] = {operation: [] for operation in ASKED_ON}
    for seed in range(200):
        world = random_world(seed)
        for question in random_questions(world, seed, 50):
            answers[question.operation].append(allowed(world, *question))
    assert {operation for operation, given in answers.items() if len(set(given)) < 2} == set()
    given = [answer for each in answers.values() for answer in each]
    assert 0.2 < sum(given) / len(given) < 0.5


def test_privileges_are_the_thirty_two_of_the_native_wire_and_three_of_ours() -> None:
    ours = {"alter_view", "drop_view", "bootstrap_namespace"}
    assert ours < set(GRANTABLE_ON) and len(GRANTABLE_ON) == 35
