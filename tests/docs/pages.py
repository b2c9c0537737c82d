"""The written pages of the repository, and what is looked for in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *(REPOSITORY / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / "benchmarks").rglob("*.md"),
    ]
)

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language and what stands in it."""

    language: str
    text: str


def name(page: Path) -> str:
    """A page in the ids of tests."""
    return page.relative_to(REPOSITORY).as_posix()


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """The fenced blocks of a page, of one language or of all."""
    found = [Block(kind, text) for kind, text in _FENCE.findall(page.read_text("utf-8"))]
    return [block for block in found if language in (None, block.language)]


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def code(page: Path) -> list[str]:
    """What stands between backticks in the prose of a page."""
    return _CODE.findall(prose(page))


def links(page: Path) -> list[str]:
    """The targets of all links of a page."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The names that a link can have behind its `#`, as GitHub makes them."""
    headings = _HEADING.findall(prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def shell_lines(page: Path) -> Iterator[str]:
    """The commands of the `bash` blocks of a page, continued lines joined."""
    for block in blocks(page, "bash"):
        yield from filter(None, (line.strip() for line in block.text.replace("\\\n", " ").splitlines()))
