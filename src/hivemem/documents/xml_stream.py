"""XML as a stream of events, in memory that does not grow with the document.

No document type is accepted, so there are no entities: neither bombs nor files from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol
from xml.parsers import expat

from hivemem.documents.limits import DocumentLimits
from hivemem.errors import LimitExceeded


class XmlHandler(Protocol):
    """Receives the events of one document, names without their namespaces."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins. Attributes in a namespace keep it: see `attribute`."""
        ...

    def end(self, name: str) -> None:
        """An element ends."""
        ...

    def text(self, data: str) -> None:
        """Characters; one stretch may come in several pieces."""
        ...


class BrokenXml(Exception):
    """Not well-formed, or with a document type; the text says where and what."""


def feed(chunks: Iterable[bytes], handler: XmlHandler, limits: DocumentLimits) -> Iterator[None]:
    """Parse a document; control comes back after each chunk, so that the handler's finds can be taken.

    Raises:
        BrokenXml: It is not well-formed, or has a document type.
        LimitExceeded: It is nested too deeply, or one text in it is too long.
    """
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    names: dict[str, str] = {}
    depth = 0
    run = 0

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth, run
        depth += 1
        run = 0
        if depth > limits.max_xml_depth:
            raise LimitExceeded(
                f"the file has XML nested deeper than {limits.max_xml_depth} levels, "
                "which no program writes; it is refused.",
                limit=limits.max_xml_depth,
            )
        handler.start(names.get(name) or names.setdefault(name, name.rpartition("}")[2]), attributes)

    def end(name: str) -> None:
        nonlocal depth, run
        depth -= 1
        run = 0
        handler.end(names.get(name) or name.rpartition("}")[2])

    def text(data: str) -> None:
        nonlocal run
        run += len(data)
        if run > limits.max_xml_text_bytes:
            raise LimitExceeded(
                f"the file has one text of more than {limits.max_xml_text_bytes:,} characters; split it.",
                limit=limits.max_xml_text_bytes,
            )
        handler.text(data)

    def refuse(*_: object) -> None:
        raise BrokenXml("it has a document type, which is not accepted because of its entities")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        for chunk in chunks:
            parser.Parse(chunk, False)
            yield
        parser.Parse(b"", True)
        yield
    except (expat.ExpatError, ValueError) as error:
        raise BrokenXml(f"its XML is broken, {error}") from error


def run(chunks: Iterable[bytes], handler: XmlHandler, limits: DocumentLimits) -> None:
    """Parse a whole document. Errors as in `feed`."""
    for _ in feed(chunks, handler, limits):
        pass


def attribute(attributes: Mapping[str, str], name: str) -> str | None:
    """The value of an attribute in whatever namespace."""
    value = attributes.get(name)
    if value is not None:
        return value
    ending = "}" + name
    return next((value for key, value in attributes.items() if key.endswith(ending)), None)
