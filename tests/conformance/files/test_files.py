"""What every file store promises: `hivemem.ports.files.Files`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hivemem.errors import Corruption, InvalidInput, LimitExceeded, NotFound
from hivemem.ports.files import CHUNK_BYTES, Files, read_whole
from tests.conformance.files.backends import BACKENDS, Backend

LARGE = bytes(range(256)) * 4096
"""Four chunks."""


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture
async def files(backend: Backend, tmp_path: Path) -> AsyncIterator[Files]:
    opened = await backend.open(tmp_path)
    yield opened
    await backend.close(opened)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def in_chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


@pytest.mark.parametrize("data", [b"", b"x", b"\r\n\0\xff", LARGE, LARGE[: CHUNK_BYTES * 2]])
async def test_what_was_put_is_read(files: Files, data: bytes) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    blob = await files.put(data)

    assert (blob.sha256, blob.size_bytes) == (sha256(data), len(data))
    assert before <= blob.stored_at <= datetime.now(UTC) + timedelta(seconds=1)
    assert await read_whole(files, blob.sha256) == data


async def test_chunks_give_the_same_blob_as_the_whole(files: Files) -> None:
    blob = await files.put(in_chunks(LARGE, 1000))

    assert blob.sha256 == sha256(LARGE)
    chunks = [chunk async for chunk in files.read(blob.sha256)]
    assert b"".join(chunks) == LARGE
    assert max(map(len, chunks)) <= CHUNK_BYTES


async def test_the_same_bytes_are_one_blob(files: Files) -> None:
    await asyncio.gather(*(files.put(b"once") for _ in range(8)))

    assert [blob.sha256 async for blob in files.list()] == [sha256(b"once")]


async def test_the_list_is_in_order_and_knows_sizes(files: Files) -> None:
    texts = [f"text {number}".encode() for number in range(40)]
    for text in texts:
        await files.put(text)

    listed = [blob async for blob in files.list()]
    assert [(blob.sha256, blob.size_bytes) for blob in listed] == sorted(
        (sha256(text), len(text)) for text in texts
    )
    assert all(blob.stored_at.tzinfo is not None for blob in listed)


async def test_deleting_removes_one_blob_once(files: Files) -> None:
    gone, kept = await files.put(b"gone"), await files.put(b"kept")

    assert await files.delete(gone.sha256)
    assert not await files.delete(gone.sha256)
    assert not await files.exists(gone.sha256)
    assert await files.exists(kept.sha256)
    with pytest.raises(NotFound, match=gone.sha256):
        await read_whole(files, gone.sha256)


async def test_more_bytes_than_allowed_leave_nothing(files: Files) -> None:
    for content in (LARGE, in_chunks(LARGE, 4096)):
        with pytest.raises(LimitExceeded, match="1,000") as caught:
            await files.put(content, max_bytes=1000)
        assert caught.value.facts == {"limit": 1000}
    assert [blob async for blob in files.list()] == []
    assert (await files.put(bytes(1000), max_bytes=1000)).size_bytes == 1000


async def test_a_source_that_fails_leaves_nothing(files: Files) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError("the client went away")

    with pytest.raises(ConnectionError):
        await files.put(broken())
    assert [blob async for blob in files.list()] == []


@pytest.mark.parametrize("data", [b"short", LARGE])
async def test_a_damaged_blob_is_never_read_to_its_end(
    backend: Backend, files: Files, tmp_path: Path, data: bytes
) -> None:
    blob = await files.put(data)
    await backend.damage(files, tmp_path, blob.sha256)

    got = b""
    with pytest.raises(Corruption, match=blob.sha256):
        async for chunk in files.read(blob.sha256):
            got += chunk
    assert len(got) < len(data)


async def test_putting_again_repairs_a_damaged_blob(backend: Backend, files: Files, tmp_path: Path) -> None:
    blob = await files.put(LARGE)
    await backend.damage(files, tmp_path, blob.sha256)
    await files.put(LARGE)

    assert await read_whole(files, blob.sha256) == LARGE


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
async def test_a_name_that_is_no_hash_is_refused(files: Files, name: str) -> None:
    with pytest.raises(InvalidInput, match="SHA-256"):
        await files.exists(name)
    with pytest.raises(InvalidInput, match="SHA-256"):
        await files.delete(name)
    with pytest.raises(InvalidInput, match="SHA-256"):
        await read_whole(files, name)


async def test_blobs_outlive_the_store(backend: Backend, files: Files, tmp_path: Path) -> None:
    blob = await files.put(b"kept")
    reopened = await backend.open(tmp_path)

    assert await reopened.exists(blob.sha256) == backend.durable
    await backend.close(reopened)


async def test_everything_is_removed_at_once(files: Files) -> None:
    blobs = [await files.put(data) for data in (b"one", LARGE)]
    await files.remove_all()

    assert [await files.exists(blob.sha256) for blob in blobs] == [False, False]
    assert [blob async for blob in files.list()] == []
    await files.remove_all()
