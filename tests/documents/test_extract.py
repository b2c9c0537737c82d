"""The text of files that the usual programs write."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import OxmlElement
from pptx.util import Inches

from hivemem.documents.limits import DocumentLimits
from tests.documents.making import (
    document,
    encrypted_pdf,
    extracted,
    pdf,
    presentation,
    workbook,
)


def test_word_headings_lists_and_tables_in_reading_order() -> None:
    def build(made: Any) -> None:
        made.core_properties.title = ""
        made.add_heading("Well plan", level=1)
        made.add_paragraph("The pump stops in November.")
        made.add_paragraph("close the valve", style="List Bullet")
        table = made.add_table(rows=2, cols=2)
        for at, text in enumerate(("Part", "Price", "Pump", "120 €")):
            table.cell(at // 2, at % 2).text = text
        made.add_paragraph("After the table.")
        made.sections[0].header.paragraphs[0].text = "A header on each page"

    found = extracted(document(build), "plan.docx")

    assert found.text.split("\n") == [
        "# Well plan",
        "The pump stops in November.",
        "- close the valve",
        "Part | Price",
        "Pump | 120 €",
        "After the table.",
    ]
    assert (found.title, found.warnings, found.truncated) == ("Well plan", (), False)


def test_word_takes_inserted_text_and_leaves_deleted_text_out() -> None:
    def build(made: Any) -> None:
        made.core_properties.title = "Changes"
        paragraph = made.add_paragraph("kept ")
        for tag, inner, text in (("w:ins", "w:t", "new "), ("w:del", "w:delText", "old ")):
            change, run, word = OxmlElement(tag), OxmlElement("w:r"), OxmlElement(inner)
            word.text = text
            run.append(word)
            change.append(run)
            paragraph._p.append(change)
        paragraph.add_run("end")

    found = extracted(document(build), "changes.docx")

    assert found.text == "kept new end"
    assert found.title == "Changes"


def test_word_styles_based_on_a_heading_are_headings() -> None:
    def build(made: Any) -> None:
        style = made.styles.add_style("Chapter", WD_STYLE_TYPE.PARAGRAPH)
        style.base_style = made.styles["Heading 2"]
        made.add_paragraph("First chapter", style="Chapter")

    assert extracted(document(build), "a.docx").text == "## First chapter"


def test_slides_with_titles_tables_and_notes() -> None:
    def build(made: Any) -> None:
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text = "Budget"
        slide.placeholders[1].text = "Rent rises\nFood falls"
        slide.notes_slide.notes_text_frame.text = "Say it slowly."
        second = made.slides.add_slide(made.slide_layouts[6])
        table = second.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(2)).table
        for at, text in enumerate(("Year", "Cost", "2026", "40")):
            table.cell(at // 2, at % 2).text = text

    found = extracted(presentation(build), "talk.pptx")

    assert found.text.split("\n") == [
        "## Budget",
        "Rent rises",
        "Food falls",
        "Notes: Say it slowly.",
        "## Slide 2",
        "Year | Cost",
        "2026 | 40",
    ]


def test_slides_come_in_the_order_of_the_presentation() -> None:
    def build(made: Any) -> None:
        for title in ("one", "two"):
            made.slides.add_slide(made.slide_layouts[5]).shapes.title.text = title
        order = made.slides._sldIdLst
        order.append(order[0])

    assert extracted(presentation(build), "talk.pptx").text == "## two\n## one"


def test_workbooks_are_told_row_by_row() -> None:
    def build(book: Any) -> None:
        book.active.title = "Costs"
        book.active.append(["Day", "Amount", "Paid"])
        book.active.append([date(2026, 3, 1), 12.5, True])
        book.create_sheet("Empty")

    assert (
        extracted(workbook(build), "costs.xlsx").text
        == "## Costs\nDay | Amount | Paid\n2026-03-01 | 12.5 | TRUE"
    )


def test_pdf_pages_and_title() -> None:
    long = (
        "The garden pump is switched off in November and the water is drained from every pipe, because frost "
    )
    found = extracted(pdf(long + "would break them.", "Second page."), "pump.pdf")
    titled = extracted(pdf("text", title="Pump manual"), "pump.pdf")

    assert found.text == long + "would break them.\nSecond page."
    assert titled.title == "Pump manual"


def test_a_pdf_without_text_is_said_to_be_a_scan() -> None:
    found = extracted(pdf(""), "scan.pdf")

    assert found.text == ""
    assert "scan" in found.warnings[0]


def test_a_pdf_that_only_forbids_printing_is_read() -> None:
    assert extracted(encrypted_pdf(pdf("open text"), "", "owner"), "a.pdf").text == "open text"


def test_pages_after_the_limit_are_left_out_and_said() -> None:
    found = extracted(pdf("one", "two", "three"), "a.pdf", DocumentLimits(max_pdf_pages=2))

    assert (found.text, found.truncated) == ("one\ntwo", True)
    assert "2 of 3 pages" in found.warnings[0]


def test_html_is_what_a_reader_sees() -> None:
    page = """<!DOCTYPE html><html><head><title>Well &amp; pump</title><style>p {}</style>
      <script>var hidden = "<p>no</p>";</script></head><body><h2>Care</h2><p>Oil it<br>twice
      a year.</p><ul><li>spring</li><li>autumn</li></ul><table><tr><th>Part</th><td>Pump</td></tr></table>
      <pre>pump  on
