"""How many random cases the tests try, in `make test`, in its second run and in `make test-long`.

everyday   `make test`, on SQLite: three tenths of the figures that tests name. test_planted.py finds each of its
           mistakes within half of the worlds that this leaves to the evaluator
again      the same on PostgreSQL: rules were compared with their models by the run before, what is new is the database,
           and it is asked the same statements by a tenth of the cases
long       `make test-long`, which ends within hours

Hypothesis knows them by name: `--hypothesis-profile=long`. METALAKE_TEST_SCALE multiplies every number: 0.01 for a
quick look.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from hypothesis import settings


class Profile(NamedTuple):
    """The examples of a hypothesis test, and the share of a figure that a test of random worlds names."""

    examples: int
    share: float


PROFILES = {"everyday": Profile(50, 0.3), "again": Profile(20, 0.1), "long": Profile(1_000, 10)}
SCALE = float(os.environ.get("METALAKE_TEST_SCALE", "1"))

for name, profile in PROFILES.items():
    settings.register_profile(name, max_examples=max(1, round(profile.examples * SCALE)), deadline=None)
settings.load_profile("again" if os.environ.get("METALAKE_TEST_DATABASE_URL") else "everyday")


def weighing(weight: float, **more: Any) -> settings:
    """For a test whose cases are cheap, or dear: this many times the examples of others. `more` is as for settings."""
    return settings(max_examples=max(1, round(weight * settings.default.max_examples)), **more)


def share(full: float) -> int:
    """Of the figure that a test names, what this run asks for; at least 1."""
    current = PROFILES[settings.get_current_profile_name()]
    return max(1, round(full * current.share * SCALE))
