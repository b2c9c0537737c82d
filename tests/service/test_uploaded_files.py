"""Uploaded files: their node, their list, their cells, and what becomes of them."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hivemem.documents.limits import DocumentLimits
from hivemem.documents.reading import Documents
from hivemem.errors import Forbidden, InvalidInput, LimitExceeded, NotFound
from hivemem.service.change import Change
from hivemem.service.limits import Limits
from hivemem.service.uploaded_files import Uploaded, UploadedFiles
from hivemem.storage.files_folder import FolderFiles
from tests.service.conftest import GRAPH, OWNER, READER, World

CSV = b"month,revenue\nMay,10\nJune,20\n"


class Desk:
    """A graph whose files lie in a folder."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world = world
        self.blobs = FolderFiles(folder / "files")
        self.documents = Documents(limits=DocumentLimits(max_file_bytes=100_000))
        self.files = UploadedFiles(
            store=world.store,
            files_of=lambda graph_id: self.blobs,
            documents=self.documents,
            remember=world.remember,
            clock=world.clock,
            limits=Limits(max_search_text_characters=1_000),
        )
        self.change = Change(store=world.store, clock=world.clock, limits=Limits())

    async def upload(self, data: bytes, filename: str, **fields: Any) -> Uploaded:
        content = base64.b64encode(data).decode()
        return await self.files.upload(OWNER, filename, content, **fields)


@pytest.fixture
def desk(world: World, tmp_path: Path) -> Desk:
    return Desk(world, tmp_path)


async def test_an_upload_makes_a_node_that_its_text_finds(desk: Desk) -> None:
    uploaded = await desk.upload(b"The pump of the garden well is off in winter.", "Well plan.txt")
    file, node = uploaded.file, uploaded.node
    assert (node.key, node.node_type) == ("artifact_well_plan", "artifact")
    assert node.description == "The pump of the garden well is off in winter."
    assert node.search_text == "The pump of the garden well is off in winter."
    assert node.assets == (file.file_id,)
    assert node.data["sha256"] == file.sha256
    assert (file.filename, file.file_type, file.size_bytes) == ("Well plan.txt", "document", 45)
    assert await desk.files.listed(OWNER) == [file]
    content = await desk.files.content(OWNER, file.file_id)
    assert content.data == b"The pump of the garden well is off in winter."
    [newest, *_] = await desk.world.store.timeline(GRAPH)
    assert newest.entry.tool == "hm_upload_file"


async def test_a_file_can_join_a_node_that_exists(desk: Desk) -> None:
    await desk.world.put("project_well", "We dig a well.", data={"budget": 5}, assets=("https://a.example",))
    uploaded = await desk.upload(CSV, "costs.csv", node_key=" project_well ")
    node = await desk.world.node("project_well")
    assert (node.description, node.node_type) == ("We dig a well.", "project")
    assert node.data["budget"] == 5 and node.data["filename"] == "costs.csv"
    assert node.assets == ("https://a.example", uploaded.file.file_id)
    described = await desk.upload(CSV, "costs.csv", node_key="project_well", description="Costs of the well.")
    assert described.node.description == "Costs of the well."
    assert described.file.file_id != uploaded.file.file_id


async def test_the_same_name_is_the_same_node_and_another_file_is_not(desk: Desk) -> None:
    first = await desk.upload(b"One.", "plan.txt")
    again = await desk.upload(b"Two.", "plan.txt")
    assert again.node.key == first.node.key == "artifact_plan"
    assert again.node.assets == (first.file.file_id, again.file.file_id)
    other = await desk.upload(b"# Three", "plan.md")
    assert other.node.key.startswith("artifact_plan_")
    assert (await desk.upload(b"\xd6", "图.txt")).node.key.startswith("artifact_")


async def test_long_text_is_cut_and_a_picture_has_none(desk: Desk) -> None:
    long = await desk.upload(b"word " * 2_000, "long.txt")
    assert len(long.node.search_text or "") == 1_000
    assert any("cannot be searched" in warning for warning in long.warnings)
    picture = await desk.upload(b"\x89PNG\r\n\x1a\n" + bytes(20), "photo.png")
    assert picture.node.description == "The image photo.png"
    assert [file.filename for file in await desk.files.listed(OWNER, file_type="image")] == ["photo.png"]
    assert [file.filename for file in await desk.files.listed(OWNER, search="LONG")] == ["long.txt"]


async def test_bad_uploads_keep_nothing(desk: Desk) -> None:
    for content, filename, error, said in (
        ("***", "a.txt", InvalidInput, "/content_base64"),
        ("YQ", "a.txt", InvalidInput, "/content_base64"),
        ("", "a.txt", InvalidInput, "empty"),
        (base64.b64encode(bytes(200_000)).decode(), "a.txt", LimitExceeded, "/content_base64 holds"),
        ("YWJj", "", InvalidInput, "filename|name"),
        ("TVqQAAMAAAAEAAAA", "tool.exe", InvalidInput, "tool.exe"),
    ):
        with pytest.raises(error, match=said):
            await desk.files.upload(OWNER, filename, content)
    with pytest.raises(Forbidden):
        await desk.files.upload(READER, "a.txt", "YWJj")
    assert await desk.files.listed(OWNER) == []
    assert [blob async for blob in desk.blobs.list()] == []
    assert (await desk.files.upload(OWNER, "a.txt", "YW\nJj\n")).file.size_bytes == 3


async def test_a_forgotten_node_takes_its_file_along_and_time_collects_it(desk: Desk) -> None:
    kept, gone = await desk.upload(b"Kept.", "kept.txt"), await desk.upload(b"Gone.", "gone.txt")
    await desk.change.forget_node(OWNER, gone.node.key)
    with pytest.raises(NotFound, match=gone.file.file_id):
        await desk.files.content(OWNER, gone.file.file_id)
    assert await desk.files.listed(OWNER) == [kept.file]
    assert await desk.files.collect(GRAPH) == 0, "what is young can still be restored"
    desk.world.clock.advance(days=40 + 365 * 30)
    assert await desk.files.collect(GRAPH) == 1
    assert [blob.sha256 async for blob in desk.blobs.list()] == [kept.file.sha256]
    assert (await desk.files.content(OWNER, kept.file.file_id)).data == b"Kept."
    assert timedelta(days=40) > timedelta(days=30)


async def test_bad_questions_say_what_is_wrong(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match="/limit is 201"):
        await desk.files.listed(OWNER, limit=201)
    with pytest.raises(InvalidInput, match="/file_type 'sheet' is not one of document"):
        await desk.files.listed(OWNER, file_type="sheet")
    with pytest.raises(NotFound, match="there is no file 'file_none'"):
        await desk.files.content(OWNER, "file_none")
