"""What a comment or page cites is in the repository, or a public specification that is named."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.rooms import REPOSITORY

KINDS = (".py", ".md", ".html", ".toml")
ELSEWHERE = re.compile(
    r"\b(?:security|house) plan\b|\bwire reference\b|\(reference \d|\brule book\b|\bRFC-\d"
    r"|\bdecisions? (?:\d+|[a-z](?=[.,;:)]))|\bdetail [a-z](?=[.,;:)])|[^,] \(?sections? \d"
)
RULE = re.compile(r"\brules? \d+")
CITED = re.compile(r"\bdocs/[\w/-]+\.md\b")
DECISIONS = REPOSITORY / "docs" / "decisions"


def own_files() -> list[Path]:
    """All that is written here: neither the environment nor data nor what tools keep."""
    folders = [each for each in REPOSITORY.iterdir() if each.is_dir() and not each.name.startswith((".", "var"))]
    inside = [path for folder in folders for path in folder.rglob("*") if path.suffix in KINDS]
    return [*(path for path in REPOSITORY.iterdir() if path.suffix in KINDS), *inside]


def wrong_citations(text: str) -> list[str]:
    """The lines that cite a document that is not here, or a rule without saying whose."""
    return [
        line.strip()
        for line in text.splitlines()
        if ELSEWHERE.search(line) or (RULE.search(line) and "authorization.md" not in line)
    ]


def test_every_citation_leads_somewhere() -> None:
    wrong = {
        f"{path.relative_to(REPOSITORY)}: {line}"
        for path in own_files()
        if path != Path(__file__) and "migrations" not in path.parts
        for line in wrong_citations(path.read_text(encoding="utf-8"))
    }
    assert not wrong


def test_a_citation_that_leads_nowhere_is_found() -> None:
    lines = [
        "Figures: security plan 3.8.",
        "in one transaction (decision 5).",
        "a miss both ways (detail a).",
        "five times (section 3).",
        "the levels inherit (rule 5).",
        "What a catalog holds (RFC-1)",
        "(wire reference, section 7)",
    ]
    assert wrong_citations("\n".join(lines)) == lines


def test_every_page_that_is_cited_is_there() -> None:
    missing = {
        f"{path.relative_to(REPOSITORY)}: {page}"
        for path in own_files()
        for page in CITED.findall(path.read_text(encoding="utf-8"))
        if not (REPOSITORY / page).exists()
    }
    assert not missing


def test_the_index_of_decisions_has_every_page() -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (DECISIONS / "README.md").read_text(encoding="utf-8"))
    there = sorted(page.name for page in DECISIONS.glob("*.md") if page.name != "README.md")
    assert sorted(listed) == there


PAGES = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
LINK = re.compile(r"\]\(([\w./-]*)(?:#([\w-]+))?\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in PAGES:
        for name, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
            target = page.parent / name if name else page
            assert target.exists(), f"{page.name}: {name}"
            assert not anchor or anchor in anchors(target), f"{page.name}: {name}#{anchor}"


def test_no_line_of_prose_is_over_160_characters() -> None:
    """Tables excepted, and lines within code."""
    for page in [page for page in PAGES if page.name != "CONTRIBUTING.md"]:
        lines = CODE.sub("", page.read_text(encoding="utf-8")).splitlines()
        assert not [line for line in lines if len(line) > 160 and not line.startswith("|")], page.name
