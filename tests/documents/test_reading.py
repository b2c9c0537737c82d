"""Files read in worker processes: the whole way, and what stops it."""

from __future__ import annotations

import asyncio
import gc
import io
import os
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.processes import WorkerProcesses
from hivemem.documents.reading import Documents, NamedBytes
from hivemem.errors import HivememError, InvalidInput, LimitExceeded, NotFound, Unavailable
from tests.documents.making import document, pdf, workbook

WORKER = b"hivemem.documents.worker"


@pytest.fixture
def documents() -> Documents:
    return Documents()


def stored(data: bytes, filename: str) -> NamedBytes:
    return NamedBytes(file_id="file_1", filename=filename, data=data)


async def test_an_upload_is_read_with_title_and_summary(documents: Documents) -> None:
    def build(made: Any) -> None:
        made.add_heading("Well plan", level=1)
        made.add_paragraph("The pump of the garden well is switched off in November.")

    read = await documents.read(document(build), "../plans/plan.docx")

    assert (read.filename, read.kind.name, read.kind.file_type) == ("plan.docx", "docx", "document")
    assert read.extracted.title == "Well plan"
    assert read.summary == "Well plan. The pump of the garden well is switched off in November."


async def test_pdf_and_media_files_go_the_same_way(documents: Documents) -> None:
    read = await documents.read(pdf("Pump manual, second edition."), "pump.pdf")
    image = await documents.read(b"\x89PNG\r\n\x1a\n" + bytes(20), "photo.png")

    assert read.extracted.text == "Pump manual, second edition."
    assert (image.kind.file_type, image.extracted.text, image.summary) == ("image", "", "")
    assert "image" in image.extracted.warnings[0]


async def test_kept_files_answer_questions_about_cells(documents: Documents) -> None:
    def build(book: Any) -> None:
        for row in (["Item", "Price"], ["Pump", 120], ["Sum", "=B2*2"]):
            book.active.append(row)

    file = stored(workbook(build), "prices.xlsx")
    outline = await documents.outline(file)
    cells = await documents.range(file, sheet="Sheet", address="A1:B3")
    found = await documents.search(file, query="pump")
    traced = await documents.trace(file, sheet="Sheet", cell="B2", direction="dependents")

    assert outline.file_id == "file_1" and outline.sheets[0].regions[0].headers == ("Item", "Price")
    assert [[cell.value for cell in row] for row in cells.rows] == [
        ["Item", "Price"],
        ["Pump", 120],
        ["Sum", None],
    ]
    assert type(cells.rows[1][1].value) is int
    assert found.hits[0].text == "Pump: 120"
    assert [node.id for node in traced.nodes] == ["Sheet!B2", "Sheet!B3"]
    assert (await documents.read(file.data, file.filename)).extracted.text.startswith(
        "## Sheet\nItem | Price"
    )


async def test_errors_come_back_as_they_were_raised(documents: Documents) -> None:
    file = stored(b"a,b\n1,2\n", "prices.csv")
    note = stored(b"plain text", "note.txt")

    with pytest.raises(NotFound, match="'prices'") as caught:
        await documents.range(file, sheet="Costs", address="A1")
    assert caught.value.facts == {"sheets": ["prices"]}
    with pytest.raises(InvalidInput, match=r"note\.txt") as refused:
        await documents.outline(note)
    assert refused.value.code == "file_not_tabular"
    with pytest.raises(InvalidInput) as unsupported:
        await documents.read(b"MZ" + bytes(range(256)), "tool.exe")
    assert unsupported.value.code == "unsupported_file_type"


async def test_what_is_empty_or_too_large_is_refused_without_a_process(documents: Documents) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        await documents.read(b"", "a.txt")
    with pytest.raises(LimitExceeded, match="26,214,400"):
        await documents.read(bytes((25 << 20) + 1), "a.txt")


SLOW_HTML = b"<p>word" * 400_000
"""Some seconds of work for the parser."""


