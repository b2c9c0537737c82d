"""Bytes to text when nobody says the encoding."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks; the UTF-32 ones first, since one begins like that of UTF-16."""

_SAMPLE_BYTES = 1 << 16
_CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_META_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedText:
    """Text, the encoding that it was read with, and what the reader should know about that."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def decode(data: bytes, *, declared: str | None = None) -> DecodedText:
    r"""The text of bytes, with line ends as `\n` and without what cannot be stored.

    A byte order mark decides; then strict UTF-8; then `declared`; then UTF-16 when every other byte
    is mostly zero; at last Windows-1252, which is Latin-1 with quotation marks and never fails here.
    Only the last is a guess, and is said in the warnings.
    """
    marked = _marked(data)
    if marked:
        mark, encoding = marked
        return _decoded(data[len(mark) :], encoding)
    try:
        return _clean(data.decode("utf-8"), "utf-8", ())
    except UnicodeDecodeError:
        pass
    if declared and (known := _known(declared)):
        return _decoded(data, known)
    if guessed := _unmarked_utf16(data):
        return _decoded(data, guessed)
    warning = "the text is not UTF-8 and was read as Latin-1 (Windows-1252); accented letters may be wrong"
    try:
        return _clean(data.decode("cp1252"), "cp1252", (warning,))
    except UnicodeDecodeError:
        return _clean(data.decode("latin-1"), "latin-1", (warning,))


def declared_charset(html: bytes) -> str | None:
    """The encoding that a `meta` element near the beginning of an HTML page names."""
    found = _META_CHARSET.search(html[:4096])
    return found.group(1).decode("ascii") if found else None


def looks_like_text(data: bytes) -> bool:
    """Whether bytes can be text in an encoding that `decode` knows: hardly any control characters."""
    if _marked(data) or _unmarked_utf16(data):
        return True
    sample = data[:_SAMPLE_BYTES]
    return b"\0" not in sample and len(_CONTROLS.findall(sample)) * 200 <= len(sample)


def storable(text: str) -> str:
    """The text with U+FFFD for what no store can keep: NUL and lone surrogates."""
    return _UNSTORABLE.sub("\ufffd", text)


def _marked(data: bytes) -> tuple[bytes, str] | None:
    return next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), None)


def _unmarked_utf16(data: bytes) -> str | None:
    sample = data[:_SAMPLE_BYTES]
    if len(sample) < 4 or len(data) % 2:
        return None
    half = len(sample) / 2
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be"
    return None


def _known(name: str) -> str | None:
    try:
        found = codecs.lookup(name)
        # Python's registry also has codecs that are no encodings of pages, such as rot13 and idna.
        b"\x80".decode(found.name, "replace")
    except (LookupError, ValueError):
        return None
    return None if "escape" in found.name or found.name == "punycode" else found.name


def _decoded(data: bytes, encoding: str) -> DecodedText:
    text = data.decode(encoding, "replace")
    lost = text.count("\ufffd")
    warning = f"{lost} places are not valid {encoding} and were replaced by U+FFFD"
    return _clean(text, encoding, (warning,) if lost else ())


def _clean(text: str, encoding: str, warnings: tuple[str, ...]) -> DecodedText:
    text = storable(text.replace("\r\n", "\n").replace("\r", "\n"))
    return DecodedText(text=text, encoding=encoding, warnings=warnings)
