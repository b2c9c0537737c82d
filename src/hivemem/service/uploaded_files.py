"""hm_upload_file, hm_list_files and hm_tabular: files that belong to nodes.

An upload goes: decode -> read in a worker process -> keep the bytes -> write the record -> store the
node. Whatever is cut off in between leaves bytes or a record that nothing refers to, which `collect`
removes; a file is there from the moment its node is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Protocol, get_args

from hivemem.documents.kinds import FileType, checked_filename
from hivemem.documents.reading import Documents, NamedBytes, ReadFile
from hivemem.domain.access import Principal
from hivemem.domain.files import StoredFile
from hivemem.domain.graph import GraphId
from hivemem.domain.keys import normalise_key
from hivemem.domain.node import Node
from hivemem.domain.text import JsonObject, storable_text
from hivemem.domain.writing import UPLOAD_TOOL
from hivemem.enrichment.mentions import digest, slug
from hivemem.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from hivemem.ports.clock import Clock
from hivemem.ports.files import Files, read_whole
from hivemem.ports.store import FileStore, GraphStore
from hivemem.service.limits import Limits
from hivemem.service.remember import Remember, StoreRequest

MAX_LISTED = 200
_YOUNG = timedelta(days=1)
"""Bytes are written before the record that refers to them: younger ones are left alone."""


class UploadedFileStore(GraphStore, FileStore, Protocol):
    """What of a store this use case needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """A kept file, its node, and what the reader of the file has to say about it."""

    file: StoredFile
    node: Node
    warnings: tuple[str, ...]


