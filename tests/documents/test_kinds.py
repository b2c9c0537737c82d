"""What a file is: its bytes decide, and a name that contradicts them is refused."""

from __future__ import annotations

import io
import zipfile

import pytest

from hivemem.documents.kinds import KINDS, checked_filename, kind_of
from hivemem.errors import InvalidInput
from tests.documents.making import LIMITS, document, pdf, presentation, workbook

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500)


def kind(data: bytes, filename: str) -> str:
    return kind_of(data, filename, LIMITS).name


@pytest.mark.parametrize(
    ("data", "filename", "expected"),
    [
        (b"plain", "a.txt", "txt"),
        (b"# Title", "a.MD", "md"),
        (b"a,b\n1,2", "a.csv", "csv"),
        (b'{"a": 1}', "a.json", "json"),
        (b"<p>text</p>", "a.htm", "html"),
        (b"<rdf:RDF/>", "a.rdf", "rdf"),
        ("Übung".encode("utf-16"), "a.txt", "txt"),
        ("Übung".encode("latin-1"), "a.txt", "txt"),
        (b"def f(): pass", "script.py", "txt"),
        (b"no extension", "NOTES", "txt"),
        (PNG, "a.png", "png"),
        (PNG, "download", "png"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "a.JPEG", "jpg"),
        (b"GIF89a" + bytes(20), "a.gif", "gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "a.webp", "webp"),
        (b"RIFF\0\0\0\0WAVEfmt ", "a.wav", "wav"),
        (b"ID3\x04" + bytes(20), "a.mp3", "mp3"),
        (b"\xff\xfb\x90\x64" + bytes(20), "a.mp3", "mp3"),
        (b"OggS" + bytes(20), "a.ogg", "ogg"),
        (b"\0\0\0\x18ftypmp42", "a.mp4", "mp4"),
        (b"\0\0\0\x14ftypqt  ", "a.mov", "mov"),
        (b"\x1a\x45\xdf\xa3" + bytes(20), "a.webm", "webm"),
        (OLE, "a.doc", "doc"),
        (OLE, "a.xls", "xls"),
    ],
)
def test_bytes_and_name_agree(data: bytes, filename: str, expected: str) -> None:
    assert kind(data, filename) == expected
    assert KINDS[expected].name == expected


def test_files_of_the_usual_programs_are_known() -> None:
    files = {
        "docx": document(lambda made: made.add_paragraph("text")),
        "pptx": presentation(lambda made: None),
        "xlsx": workbook(lambda book: book.active.append([1])),
        "pdf": pdf("text"),
    }
    for name, data in files.items():
        assert kind(data, f"file.{name}") == name
        assert kind(data, "file") == name


@pytest.mark.parametrize(
    ("data", "filename", "named", "found"),
    [
        (PNG, "report.pdf", "application/pdf", "image/png"),
        (b"plain text", "photo.jpg", "jpg", "txt"),
        (pdf("text"), "notes.txt", "text/plain", "application/pdf"),
        (pdf("text"), "book.xlsx", "xlsx", "pdf"),
        (workbook(lambda book: None), "letter.docx", "docx", "xlsx"),
        (OLE, "letter.docx", "docx", "doc"),
        (bytes(range(256)), "data.csv", "csv", "not"),
    ],
)
def test_a_name_that_contradicts_the_bytes_is_refused(
    data: bytes, filename: str, named: str, found: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        kind(data, filename)
    assert caught.value.code == "file_type_mismatch"
    for part in (filename, named, found):
        assert part in caught.value.message


def archive() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr("a.txt", "text")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "filename"),
    [(b"MZ" + bytes(range(256)) * 4, "tool.exe"), (archive(), "files.zip"), (archive(), "letter.docx")],
)
def test_other_bytes_are_not_taken(data: bytes, filename: str) -> None:
    with pytest.raises(InvalidInput, match=r"not taken|cannot be taken") as caught:
        kind(data, filename)
    assert caught.value.code == "unsupported_file_type"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\files\\Übersicht.xlsx", "Übersicht.xlsx"),
        ("  u\u0308.txt ", "ü.txt"),
    ],
)
def test_only_the_last_part_of_a_name_is_kept(given: str, kept: str) -> None:
    assert checked_filename(given) == kept


@pytest.mark.parametrize("given", ["", "  ", "..", "/", "a\0.txt", "a\n.txt", "x" * 300])
def test_names_that_name_nothing_are_refused(given: str) -> None:
    with pytest.raises(InvalidInput, match="/filename"):
        checked_filename(given)
