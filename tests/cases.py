"""Many cheap cases of one rule in one test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like pytest.mark.parametrize, but one test, whose failure lists each case that fails.

    For cases that take no time: a test of its own costs each some ms, and hundreds of them a run's seconds. They share
    the fixtures of the test.
    """
    keys = [name.strip() for name in names.split(",")]
    rows = [value if len(keys) > 1 else (value,) for value in values]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def run(*args: Any, **kwargs: Any) -> None:
            failures: list[tuple[dict[str, Any], BaseException]] = []
            for row in rows:
                case = dict(zip(keys, row, strict=True))
                try:
                    test(*args, **kwargs, **case)
                except (Exception, pytest.fail.Exception) as failure:
                    failures.append((case, failure))
            if failures:
                told = [f"{case!a:.300}: {failure!s:.1000}" for case, failure in failures]
                raise AssertionError("\n".join([f"{len(failures)} of {len(rows)} fail", *told])) from failures[0][1]

        signature = inspect.signature(test)
        rest = [parameter for name, parameter in signature.parameters.items() if name not in keys]
        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        run.__dict__.update(test.__dict__)  # its marks
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return run

    assert rows, "no case"
    return decorate