class UploadedFiles:
    """Keeps files and answers questions about them.

    Args:
        store: Records and nodes.
        files_of: Where the bytes of a graph are.
        documents: Reads files, away from this process.
        remember: Stores the node.
        clock: Times and ids.
        limits: Sizes of texts.
        keep_forgotten: How long the file of a forgotten node can be restored with it.
    """

    def __init__(
        self,
        *,
        store: UploadedFileStore,
        files_of: Callable[[GraphId], Files],
        documents: Documents,
        remember: Remember,
        clock: Clock,
        limits: Limits,
        keep_forgotten: timedelta = timedelta(days=30),
    ) -> None:
        self._store = store
        self._files_of = files_of
        self._documents = documents
        self._remember = remember
        self._clock = clock
        self._limits = limits
        self._keep_forgotten = keep_forgotten

    async def upload(
        self,
        principal: Principal,
        filename: str,
        content_base64: str,
        *,
        description: str | None = None,
        node_key: str | None = None,
    ) -> Uploaded:
        """Keep a file, and store or complete the node that it belongs to.

        Without `node_key` the node is named after the file; the same file again is the same node. A node
        that exists keeps its description unless one is given.

        Raises:
            Forbidden: The credential is read-only.
            InvalidInput: Bad base64, a bad name, or a file that is refused (see `Documents.read`).
            LimitExceeded: A file or text that is too large.
            Unavailable: Store, disk or reading processes are busy; nothing was kept that anybody sees.
        """
        principal.require_write()
        name = checked_filename(storable_text(filename, "/filename"))
        data = _decoded(content_base64, self._documents.limits.max_file_bytes)
        read = await self._documents.read(data, name)
        key = await self._key(principal, read, node_key)
        blob = await self._files_of(principal.graph_id).put(data)
        file = StoredFile(
            file_id=self._clock.new_id("file"),
            filename=read.filename,
            file_type=read.kind.file_type,
            content_type=read.kind.content_type,
            size_bytes=blob.size_bytes,
            sha256=blob.sha256,
            node_key=key,
            summary=read.summary,
            created_at=self._clock.now(),
        )
        await self._store.add_file(principal.graph_id, file)
        present = (await self._store.nodes(principal.graph_id, [key])).get(key)
        request, cut = self._request(read, file, present, description)
        result = await self._remember.store(principal, request, tool=UPLOAD_TOOL)
        warnings = (*read.extracted.warnings, *cut, *result.warnings)
        return Uploaded(file=file, node=result.node, warnings=warnings)

    async def listed(
        self,
        principal: Principal,
        *,
        file_type: str | None = None,
        search: str | None = None,
        limit: int = 50,
    ) -> Sequence[StoredFile]:
        """Files, newest first; `search` is a part of the file name.

        Raises:
            InvalidInput: A limit out of range, or an unknown type.
            Unavailable: The store is busy or down.
        """
        if not 1 <= limit <= MAX_LISTED:
            raise InvalidInput(f"/limit is {limit}; use 1 to {MAX_LISTED}.")
        types = get_args(FileType)
        if file_type is not None and file_type not in types:
            raise InvalidInput(f"/file_type {file_type[:50]!r} is not one of {', '.join(types)}.")
        wanted = None if search is None else storable_text(search, "/search", max_characters=255)
        return await self._store.files(
            principal.graph_id, file_type=file_type, search=wanted or None, limit=limit
        )

    async def content(self, principal: Principal, file_id: str) -> NamedBytes:
        """A file with its bytes.

        Raises:
            NotFound: There is no such file.
            Corruption: Its bytes have changed.
            Unavailable: The store or the disk is out of reach.
        """
        file = await self._store.file(principal.graph_id, storable_text(file_id, "/file_id"))
        if file is None:
            raise NotFound(f"there is no file {file_id[:200]!r}; hm_list_files lists all.")
        data = await read_whole(self._files_of(principal.graph_id), file.sha256)
        return NamedBytes(file_id=file.file_id, filename=file.filename, data=data)

    async def collect(self, graph_id: GraphId) -> int:
        """Remove what no file refers to any more, and files whose node was forgotten long ago.

        Returns:
            The number of blobs that were removed.
        """
        now, files = self._clock.now(), self._files_of(graph_id)
        await self._store.drop_forgotten_files(graph_id, now - self._keep_forgotten)
        removed = 0
        async for blob in files.list():
            if blob.stored_at > now - _YOUNG:
                continue
            if not await self._store.used_blobs(graph_id, [blob.sha256]):
                removed += await files.delete(blob.sha256)
        return removed

    async def _key(self, principal: Principal, read: ReadFile, node_key: str | None) -> str:
        if node_key is not None:
            return normalise_key(node_key, "/node_key")
        stem = slug(PurePosixPath(read.filename).stem) or digest(read.filename)
        key = f"artifact_{stem}"
        present = (await self._store.nodes(principal.graph_id, [key])).get(key)
        if present is None or present.placeholder or present.data.get("filename") == read.filename:
            return key
        # Another file, or something else, has the plain name.
        return f"{key}_{digest(read.filename)}"

    def _request(
        self, read: ReadFile, file: StoredFile, present: Node | None, description: str | None
    ) -> tuple[StoreRequest, tuple[str, ...]]:
        told = present is not None and not present.placeholder
        if description is None or not description.strip():
            description = present.description if told and present else _description(read)
        maximum = self._limits.max_search_text_characters
        text = read.extracted.text[:maximum]
        cut = len(read.extracted.text) - len(text)
        own: JsonObject = {
            "file_id": file.file_id,
            "filename": file.filename,
            "file_type": file.file_type,
            "content_type": file.content_type,
            "size_bytes": file.size_bytes,
            "sha256": file.sha256,
        }
        data = own if present is None else {**present.data, **own}
        assets = (*(present.assets if present else ()), file.file_id)
        if len(assets) > self._limits.max_assets:
            raise Conflict(
                f"node {file.node_key!r} has {len(assets) - 1} assets already; name another node_key."
            )
        warning = f"the last {cut:,} characters of the file's text cannot be searched" if cut else None
        request = StoreRequest(
            key=file.node_key,
            description=description,
            node_type=None if told else "artifact",
            data=data,
            search_text=text or None,
            assets=assets,
        )
        return request, (warning,) if warning else ()


def _description(read: ReadFile) -> str:
    return read.summary or f"The {read.kind.file_type} {read.filename}"


def _decoded(content: str, max_bytes: int) -> bytes:
    """The bytes of standard base64; line breaks are let pass, as `base64 FILE` prints them.

    Raises:
        InvalidInput: Not base64.
        LimitExceeded: More than `max_bytes`, found out before decoding.
    """
    text = "".join(content.split()) if any(map(str.isspace, content[:100])) or "\n" in content else content
    if len(text) * 3 // 4 > max_bytes + 3:
        raise LimitExceeded(
            f"/content_base64 holds {len(text) * 3 // 4:,} bytes; at most {max_bytes:,} are taken.",
            limit=max_bytes,
        )
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(
            f"/content_base64 is not standard base64 ({error}); encode the bytes of the file."
        ) from error
