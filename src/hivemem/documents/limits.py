"""How much of a file is taken, and how much work may be done on it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hivemem.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLimits:
    """What one file may cost. Each number is positive.

    A file above a limit marked (refused) raises `LimitExceeded`; above one marked (cut) the rest is
    left out and the answer says so.
    """

    max_file_bytes: int = 25 << 20
    """Of the file as it was sent (refused)."""

    max_unpacked_bytes: int = 512 << 20
    """That are unpacked from one archive, all parts together (refused). They are read as a stream."""

    max_unpacking_ratio: int = 200
    """Unpacked bytes for each packed byte of an archive's part, above a first MiB (refused)."""

    max_archive_members: int = 10_000
    """Names in an archive (refused). Archives inside archives are never opened."""

    max_xml_depth: int = 256
    """Elements inside one another (refused)."""

    max_xml_text_bytes: int = 16 << 20
    """Of one stretch of text in an XML part, such as a cell (refused)."""

    max_pdf_objects: int = 500_000
    """Objects in a PDF's cross-reference tables (refused)."""

    max_pdf_pages: int = 2_000
    """Pages of a PDF that are read (cut)."""

    max_text_characters: int = 2_000_000
    """Of extracted text (cut)."""

    max_cells: int = 2_000_000
    """Cells of a workbook that hold something (cut)."""

    max_shared_string_characters: int = 50_000_000
    """Of a workbook's table of texts, which is kept in memory (refused)."""

    max_formulas: int = 500_000
    """Formulas that `trace` keeps in memory (cut)."""

    max_seconds: int = 30
    """Of processor time and, doubled, of waiting for the worker (refused; text is cut at two thirds)."""

    max_memory_bytes: int = 1 << 30
    """Address space of the worker process (refused)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise InvalidInput(f"{field.name} is {value}; it must be at least 1.")
