"""hm_upload_file and hm_list_files."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.files import StoredFile
from hivemem.domain.text import JsonObject
from hivemem.surfaces.answers import Answer, WriteAnswer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import timestamp, with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import Item, fit_items, shorten_text
from hivemem.surfaces.wire_json import json_size

FileTypeName = Literal["document", "image", "audio", "video"]
_MIN_FILE_BYTES = 550
_ROOM_BESIDE_FILES = 300
_SUMMARY_BYTES = 2_000
_HINT = "hm_get_nodes with the node_key has the whole text"


class UploadFileInput(Input):
    """Arguments of hm_upload_file."""

    filename: str = Field(description="Name with its ending, such as plan.pdf.")
    content_base64: str = Field(description="The bytes in standard base64.")
    description: str | None = Field(None, description="What the file is; left out: a summary of its text.")
    node_key: str | None = Field(None, description="Node that it belongs to; left out: named after the file.")


class FileEntry(Answer):
    """A file."""

    file_id: str
    filename: str
    file_type: FileTypeName
    content_type: str
    size_bytes: int
    sha256: str
    node_key: str
    summary: str
    created_at: str


class UploadFileAnswer(FileEntry, WriteAnswer):
    """Answer of hm_upload_file."""

    status: Literal["uploaded"]
    processing_status: Literal["processed", "pending"] = Field(
        description="pending: the node is found by words, and by meaning soon."
    )
    write_version: int = Field(description="Of the node.")
    warnings: list[str] | None = None


class ListFilesInput(Input):
    """Arguments of hm_list_files."""

    limit: int = Field(50, ge=1, le=200, description="Most files to return.")
    file_type: FileTypeName | None = Field(None, description="Only files of this type.")
    search: str | None = Field(None, description="Only files with this in their name.")


class ListFilesAnswer(Answer):
    """Answer of hm_list_files."""

    files: list[FileEntry] = Field(description="Newest first.")
    count: int
    files_omitted: int | None = Field(None, description="Files left out to keep the answer short.")
    warnings: list[str] | None = None


async def _upload(services: Services, principal: Principal, sent: UploadFileInput) -> JsonObject:
    result = await services.files.upload(
        principal,
        sent.filename,
        sent.content_base64,
        description=sent.description,
        node_key=sent.node_key,
    )
    pending = result.node.enrichment_status == "pending"
    answer: JsonObject = {
        "status": "uploaded",
        **_entry(result.file),
        "processing_status": "pending" if pending else "processed",
        "write_version": result.node.write_version,
    }
    return with_warnings(answer, result.warnings)


async def _list(services: Services, principal: Principal, sent: ListFilesInput) -> JsonObject:
    files = await services.files.listed(
        principal, file_type=sent.file_type, search=sent.search, limit=sent.limit
    )
    room = services.settings.max_answer_bytes - _ROOM_BESIDE_FILES
    kept, omitted = fit_items([_entry(file) for file in files], room, _MIN_FILE_BYTES, _fit)
    answer: JsonObject = {"files": list(kept), "count": len(kept)}
    if omitted:
        answer["files_omitted"] = omitted
    notes = [f"{omitted} older files were left out to keep the answer short; search by name"]
    return with_warnings(answer, notes if omitted else [])


def _entry(file: StoredFile) -> Item:
    return {
        "file_id": file.file_id,
        "filename": file.filename,
        "file_type": file.file_type,
        "content_type": file.content_type,
        "size_bytes": file.size_bytes,
        "sha256": file.sha256,
        "node_key": file.node_key,
        "summary": shorten_text(file.summary, _SUMMARY_BYTES, _HINT),
        "created_at": timestamp(file.created_at),
    }


def _fit(item: Item, size: int) -> Item:
    room = size - json_size({**item, "summary": ""})
    return {**item, "summary": shorten_text(item["summary"], max(0, room), _HINT)}


UPLOAD_FILE = Operation(
    name="hm_upload_file",
    summary="Remember a file: its text becomes searchable, spreadsheets answer hm_tabular. pdf, docx, pptx, "
    "xlsx, csv, txt, md, json and html are read; pictures, sound and films are kept.",
    input=UploadFileInput,
    output=UploadFileAnswer,
    access=Access.WRITE,
    ingests=True,
    routes=(RestRoute(method="POST", path="/upload-file", takes_files=True),),
    # `hivemem upload` reads a path: see surfaces/cli/upload.py.
    verb=None,
    handler=_upload,
)

LIST_FILES = Operation(
    name="hm_list_files",
    summary="The files of the memory, newest first.",
    input=ListFilesInput,
    output=ListFilesAnswer,
    access=Access.READ,
    idempotent=True,
    routes=(RestRoute(method="GET", path="/files"),),
    verb="files",
    handler=_list,
)