pump off</pre><img alt="a pump"><noscript>no</noscript></body></html>"""
    found = extracted(page.encode(), "care.html")

    assert found.title == "Well & pump"
    assert found.text.split("\n") == [
        "## Care",
        "Oil it",
        "twice a year.",
        "- spring",
        "- autumn",
        "Part | Pump",
        "pump on",
        "pump off",
        "a pump",
    ]


@pytest.mark.parametrize(
    "page", ["<p>one<p>two", "<div>one</span></div><b>two", "<p/>one<br/>two", "one<h1>two"]
)
def test_html_with_bad_nesting_keeps_its_text(page: str) -> None:
    assert extracted(page.encode(), "a.html").text.replace("# ", "").split("\n") == ["one", "two"]


@pytest.mark.parametrize(
    ("data", "filename", "title"),
    [
        (b"intro\n## Pump care\ntext", "a.md", "Pump care"),
        (b"Pump care\n\nOil it twice a year.", "a.txt", "Pump care"),
        (b"Oil it twice a year.\n\nOr more often.", "a.txt", None),
        (b"first line\nsecond line", "a.txt", None),
        (b'{"title": "x"}', "a.json", None),
    ],
)
def test_titles_of_text_files(data: bytes, filename: str, title: str | None) -> None:
    found = extracted(data, filename)

    assert found.title == title
    assert found.text == data.decode()


def test_broken_json_is_kept_and_said() -> None:
    found = extracted(b'{"a": ', "a.json")

    assert found.text == '{"a": '
    assert "not valid JSON" in found.warnings[0]
    assert "RecursionError" in extracted(b"[" * 100_000, "deep.json").warnings[0]


def test_text_is_cut_at_its_limit() -> None:
    found = extracted(b"abcdefgh", "a.txt", DocumentLimits(max_text_characters=5))

    assert (found.text, found.truncated) == ("abcde", True)
    assert "5 characters" in found.warnings[0]


@pytest.mark.parametrize(
    ("data", "filename", "said"),
    [
        (b"\x89PNG" + bytes(9), "a.png", "image"),
        (b"ID3" + bytes(9), "a.mp3", "audio"),
        (b"\0\0\0\x18ftypmp42", "a.mp4", "video"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(9), "a.doc", "docx"),
    ],
)
def test_files_without_text_say_so(data: bytes, filename: str, said: str) -> None:
    found = extracted(data, filename)

    assert found.text == ""
    assert said in found.warnings[0]


def test_text_is_cut_when_time_runs_out_between_paragraphs(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 1000, 5))
    monkeypatch.setattr("hivemem.documents.collected.time.process_time", lambda: float(next(seconds)))
    found = extracted(b"<p>word" * 10, "slow.html", DocumentLimits(max_seconds=30))

    assert found.text.split("\n") == ["word"] * 5
    assert found.truncated and "30 s" in found.warnings[0]
