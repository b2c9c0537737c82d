"""The text of a presentation (PPTX), slide by slide, with the speaker's notes.

Source: ISO/IEC 29500-1, PresentationML and DrawingML. Text inside charts and diagrams, which lies in
parts of its own, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from hivemem.documents.collected import CollectedText
from hivemem.documents.package import Package, main_part
from hivemem.documents.word_text import stated_title
from hivemem.documents.xml_stream import attribute

_TITLES = frozenset(("title", "ctrTitle"))
_NUMBERS = frozenset(("sldNum", "dt", "ftr", "hdr", "sldImg"))
"""Placeholders that repeat on each slide."""


def collect_slides(package: Package, collected: CollectedText) -> str | None:
    """Add each slide, its title as a heading of level 2; returns the stated title of the file.

    Raises:
        InvalidInput: The package is broken.
        LimitExceeded: It is beyond the limits.
        Enough: A limit of the collection is reached.
    """
    main = main_part(package)
    title = stated_title(package)
    order = _SlideOrder()
    package.parse(main, order)
    relations = package.relations(main)
    targets = [relations[id].target for id in order.ids if id in relations]
    for number, target in enumerate(targets, start=1):
        if target not in package:
            collected.warn(f"slide {number} is missing in the file")
            continue
        slide = _Slide()
        package.parse(target, slide)
        collected.paragraph(" ".join(slide.titles) or f"Slide {number}", level=2)
        for line in slide.lines:
            collected.paragraph(line)
        for relation in package.relations(target).values():
            if relation.kind == "notesSlide" and relation.target in package:
                notes = _Slide()
                package.parse(relation.target, notes)
                if notes.lines:
                    collected.paragraph("Notes: " + "\n".join(notes.lines))
    return title


class _SlideOrder:
    def __init__(self) -> None:
        self.ids: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sldId":
            # The attribute `id` without a namespace is a number; the one with a namespace is the link.
            ids = [value for key, value in attributes.items() if key.endswith("}id")]
            self.ids += ids[:1]

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass


class _Slide:
    """Paragraphs of the shapes of one slide in drawing order; table rows in one line each."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.lines: list[str] = []
        self._placeholder = ""
        self._run: list[str] = []
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._text = False
        self._skipped = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped or name == "Fallback":
            self._skipped += 1
        elif name == "sp":
            self._placeholder = ""
        elif name == "ph":
            self._placeholder = attribute(attributes, "type") or "body"
        elif name == "tr":
            self._row = []
        elif name == "tc":
            self._cell = []
        elif name == "t":
            self._text = True
        elif name in ("br", "tab"):
            self._run.append(" ")

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif name == "t":
            self._text = False
        elif name == "p":
            text = " ".join("".join(self._run).split())
            self._run.clear()
            if text and self._placeholder not in _NUMBERS:
                self._add(text)
        elif name == "tc" and self._cell is not None and self._row is not None:
            self._row.append(" ".join(self._cell))
            self._cell = None
        elif name == "tr" and self._row is not None:
            if any(self._row):
                self.lines.append(" | ".join(self._row))
            self._row = None
        elif name == "sp":
            self._placeholder = ""

    def text(self, data: str) -> None:
        if self._text and not self._skipped:
            self._run.append(data)

    def _add(self, text: str) -> None:
        if self._cell is not None:
            self._cell.append(text)
        elif self._placeholder in _TITLES:
            self.titles.append(text)
        else:
            self.lines.append(text)
