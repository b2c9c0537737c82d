"""The text of a word processor document (DOCX), read from its XML parts.

Source: ISO/IEC 29500-1, WordprocessingML. Deleted and moved-away text is left out, inserted text is
kept; headers and footers are left out, since they repeat on each page.
"""

from __future__ import annotations

from collections.abc import Mapping

from hivemem.documents.collected import CollectedText
from hivemem.documents.package import Package, main_part
from hivemem.documents.xml_stream import attribute

_NOTES = {"footnotes": "Footnotes", "endnotes": "Endnotes", "comments": "Comments"}
_SKIPPED = frozenset(("moveFrom", "del", "Fallback", "instrText", "delText"))
"""`Fallback` repeats what `Choice` beside it says."""

_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_MAX_STYLE_STEPS = 20


def collect_word(package: Package, collected: CollectedText) -> str | None:
    """Add the document's paragraphs and tables, then its notes and comments; returns its stated title.

    Raises:
        InvalidInput: The package is broken.
        LimitExceeded: It is beyond the limits.
        Enough: A limit of the collection is reached.
    """
    main = main_part(package)
    relations = package.relations(main).values()
    styles = _Styles()
    for relation in relations:
        if relation.kind == "styles" and relation.target in package:
            package.parse(relation.target, styles)
    levels, bullets = styles.levels(), styles.bullets
    title = stated_title(package)
    package.parse(main, _Body(collected, levels, bullets))
    for relation in relations:
        if relation.kind in _NOTES and relation.target in package:
            package.parse(relation.target, _Body(collected, levels, bullets, heading=_NOTES[relation.kind]))
    return title


def stated_title(package: Package) -> str | None:
    """The title in the properties of an Office file, None when blank or absent."""
    properties = _Properties()
    for relation in package.relations("").values():
        if relation.kind == "core-properties" and relation.target in package:
            package.parse(relation.target, properties)
    return properties.title.strip() or None


class _Properties:
    def __init__(self) -> None:
        self.title = ""
        self._inside = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._inside = name == "title"

    def end(self, name: str) -> None:
        self._inside = False

    def text(self, data: str) -> None:
        if self._inside:
            self.title += data


class _Styles:
    """Which paragraph styles are headings, by their built-in name or outline level, or list items."""

    def __init__(self) -> None:
        self.bullets: set[str] = set()
        self._style = ""
        self._levels: dict[str, int] = {}
        self._parents: dict[str, str] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        value = attribute(attributes, "val") or ""
        if name == "style":
            self._style = attribute(attributes, "styleId") or ""
        elif name == "name" and value.lower() == "title":
            self._levels[self._style] = 1
        elif name == "name" and value.lower().startswith("heading ") and value[8:].isdecimal():
            self._levels[self._style] = int(value[8:])
        elif name == "outlineLvl" and value.isdecimal() and int(value) < 9:
            self._levels.setdefault(self._style, int(value) + 1)
        elif name == "numPr":
            self.bullets.add(self._style)
        elif name == "basedOn":
            self._parents[self._style] = value

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass

    def levels(self) -> dict[str, int]:
        """Style id -> heading level, inherited ones included."""
        found = dict(self._levels)
        for style in self._parents:
            ancestor, steps = style, 0
            while ancestor not in self._levels and ancestor in self._parents and steps < _MAX_STYLE_STEPS:
                ancestor, steps = self._parents[ancestor], steps + 1
            if ancestor in self._levels:
                found[style] = self._levels[ancestor]
        return found


class _Paragraph:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.level = 0
        self.bullet = False


class _Body:
    """Paragraphs go to the innermost open table cell, or to the collection."""

    def __init__(
        self, collected: CollectedText, levels: Mapping[str, int], bullets: set[str], *, heading: str = ""
    ) -> None:
        self._collected = collected
        self._levels = levels
        self._bullets = bullets
        self._heading = heading
        self._paragraphs: list[_Paragraph] = []
        self._rows: list[list[str]] = []
        self._cells: list[list[str]] = []
        self._skipped = 0
        self._text = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if self._skipped or name in _SKIPPED:
            self._skipped += 1
        elif name == "t":
            self._text = True
        elif name == "p":
            self._paragraphs.append(_Paragraph())
        elif name == "tr":
            self._rows.append([])
        elif name == "tc":
            self._cells.append([])
        elif self._paragraphs:
            paragraph = self._paragraphs[-1]
            if name == "pStyle":
                style = attribute(attributes, "val") or ""
                paragraph.level = self._levels.get(style, 0)
                paragraph.bullet = style in self._bullets
            elif name == "outlineLvl" and not paragraph.level:
                value = attribute(attributes, "val") or ""
                paragraph.level = int(value) + 1 if value.isdecimal() and int(value) < 9 else 0
            elif name == "numPr":
                paragraph.bullet = True
            elif name in _BREAKS and attribute(attributes, "pos") is None:
                paragraph.parts.append(_BREAKS[name])

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif name == "t":
            self._text = False
        elif name == "p" and self._paragraphs:
            self._finish(self._paragraphs.pop())
        elif name == "tc" and self._cells:
            cell = " ".join(self._cells.pop())
            if self._rows:
                self._rows[-1].append(cell)
        elif name == "tr" and self._rows:
            cells = self._rows.pop()
            if any(cells):
                self._add(" | ".join(cells), _Paragraph())

    def text(self, data: str) -> None:
        if self._text and self._paragraphs and not self._skipped:
            self._paragraphs[-1].parts.append(data)

    def _finish(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.parts).strip()
        if text:
            self._add(text, paragraph)

    def _add(self, text: str, paragraph: _Paragraph) -> None:
        if self._cells:
            self._cells[-1].append(" ".join(text.split()))
            return
        if self._heading:
            heading, self._heading = self._heading, ""
            self._collected.paragraph(heading, level=1)
        self._collected.paragraph(text, level=paragraph.level, bullet=paragraph.bullet)