async def test_work_that_takes_too_long_is_ended() -> None:
    limits = DocumentLimits(max_seconds=1, max_text_characters=2_000_000_000, max_xml_text_bytes=1 << 30)
    documents = Documents(limits=limits)
    cells = b"\n".join(b"a%d,b%d,c%d" % (at, at, at) for at in range(400_000))
    file = stored(cells, "slow.csv")

    with pytest.raises(LimitExceeded, match="1 s") as caught:
        await documents.search(file, query="zebra")
    assert caught.value.code == "file_too_complex"
    assert children() == set()


async def test_work_that_needs_too_much_memory_is_ended() -> None:
    limits = DocumentLimits(max_memory_bytes=150 << 20, max_text_characters=1 << 30)
    text = "Ä".encode() * (10 << 20)
    with pytest.raises(LimitExceeded) as caught:
        await Documents(limits=limits).read(text, "large.txt")
    assert caught.value.code == "file_too_complex"
    assert children() == set()


async def test_a_worker_that_cannot_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", ["/nonexistent"])
    with pytest.raises(Unavailable, match="installation") as caught:
        await WorkerProcesses(DocumentLimits()).run("read", "a.txt", b"text", {})
    assert caught.value.code == "document_worker_failed"

    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    with pytest.raises(Unavailable, match="no process"):
        await WorkerProcesses(DocumentLimits()).run("read", "a.txt", b"text", {})


async def test_a_caller_that_leaves_ends_the_work() -> None:
    documents = Documents()
    task = asyncio.create_task(documents.read(SLOW_HTML, "slow.html"))
    while not children():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert children() == set()
    assert (await documents.read(b"still works", "a.txt")).extracted.text == "still works"


async def test_more_files_than_may_wait_are_refused() -> None:
    documents = Documents(max_processes=1, max_waiting=2)
    answers = await asyncio.gather(
        *(documents.read(b"text", f"{at}.txt") for at in range(6)), return_exceptions=True
    )

    refused = [answer for answer in answers if isinstance(answer, HivememError)]
    assert {error.code for error in refused} == {"documents_busy"}
    assert len(answers) - len(refused) >= 2
    assert all(isinstance(error, Unavailable) and error.retry_after_seconds == 5 for error in refused)


async def test_the_worker_sees_neither_environment_nor_folder(
    documents: Documents, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the current folder was searched')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "json.py"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert (await documents.read(b"text", "a.txt")).extracted.text == "text"


@pytest.mark.soak
async def test_a_million_cells_stay_within_little_memory() -> None:
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, {"constant_memory": True}) as book:
        sheet = book.add_worksheet("Big")
        for row in range(50_000):
            sheet.write_string(row, 0, f"name {row % 977}")
            for column in range(1, 19):
                sheet.write_number(row, column, row * column * 0.37)
            sheet.write_formula(row, 19, f"=B{row + 1}*2")
    documents = Documents(limits=DocumentLimits(max_memory_bytes=320 << 20, max_seconds=120))
    file = stored(stream.getvalue(), "big.xlsx")

    outline = await documents.outline(file)
    assert (outline.sheets[0].row_count, outline.sheets[0].column_count) == (50_000, 20)
    assert (await documents.search(file, query="name 976")).hits[0].range == "A977"
    end = await documents.range(file, sheet="Big", address="A49999:T50000")
    assert end.rows[1][19].formula == "=B50000*2"
    traced = await documents.trace(file, sheet="Big", cell="B777", direction="dependents")
    assert [node.id for node in traced.nodes] == ["Big!B777", "Big!T777"]
    assert (await documents.read(file.data, file.filename)).extracted.truncated


def test_limits_are_positive() -> None:
    with pytest.raises(InvalidInput, match="max_seconds is 0"):
        DocumentLimits(max_seconds=0)


def children() -> set[str]:
    """Processes that read documents, which this one has started and not yet waited for."""
    gc.collect()
    started = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return {process for process in started if WORKER in Path(f"/proc/{process}/cmdline").read_bytes()}
