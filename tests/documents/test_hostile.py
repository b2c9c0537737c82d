"""Files made to hurt are refused quickly, by name, whatever they are."""

from __future__ import annotations

import io
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.package import Package
from hivemem.errors import HivememError, InvalidInput, LimitExceeded
from tests.documents.making import document, encrypted_pdf, extracted, pdf, presentation, replaced, workbook

PLAIN = document(lambda made: made.add_paragraph("MARK"))
BOOK = workbook(lambda book: book.active.append(["a", 1, "=B1*2"]))
BOMB = b"<a>" + b"<b/>" * (20 << 20) + b"</a>"


def refused(data: bytes, filename: str, limits: DocumentLimits | None = None) -> HivememError:
    with pytest.raises(HivememError) as caught:
        extracted(data, filename, limits or DocumentLimits())
    assert filename in caught.value.message or "the file" in caught.value.message
    return caught.value


def test_a_zip_bomb_is_refused_by_its_ratio() -> None:
    error = refused(replaced(PLAIN, {"word/document.xml": BOMB}), "bomb.docx")

    assert isinstance(error, LimitExceeded)
    assert error.code == "archive_bomb"


def test_what_all_parts_unpack_to_is_counted_together() -> None:
    parts = {f"part{number}": bytes(40_000) for number in range(3)}
    package = Package(replaced(PLAIN, parts), "many.docx", DocumentLimits(max_unpacked_bytes=100_000))

    for _ in range(3):  # reading again is free
        assert sum(map(len, package.chunks("part0"))) == 40_000
    assert sum(map(len, package.chunks("part1"))) == 40_000
    with pytest.raises(LimitExceeded, match=r"100,000"):
        list(package.chunks("part2"))


def test_a_size_that_the_archive_lies_about_changes_nothing() -> None:
    lying = bytearray(replaced(PLAIN, {"word/document.xml": BOMB}))
    with zipfile.ZipFile(io.BytesIO(lying)) as archive:
        size = archive.getinfo("word/document.xml").file_size.to_bytes(4, "little")
    lying = bytearray(bytes(lying).replace(size, (1000).to_bytes(4, "little")))

    assert refused(bytes(lying), "lying.docx").code in ("archive_bomb", "file_unreadable")


def test_archives_inside_are_not_opened() -> None:
    nested = replaced(PLAIN, {"word/embeddings/inner.zip": replaced(PLAIN, {"word/document.xml": BOMB})})

    assert extracted(nested, "nested.docx").text == "MARK"


def test_too_many_members_are_refused() -> None:
    error = refused(PLAIN, "many.docx", DocumentLimits(max_archive_members=5))

    assert "5" in error.message and isinstance(error, LimitExceeded)


LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>&b;
</w:t></w:r></w:p></w:body></w:document>"""
OUTSIDE = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">&a;</w:document>"""


@pytest.mark.parametrize("part", [LAUGHS, OUTSIDE, LAUGHS.decode().encode("utf-16")])
def test_entities_are_refused_before_they_are_expanded(part: bytes) -> None:
    error = refused(replaced(PLAIN, {"word/document.xml": part}), "laughs.docx")

    assert error.code == "file_unreadable"
    assert "document type" in error.message


def test_entities_are_refused_in_every_part_that_is_read() -> None:
    for name in ("xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/styles.xml", "[Content_Types].xml"):
        error = refused(replaced(BOOK, {name: LAUGHS}), "laughs.xlsx")
        assert error.code == "file_unreadable", name


def test_xml_nested_without_end_is_refused() -> None:
    deep = b"<a>" * 100_000
    assert isinstance(refused(replaced(PLAIN, {"word/document.xml": deep}), "deep.docx"), LimitExceeded)


def test_one_enormous_text_is_refused() -> None:
    limits = DocumentLimits(max_xml_text_bytes=1000)
    long = replaced(PLAIN, {"word/document.xml": b"<w>" + bytes(str(list(range(999))), "ascii") + b"</w>"})

    assert "1,000" in refused(long, "long.docx", limits).message


@pytest.mark.parametrize("keep", [10, 200, 0.5, 0.95])
@pytest.mark.parametrize("name", ["docx", "pptx", "xlsx"])
def test_office_files_cut_short_are_refused(name: str, keep: float) -> None:
    data = {"docx": PLAIN, "pptx": presentation(lambda made: None), "xlsx": BOOK}[name]
    cut = data[: int(keep if keep > 1 else keep * len(data))]

    assert refused(cut, f"cut.{name}").code == "file_unreadable"


@pytest.mark.parametrize("missing", ["word/document.xml", "xl/workbook.xml", "xl/worksheets/sheet1.xml"])
def test_office_files_without_a_part_are_refused(missing: str) -> None:
    data = PLAIN if missing.startswith("word") else BOOK
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(stream, "w") as target:
        for name in source.namelist():
            if name != missing:
                target.writestr(name, source.read(name))

    assert refused(stream.getvalue(), "part.docx" if data is PLAIN else "part.xlsx").code == "file_unreadable"


