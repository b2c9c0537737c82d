"""The text of a document while it is gathered, up to a number of characters and a time."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from hivemem.documents.decoding import storable
from hivemem.documents.limits import DocumentLimits

_BLANKS = re.compile(r"[^\S\n]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedText:
    """What was found in a file.

    Attributes:
        text: Plain text. Headings are lines with `#` in front, list items with `- `, and the cells of a
            table row stand between ` | `. Empty for files without text.
        title: The document's own title or its first heading; None when it has neither.
        truncated: Whether text was left out because of a limit.
        warnings: What the reader of the text should know, as sentences without a final stop.
    """

    text: str
    title: str | None = None
    truncated: bool = False
    warnings: tuple[str, ...] = ()


class Enough(Exception):
    """No more text is taken: a limit is reached. Ends an extraction early, and is no error."""


class CollectedText:
    """Lines of a document, in reading order.

    Args:
        limits: `max_text_characters` end the collection, and so do two thirds of `max_seconds` of this
            process's time.
    """

    def __init__(self, limits: DocumentLimits) -> None:
        self._limits = limits
        self._lines: list[str] = []
        self._size = 0
        self._deadline = time.process_time() + limits.max_seconds * 2 / 3
        self._warnings: list[str] = []
        self._heading: str | None = None
        self._truncated = False

    def paragraph(self, text: str, *, level: int = 0, bullet: bool = False) -> None:
        """Add a stretch of text; a blank one is left out.

        Args:
            text: Runs of blanks become one.
            level: Of a heading, 1 to 6; 0 for ordinary text.
            bullet: Whether it is an item of a list.

        Raises:
            Enough: A limit is reached. What fits is kept.
        """
        text = _BLANKS.sub(" ", text).strip()
        if not text:
            return
        if level:
            text = text.replace("\n", " ")
            self._heading = self._heading or text
            text = f"{'#' * min(level, 6)} {text}"
        elif bullet:
            text = f"- {text}"
        self.raw(text)

    def raw(self, text: str) -> None:
        """Add text as it stands. Raises `Enough` as `paragraph` does."""
        room = self._limits.max_text_characters - self._size
        if len(text) > room:
            self._lines.append(text[:room])
            self._size += room
            self.cut(f"the text was cut after {self._limits.max_text_characters:,} characters")
            raise Enough
        self._lines.append(text)
        self._size += len(text) + 1
        if time.process_time() > self._deadline:
            self.cut(
                f"the text was cut because reading took more than two thirds of {self._limits.max_seconds} s"
            )
            raise Enough

    def cut(self, warning: str) -> None:
        """Note that something was left out, and why."""
        self._truncated = True
        self.warn(warning)

    def warn(self, warning: str) -> None:
        """Note something, once."""
        if warning not in self._warnings:
            self._warnings.append(warning)

    def result(self, title: str | None = None) -> ExtractedText:
        """What was gathered; without a title given, the first heading is the title."""
        title = _BLANKS.sub(" ", storable(title or "").replace("\n", " ")).strip() or self._heading
        return ExtractedText(
            text=storable("\n".join(self._lines)).strip("\n"),
            title=storable(title) if title else None,
            truncated=self._truncated,
            warnings=tuple(map(storable, self._warnings)),
        )
