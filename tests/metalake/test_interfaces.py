"""An interface is small, and whoever implements it leaves nothing out."""

from __future__ import annotations

from abc import abstractmethod

import pytest

from metalake.interfaces import LARGEST, Interface


class Readable(Interface):
    @abstractmethod
    def read(self) -> str: ...


def test_a_class_that_lacks_a_member_cannot_be_made() -> None:
    class Nothing(Readable):
        pass

    class Something(Readable):
        def read(self) -> str:
            return "read"

    with pytest.raises(TypeError, match="read"):
        Nothing()  # type: ignore[abstract]
    assert Something().read() == "read"


def test_an_interface_that_requires_too_much_is_refused() -> None:
    members = {f"verb_{number}": abstractmethod(lambda self: None) for number in range(LARGEST)}
    type("Largest", (Interface,), members)
    with pytest.raises(TypeError, match=f"requires {LARGEST + 1} members"):
        type("TooLarge", (Interface,), members | {"one_more": abstractmethod(lambda self: None)})
    with pytest.raises(TypeError, match="divide it"):
        type("TooLargeWithItsParent", (Readable,), members)
