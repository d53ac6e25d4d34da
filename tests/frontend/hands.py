"""Who uses a page: by mouse, or by keyboard alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MOST_TABS = 150
IS_HERE = "element => element === document.activeElement"
IN_SAME_STOP = "cell => cell.tabIndex < 0 && !!document.activeElement.closest('walked-cells')?.contains(cell)"
ROW = "cell => [...cell.closest('tbody').rows].indexOf(cell.closest('tr'))"
WHERE = "(e => `${e.tagName} ${e.id} ${(e.innerText ?? '').slice(0, 60)}`)(document.activeElement)"


class Hands(Protocol):
    """What a flow does with a page, whichever way."""

    page: Page

    def press(self, target: Locator) -> None:
        """Follow a link or press a button."""

    def fill(self, target: Locator, text: str) -> None:
        """Write into a field what it is to say."""

    def choose(self, target: Locator, text: str) -> None:
        """Choose an option of a list."""


@dataclass
class Mouse:
    page: Page

    def press(self, target: Locator) -> None:
        target.click()

    def fill(self, target: Locator, text: str) -> None:
        target.fill(text)

    def choose(self, target: Locator, text: str) -> None:
        target.select_option(text)


@dataclass
class Keyboard:
    """Comes to everything by Tab, and inside a table of cells by arrow keys."""

    page: Page

    def press(self, target: Locator) -> None:
        self.go_to(target)
        self.page.keyboard.press("Enter")

    def fill(self, target: Locator, text: str) -> None:
        self.go_to(target)
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(text)

    def choose(self, target: Locator, text: str) -> None:
        self.go_to(target)
        self.page.keyboard.type(text)

    def go_to(self, target: Locator) -> None:
        target.wait_for()
        for _ in range(MOST_TABS):
            if target.evaluate(IS_HERE):
                return None
            if target.evaluate(IN_SAME_STOP):
                return self._walk_to(target)
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab never came to {target}; it stopped at {self.page.evaluate(WHERE)}")

    def _walk_to(self, target: Locator) -> None:
        self.page.keyboard.press("Control+Home")
        for _ in range(target.evaluate(ROW)):
            self.page.keyboard.press("ArrowDown")
        for _ in range(MOST_TABS):
            if target.evaluate(IS_HERE):
                return
            self.page.keyboard.press("ArrowRight")
        raise AssertionError(f"The arrow keys never came to {target}; they stopped at {self.page.evaluate(WHERE)}")
