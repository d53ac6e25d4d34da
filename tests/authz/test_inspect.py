"""What somebody may do on an object, as its page says it."""

from __future__ import annotations

import pytest

from access.explain import reach
from authz.objects import find_object
from metalake.kinds import Kind
from metalake.privileges import Privilege
from tests.authz.small_world import World

pytestmark = pytest.mark.store


def test_the_standing_is_what_the_evaluator_says(world: World) -> None:
    world.give("mia", "use_catalog@lake", "select_table@lake", "modify_table@lake", "deny modify_table@lake.A")
    where = find_object("acme", Kind.TABLE, "lake.A:B.t")
    assert reach.standing(world.mia, where) == reach.Standing(None, (Privilege.SELECT_TABLE,))
    assert reach.standing(world.actor("sam"), where) == reach.Standing(None, ())
    owns = reach.standing(world.olga, where).owns
    assert owns is not None
    assert owns.name == "acme", "the topmost"
