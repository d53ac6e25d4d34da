"""Python's search for cycles leaves alone what the collection of the tests made, which stays until the run ends.

Half a million objects of modules and tests would else be looked through again and again: an eighth of the suite's time.
"""

from __future__ import annotations

import gc

import pytest

FEWEST = 10_000  # new objects before the young are looked through; Python's own figure is 700

gc.disable()  # nothing to be found while modules are imported


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(FEWEST, 10, 10)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """What the run leaves ends with its process; pytest would look through all of it twice more, for seconds."""
    gc.freeze()
