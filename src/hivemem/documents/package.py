"""Office files as packages: a zip archive of parts, opened under limits.

Parts are read as streams, each at most a few times, and what they unpack to is counted. Names are
never used as paths of a file system. The format is ISO/IEC 29500-2 (Open Packaging Conventions).
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.xml_stream import BrokenXml, XmlHandler, attribute, run
from hivemem.errors import InvalidInput, LimitExceeded

_CHUNK_BYTES = 1 << 16
_FREE_BYTES = 1 << 20
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_TYPES_PART = "[Content_Types].xml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A link from a part: the last word of its type, and the part that it leads to."""

    kind: str
    target: str


class Package:
    """The parts of one Office file.

    Args:
        data: The bytes of the file.
        filename: Its name, for messages.
        limits: What may be unpacked.

    Raises:
        InvalidInput: A broken or encrypted archive.
        LimitExceeded: Too many members.
    """

    def __init__(self, data: bytes, filename: str, limits: DocumentLimits) -> None:
        self.filename = filename
        self.limits = limits
        self._unpacked = 0
        self._sizes: dict[str, int] = {}
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError) as error:
            raise self.broken(error) from error
        members = self._archive.infolist()
        if len(members) > limits.max_archive_members:
            raise LimitExceeded(
                f"{filename!r} is an archive of {len(members):,} parts; "
                f"at most {limits.max_archive_members:,} are taken.",
                limit=limits.max_archive_members,
            )
        # Producers differ in case and slashes; part names are compared without regard to case.
        self._members = {_part_name(member.filename).lower(): member for member in members}

    def __contains__(self, part: str) -> bool:
        return _part_name(part).lower() in self._members

    def chunks(self, part: str) -> Iterator[bytes]:
        """The bytes of a part.

        Raises:
            InvalidInput: There is no such part, or it is broken or encrypted.
            LimitExceeded: It unpacks to more than the limits allow.
        """
        member = self._members.get(_part_name(part).lower())
        if member is None:
            raise self.broken(f"its part {part!r} is missing")
        if member.flag_bits & _ENCRYPTED:
            raise InvalidInput(
                f"{self.filename!r} is encrypted; remove its password and send it again.",
                code="file_encrypted",
            )
        if member.compress_type not in _METHODS:
            raise self.broken(f"its part {part!r} is packed by the unknown method {member.compress_type}")
        allowed = _FREE_BYTES + self.limits.max_unpacking_ratio * member.compress_size
        size = 0
        try:
            with self._archive.open(member) as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    size += len(chunk)
                    # A part that is read again is not counted again.
                    self._unpacked += max(0, size - self._sizes.get(member.filename, 0))
                    self._sizes[member.filename] = max(size, self._sizes.get(member.filename, 0))
                    if size > allowed or self._unpacked > self.limits.max_unpacked_bytes:
                        raise self._bomb(part)
                    yield chunk
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise self.broken(error) from error

    def parse(self, part: str, handler: XmlHandler) -> None:
        """Send the events of an XML part to a handler.

        Raises:
            InvalidInput: The part is missing or not well-formed.
            LimitExceeded: It is beyond the limits.
        """
        try:
            run(self.chunks(part), handler, self.limits)
        except BrokenXml as error:
            raise self.broken(f"in its part {part!r}, {error}") from error

    def relations(self, part: str) -> Mapping[str, Relation]:
        """The links of a part by their ids, in order; empty when it has none. `""` is the package."""
        folder, name = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{name}.rels")
        found = _Relations(folder)
        if path in self:
            self.parse(path, found)
        return found.relations

    def broken(self, reason: object) -> InvalidInput:
        """The error of a package that breaks the rules."""
        return InvalidInput(
            f"{self.filename!r} cannot be read: {reason}. "
            "Open it in its own program, save it anew and send that.",
            code="file_unreadable",
        )

    def _bomb(self, part: str) -> LimitExceeded:
        return LimitExceeded(
            f"{self.filename!r} unpacks to more than {self.limits.max_unpacked_bytes:,} bytes, or its part "
            f"{part!r} to more than {self.limits.max_unpacking_ratio} times its packed size; it is refused.",
            code="archive_bomb",
        )


def main_content_type(data: bytes, filename: str, limits: DocumentLimits) -> str | None:
    """The content type of the main part of an Office file; None for any other archive.

    Errors as in `Package`.
    """
    main = _main(Package(data, filename, limits))
    return main[1] if main else None


def main_part(package: Package) -> str:
    """The name of the main part: the document, presentation or workbook.

    Raises:
        InvalidInput: There is none.
    """
    main = _main(package)
    if main is None:
        raise package.broken("it has no main part")
    return main[0]


def _main(package: Package) -> tuple[str, str] | None:
    if _TYPES_PART not in package:
        return None
    types = _ContentTypes()
    package.parse(_TYPES_PART, types)
    return types.main


def _part_name(name: str) -> str:
    return unquote(name.replace("\\", "/").lstrip("/"))


class _ContentTypes:
    def __init__(self) -> None:
        self.main: tuple[str, str] | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        content_type = attributes.get("ContentType", "")
        if name == "Override" and self.main is None and content_type.endswith(".main+xml"):
            self.main = (_part_name(attributes.get("PartName", "")), content_type)

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass


class _Relations:
    def __init__(self, folder: str) -> None:
        self.relations: dict[str, Relation] = {}
        self._folder = folder

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name != "Relationship" or attributes.get("TargetMode") == "External":
            return
        target = attributes.get("Target", "")
        path = target.lstrip("/") if target.startswith("/") else posixpath.join(self._folder, target)
        self.relations[attribute(attributes, "Id") or ""] = Relation(
            kind=attributes.get("Type", "").rpartition("/")[2], target=posixpath.normpath(_part_name(path))
        )

    def end(self, name: str) -> None:
        pass

    def text(self, data: str) -> None:
        pass
