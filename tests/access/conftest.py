"""The small world of authz, in which questions about access are asked too."""

from tests.authz.conftest import *  # noqa: F403  (its fixtures)
