"""axe-core, the checker of accessibility, on a page in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axe_playwright_python.base import AXE_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Page

COLOURS = {"runOnly": ["color-contrast"]}
IS_STILL = "() => !document.querySelector('.htmx-request, meta-tree [aria-busy=true]')"
TARGETS = {"rules": {"target-size": {"enabled": True}}}
PHONE = 640  # pixels, below which fingers press what is there
FRAME = (".top", ".side")
"""What stands on every page."""


def violations(page: Page, *, in_dark: bool = True, but_for: tuple[str, ...] = ()) -> list[str]:
    """What axe finds wrong with the page as it is now, in light and perhaps in dark: the rule, and the elements."""
    page.emulate_media(color_scheme="light")
    problems = violations_now(page, but_for)
    if in_dark:
        page.emulate_media(color_scheme="dark")
        problems += [f"in dark: {problem}" for problem in _run(page, but_for, **COLOURS)]
        page.emulate_media(color_scheme="light")
    return problems


def violations_now(page: Page, but_for: tuple[str, ...] = ()) -> list[str]:
    """What axe finds wrong with the page in the colours that it has."""
    page.wait_for_function(IS_STILL)  # what is still loading is dimmed
    page.evaluate(AXE_SCRIPT)
    is_phone = page.viewport_size and page.viewport_size["width"] < PHONE
    return _run(page, but_for, **(TARGETS if is_phone else {}))


def _run(page: Page, but_for: tuple[str, ...], **options: Any) -> list[str]:
    where = {"exclude": [[selector] for selector in but_for]}
    run = "async ([where, options]) => (await axe.run(where, options)).violations"
    return [
        f"{rule['id']} ({rule['help']}): {node['target']} {node['html'][:200]} {node.get('failureSummary', '')}"
        for rule in page.evaluate(run, [where, {"resultTypes": ["violations"], **options}])
        for node in rule["nodes"][:3]
    ]
