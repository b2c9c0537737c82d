"""What a file is: decided by its bytes, compared with its name."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hivemem.documents.decoding import looks_like_text
from hivemem.documents.limits import DocumentLimits
from hivemem.documents.package import main_content_type
from hivemem.errors import InvalidInput

FileType = Literal["document", "image", "audio", "video"]
MAX_FILENAME_CHARACTERS = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """One kind of file that is accepted.

    Attributes:
        name: Short and stable, such as `pdf`.
        file_type: The coarse type that lists filter by.
        content_type: The media type.
        extensions: What names of such files end with, lower-case, the usual one first.
        has_text: Whether text is extracted.
    """

    name: str
    file_type: FileType
    content_type: str
    extensions: tuple[str, ...]
    has_text: bool = False


def _document(name: str, content_type: str, *extensions: str, has_text: bool = True) -> FileKind:
    return FileKind(
        name=name,
        file_type="document",
        content_type=content_type,
        extensions=extensions or (name,),
        has_text=has_text,
    )


def _media(name: str, file_type: FileType, content_type: str, *extensions: str) -> FileKind:
    return FileKind(
        name=name, file_type=file_type, content_type=content_type, extensions=extensions or (name,)
    )


_OFFICE = "application/vnd.openxmlformats-officedocument."

KINDS: dict[str, FileKind] = {
    kind.name: kind
    for kind in (
        _document("txt", "text/plain", "txt", "text", "log"),
        _document("md", "text/markdown", "md", "markdown"),
        _document("csv", "text/csv", "csv", "tsv"),
        _document("json", "application/json"),
        _document("html", "text/html", "html", "htm"),
        _document("rdf", "application/rdf+xml"),
        _document("pdf", "application/pdf"),
        _document("docx", f"{_OFFICE}wordprocessingml.document", "docx", "docm"),
        _document("pptx", f"{_OFFICE}presentationml.presentation", "pptx", "pptm"),
        _document("xlsx", f"{_OFFICE}spreadsheetml.sheet", "xlsx", "xlsm"),
        # Office files from before 2007 are kept as they are.
        _document("doc", "application/msword", has_text=False),
        _document("ppt", "application/vnd.ms-powerpoint", has_text=False),
        _document("xls", "application/vnd.ms-excel", has_text=False),
        _media("jpg", "image", "image/jpeg", "jpg", "jpeg"),
        _media("png", "image", "image/png"),
        _media("gif", "image", "image/gif"),
        _media("webp", "image", "image/webp"),
        _media("mp3", "audio", "audio/mpeg"),
        _media("wav", "audio", "audio/wav"),
        _media("ogg", "audio", "audio/ogg", "ogg", "oga", "opus"),
        _media("mp4", "video", "video/mp4", "mp4", "m4v"),
        _media("webm", "video", "video/webm"),
        _media("mov", "video", "video/quicktime"),
    )
}
"""All accepted kinds by name."""

TABULAR = frozenset(("csv", "xlsx"))
"""Kinds that `tabular/` can answer questions about."""

_BY_EXTENSION = {extension: kind for kind in KINDS.values() for extension in kind.extensions}
_TEXTS = frozenset(("txt", "md", "csv", "json", "html", "rdf"))
_LEGACY = frozenset(("doc", "ppt", "xls"))
_MAIN_TYPES = {
    "wordprocessingml.": "docx",
    "ms-word.": "docx",
    "presentationml.": "pptx",
    "ms-powerpoint.": "pptx",
    "spreadsheetml.": "xlsx",
    "ms-excel.": "xlsx",
}
_PDF_HEAD_BYTES = 1024
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")

# Second byte of an MPEG audio frame of layer III; 0xFE would be a UTF-16 byte order mark.
_MP3_SECOND_BYTES = frozenset(b"\xfb\xfa\xf3\xf2\xe3\xe2")


def checked_filename(filename: str) -> str:
    """The last part of a file name, in NFC.

    Raises:
        InvalidInput: Blank, too long, or with control characters.
    """
    name = unicodedata.normalize("NFC", filename.replace("\\", "/")).rstrip("/").rpartition("/")[2].strip()
    if not name or name in (".", ".."):
        raise InvalidInput(f"/filename {filename!r} names no file; send one such as 'report.pdf'.")
    if len(name) > MAX_FILENAME_CHARACTERS:
        raise InvalidInput(
            f"/filename has {len(name)} characters; use at most {MAX_FILENAME_CHARACTERS}.",
        )
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise InvalidInput(f"/filename {name!r} holds control characters; leave them out.")
    return name


def kind_of(data: bytes, filename: str, limits: DocumentLimits) -> FileKind:
    """The kind that the bytes have, if the name does not contradict it.

    Among text formats, which bytes do not tell apart, the name decides; a name without an extension
    that is known here says nothing, and text is then plain text.

    Raises:
        InvalidInput: Bytes of no accepted kind (`unsupported_file_type`), bytes of another kind than
            the name says (`file_type_mismatch`), an encrypted Office file (`file_encrypted`), or a
            broken archive (`file_unreadable`).
        LimitExceeded: An archive is beyond the limits.
    """
    extension = PurePosixPath(filename).suffix.lower().removeprefix(".")
    named = _BY_EXTENSION.get(extension)
    found = _sniffed(data, filename, limits)
    if found is None and looks_like_text(data):
        found = (named.name,) if named and named.name in _TEXTS else ("txt",)
    if found is None:
        told = (
            f"its name says {named.name}, but its bytes are not"
            if named
            else "its bytes are of no known type"
        )
        raise InvalidInput(
            f"{filename!r} cannot be taken: {told}. Accepted are {', '.join(sorted(_BY_EXTENSION))}, and "
            "any other plain text.",
            code="file_type_mismatch" if named else "unsupported_file_type",
        )
    if named is None:
        return KINDS[found[0]]
    if named.name in found:
        return named
    kind = KINDS[found[0]]
    raise InvalidInput(
        f"{filename!r} is named as {named.name} ({named.content_type}), but its bytes are {kind.name} "
        f"({kind.content_type}). Rename it to .{kind.extensions[0]}, or send the right file.",
        code="file_type_mismatch",
    )


def _sniffed(data: bytes, filename: str, limits: DocumentLimits) -> Sequence[str] | None:
    """Names of the kinds that these bytes can be, the likeliest first; None when no signature is found."""
    match data[:4]:
        case b"\x89PNG":
            return ("png",)
        case b"GIF8":
            return ("gif",)
        case b"OggS":
            return ("ogg",)
        case b"\x1a\x45\xdf\xa3":
            return ("webm",)
        case b"RIFF":
            return {b"WEBP": ("webp",), b"WAVE": ("wav",)}.get(data[8:12])
        case b"PK\x03\x04" | b"PK\x05\x06":
            return _office(data, filename, limits)
        case _:
            pass
    if data[:3] == b"\xff\xd8\xff":
        return ("jpg",)
    if data[4:8] == b"ftyp":
        return ("mov",) if data[8:12] == b"qt  " else ("mp4",)
    if data[:3] == b"ID3" or (data[:1] == b"\xff" and data[1:2] and data[1] in _MP3_SECOND_BYTES):
        return ("mp3",)
    if b"%PDF-" in data[:_PDF_HEAD_BYTES]:
        return ("pdf",)
    if data[:8] == _OLE:
        if _ENCRYPTED_PACKAGE in data:
            raise encrypted(filename)
        return sorted(_LEGACY)
    return None


def _office(data: bytes, filename: str, limits: DocumentLimits) -> Sequence[str]:
    content_type = main_content_type(data, filename, limits) or ""
    for part, name in _MAIN_TYPES.items():
        if part in content_type:
            return (name,)
    raise InvalidInput(
        f"{filename!r} is an archive but no document, presentation or workbook of Office, and archives are "
        "not taken; unpack it and send its files.",
        code="unsupported_file_type",
    )


def encrypted(filename: str) -> InvalidInput:
    """The error of a file that needs a password."""
    return InvalidInput(
        f"{filename!r} is encrypted; remove its password and send it again.", code="file_encrypted"
    )


def unreadable(filename: str, reason: object) -> InvalidInput:
    """The error of a file that breaks the rules of its format."""
    return InvalidInput(
        f"{filename!r} cannot be read: {reason}. Open it in its own program, save it anew and send that.",
        code="file_unreadable",
    )