def test_encrypted_archives_are_refused() -> None:
    flagged = bytearray(PLAIN)
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        at = flagged.find(signature)
        while at >= 0:
            flagged[at + offset] |= 1
            at = flagged.find(signature, at + 4)

    assert refused(bytes(flagged), "secret.docx").code == "file_encrypted"


def test_office_files_with_a_password_are_refused_as_encrypted() -> None:
    ole = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(90)
    )

    error = refused(ole, "secret.xlsx")
    assert error.code == "file_encrypted"
    assert "password" in error.message


def test_pdfs_with_a_password_are_refused_as_encrypted() -> None:
    assert refused(encrypted_pdf(pdf("secret"), "user", "owner"), "secret.pdf").code == "file_encrypted"


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.7",
        b"%PDF-1.7\n" + bytes(500),
        b"%PDF-1.7\nstartxref\n9999999\n%%EOF",
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 1 0 R>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF",
        b"%PDF-1.4\n1 0 obj<</Type/Pages/Kids[1 0 R]/Count 1>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF",
    ],
)
def test_broken_pdfs_are_refused(data: bytes) -> None:
    assert refused(data, "broken.pdf").code == "file_unreadable"


def test_pdfs_with_very_many_objects_are_refused() -> None:
    error = refused(pdf("text"), "many.pdf", DocumentLimits(max_pdf_objects=3))
    assert isinstance(error, LimitExceeded)


def test_a_page_that_unpacks_without_end_is_left_out_and_said() -> None:
    stream = zlib.compress(bytes(200 << 20), 9)
    page = (
        b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R>>endobj\n"
        b"4 0 obj<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream endobj\n"
        b"trailer<</Root 1 0 R/Size 5>>\nstartxref\n0\n%%%%EOF" % (len(stream), stream)
    )

    found = extracted(page, "bomb.pdf")
    assert (found.text, found.truncated) == ("", True)
    assert "could not be read: 1" in found.warnings[0]


@pytest.mark.parametrize(
    ("sheet", "reason"),
    [
        (b'<row r="2"><c r="A2"><v>1</v></c></row><row r="1"><c r="A1"><v>1</v></c></row>', "after row 2"),
        (b'<row r="1"><c r="B9"><v>1</v></c></row>', "row 1"),
        (b'<row r="1"><c r="ZZZ1"><v>1</v></c></row>', "outside"),
        (b'<row r="9999999"><c><v>1</v></c></row>', "row 9999999"),
        (b'<row r="1"><c r="A1" t="s"><v>77</v></c></row>', ""),
        (b'<row r="1"><c r="A1"><v>one</v></c></row>', "one"),
        (b'<row r="one"><c><v>1</v></c></row>', "one"),
    ],
)
def test_sheets_that_no_program_writes_are_refused(sheet: bytes, reason: str) -> None:
    head = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    data = replaced(BOOK, {"xl/worksheets/sheet1.xml": head + sheet + b"</sheetData></worksheet>"})

    error = refused(data, "odd.xlsx")
    assert isinstance(error, InvalidInput)
    assert reason in error.message


PATHS = ["[Content_Types].xml", "_rels/.rels", "word/document.xml", "word/styles.xml"]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(PATHS), st.integers(0, 1000), st.binary(min_size=1, max_size=8))
def test_spoiled_parts_give_text_or_a_refusal(path: str, at: int, noise: bytes) -> None:
    def spoil(part: bytes) -> bytes:
        place = at % len(part)
        return part[:place] + noise + part[place + len(noise) :]

    try:
        extracted(replaced(PLAIN, {path: spoil}), "spoiled.docx")
    except HivememError as error:
        assert "spoiled.docx" in error.message or "the file" in error.message


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=6))
def test_spoiled_pdfs_give_text_or_a_refusal(at: int, noise: bytes) -> None:
    data = pdf("A page of text.")
    place = 8 + at % (len(data) - 8)

    try:
        extracted(data[:place] + noise + data[place + len(noise) :], "spoiled.pdf")
    except HivememError as error:
        assert "spoiled.pdf" in error.message


def test_names_in_archives_are_never_paths() -> None:
    evil = replaced(PLAIN, {"../../outside.xml": b"<a/>", "/etc/passwd": b"<a/>"})
    package = Package(evil, "evil.docx", DocumentLimits())

    assert extracted(evil, "evil.docx").text == "MARK"
    assert "etc/passwd" in package


def test_links_to_the_outside_are_not_followed() -> None:
    def link(part: bytes) -> bytes:
        outside = (
            b'<Relationship Id="x" Type="a/styles" Target="http://example.org/s.xml" TargetMode="External"/>'
        )
        return part.replace(b"</Relationships>", outside + b"</Relationships>")

    assert extracted(replaced(PLAIN, {"word/_rels/document.xml.rels": link}), "link.docx").text == "MARK"
