"""The visible text of an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

from hivemem.documents.collected import CollectedText

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "br", "caption", "dd", "details", "dialog"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html"),
        *("legend", "li", "main", "menu", "nav", "ol", "option", "p", "pre", "section", "summary", "table"),
        *("tbody", "tfoot", "thead", "tr", "ul"),
    )
)
_HIDDEN = frozenset(("script", "style", "template", "noscript", "svg", "math", "object", "iframe"))


class HtmlText(HTMLParser):
    """Sends the paragraphs, headings, list items and table rows of a page to a collection.

    Scripts, styles and what else a reader does not see are left out. Bad nesting is tolerated as
    browsers do: nothing here raises on any text, except `Enough`.
    """

    def __init__(self, collected: CollectedText) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._collected = collected
        self._run: list[str] = []
        self._level = 0
        self._bullet = False
        self._hidden: list[str] = []
        self._in_title = False
        self._preformatted = False

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """As the base class says."""
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag == "title":
            self._in_title = not self.title
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._flush()
            self._preformatted = self._preformatted or tag == "pre"
            self._level = _HEADINGS.get(tag, 0)
            self._bullet = tag == "li"
        elif tag in ("td", "th") and "".join(self._run).strip():
            self._run.append(" | ")
        elif tag == "img" and not self._hidden:
            self._run.append(next((value or "" for name, value in attrs if name == "alt"), ""))

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """As the base class says: `<br/>` hides and opens nothing."""
        if tag not in _HIDDEN and tag != "title":
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """As the base class says."""
        if self._hidden:
            if tag in self._hidden:
                del self._hidden[self._hidden.index(tag) :]
        elif tag == "title":
            self._in_title = False
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._flush()
            self._preformatted = self._preformatted and tag != "pre"

    def handle_data(self, data: str) -> None:
        """As the base class says."""
        if self._in_title:
            self.title += data
        elif not self._hidden:
            self._run.append(data)

    def close(self) -> None:
        """Send what is left."""
        super().close()
        self._flush()

    def _flush(self) -> None:
        text = "".join(self._run)
        self._run.clear()
        if self._preformatted:
            for line in text.split("\n"):
                self._collected.paragraph(line)
            return
        text = " ".join(text.split())
        if text:
            level, bullet, self._level, self._bullet = self._level, self._bullet, 0, False
            self._collected.paragraph(text, level=level, bullet=bullet)
