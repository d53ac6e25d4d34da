"""The base class of the interfaces of providers and stores: small, without optional members."""

from __future__ import annotations

from abc import ABC
from typing import Any

LARGEST = 12  # required members


class Interface(ABC):  # noqa: B024 (its subclasses have the members)
    """Base of an abstract class that providers and stores implement.

    A class that lacks a required member cannot be instantiated. Raises TypeError if an interface requires more than
    LARGEST.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        required = [name for name in dir(cls) if _is_abstract(getattr(cls, name, None))]
        if len(required) > LARGEST:
            raise TypeError(f"{cls.__name__} requires {len(required)} members; divide it: {LARGEST} are the most.")


def _is_abstract(member: Any) -> bool:
    return bool(getattr(member, "__isabstractmethod__", False))
