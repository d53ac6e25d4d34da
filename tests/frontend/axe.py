"""axe-core, the checker of accessibility, on a page in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe

if TYPE_CHECKING:
    from playwright.sync_api import Page

COLOURS = {"runOnly": ["color-contrast"]}


def violations(page: Page, *, in_dark: bool = True) -> list[str]:
    """What axe finds wrong with the page as it is now, in light and perhaps in dark: the rule, and the elements."""
    page.wait_for_load_state("networkidle")  # what is still loading is dimmed
    page.emulate_media(color_scheme="light")
    problems = _run(page)
    if in_dark:
        page.emulate_media(color_scheme="dark")
        problems += [f"in dark: {problem}" for problem in _run(page, COLOURS)]
        page.emulate_media(color_scheme="light")
    return problems


def _run(page: Page, options: dict[str, Any] | None = None) -> list[str]:
    answer = Axe().run(page, options=options).response
    return [
        f"{rule['id']} ({rule['help']}): {node['target']} {node['html'][:200]} {node.get('failureSummary', '')}"
        for rule in answer["violations"]
        for node in rule["nodes"][:3]
    ]
