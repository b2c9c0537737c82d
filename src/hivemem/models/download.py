"""Weights from a Hugging Face repository: downloaded once, only when the user chose that source.

Each file is written under a temporary name, checked, and renamed; a manifest with sizes and SHA-256
is written last. At every later start the files are compared with the manifest, without any network:
a file that was cut or altered since is downloaded again, one that was never finished does not exist.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import httpx2
from tqdm import tqdm

from hivemem.errors import Corruption, InvalidInput, Unavailable
from hivemem.models.weights import (
    MODEL_FILE,
    TOKENIZER_FILE,
    ModelFiles,
    PublishedFile,
    model_identity,
    verify,
)

MANIFEST_FILE = "manifest.json"

# What a repository, a revision and a path in it may be made of; each becomes part of a local path.
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)*")


def repository_files(
    repository: str,
    cache: Path,
    *,
    revision: str = "main",
    model_path: str = "onnx/model.onnx",
    tokenizer_path: str = "tokenizer.json",
    base_url: str = "https://huggingface.co",
    token: str | None = None,
    timeout_seconds: float = 30.0,
    progress: TextIO | None = None,
) -> ModelFiles:
    """The files of a repository, from `cache` when they are there and whole, else downloaded into it.

    The id is the repository's name with twelve digits of the model's SHA-256. A model that keeps its
    weights in a second file beside `model.onnx` is not supported.

    Args:
        repository: `owner/name`.
        cache: A directory that hivemem may write to.
        revision: A branch, tag or commit. A branch is followed once: later starts use what is there.
        model_path: The ONNX file in the repository, such as `onnx/model_quantized.onnx`.
        tokenizer_path: The tokenizer in the repository.
        base_url: Another address that serves `/owner/name/resolve/...`, such as a mirror.
        token: For private repositories; sent to `base_url` only.
        timeout_seconds: For connecting, and for each wait for bytes.
        progress: Where progress is shown; standard error by default, never standard output.

    Raises:
        InvalidInput: A name that cannot be one of a repository.
        Unavailable: The files are not there and cannot be downloaded.
        Corruption: What was downloaded is not what the server announced, twice in a row.
    """
    for name in (repository, revision, model_path, tokenizer_path):
        if not _NAME.fullmatch(name) or ".." in name:
            raise InvalidInput(
                f"{name!r} is not a repository, revision or path; expected such as 'owner/name'"
            )
    folder = cache / "--".join(
        part.replace("/", "--") for part in (repository, revision, model_path.removesuffix(".onnx"))
    )
    wanted = {MODEL_FILE: model_path, TOKENIZER_FILE: tokenizer_path}
    published = _read_manifest(folder)
    if published is None or not _whole(folder, published):
        prefix = f"{base_url.rstrip('/')}/{repository}/resolve/{revision}/"
        # Never through a redirect to another host: httpx2 drops the header there.
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {})
        with httpx2.Client(timeout=timeout_seconds, follow_redirects=True, headers=headers) as client:
            published = {
                local: _download(client, prefix + path, folder / local, progress or sys.stderr)
                for local, path in wanted.items()
            }
        _write_manifest(folder, published)
    return ModelFiles(
        model_id=model_identity(repository, published[MODEL_FILE].sha256),
        model=folder / MODEL_FILE,
        tokenizer=folder / TOKENIZER_FILE,
    )


def _read_manifest(folder: Path) -> dict[str, PublishedFile] | None:
    """What was downloaded into the folder; None when the download never ended."""
    try:
        stored = json.loads((folder / MANIFEST_FILE).read_text("utf-8"))
        return {name: PublishedFile(**stored[name]) for name in (MODEL_FILE, TOKENIZER_FILE)}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_manifest(folder: Path, published: Mapping[str, PublishedFile]) -> None:
    stored = {name: {"size": file.size, "sha256": file.sha256} for name, file in published.items()}
    temporary = folder / f"{MANIFEST_FILE}.{os.getpid()}.part"
    temporary.write_text(json.dumps(stored, indent=2) + "\n", "utf-8")
    temporary.replace(folder / MANIFEST_FILE)


def _whole(folder: Path, published: Mapping[str, PublishedFile]) -> bool:
    try:
        for name, file in published.items():
            verify(folder / name, file, remedy="")
    except (Corruption, Unavailable):
        return False  # downloaded again by the caller
    return True


def _download(client: httpx2.Client, url: str, target: Path, progress: TextIO) -> PublishedFile:
    """Fetch one file, with one repetition: a connection that breaks once is common, twice is news."""
    try:
        return _download_once(client, url, target, progress)
    except InvalidInput:
        raise
    except (Unavailable, Corruption):
        return _download_once(client, url, target, progress)


def _download_once(client: httpx2.Client, url: str, target: Path, progress: TextIO) -> PublishedFile:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file, client.stream("GET", url) as response:
            if response.status_code in (401, 403, 404):
                raise InvalidInput(
                    f"{url} answered {response.status_code}: check the repository, the path and the token"
                )
            if not response.is_success:
                raise Unavailable(f"{url} answered {response.status_code}; try again later")
            size, digests = _announced(response)
            sha256, written = hashlib.sha256(), 0
            git_blob = hashlib.sha1(b"blob %d\0" % (size or 0), usedforsecurity=False)
            with tqdm(
                total=size, unit="B", unit_scale=True, desc=target.name, file=progress, mininterval=0.5
            ) as bar:
                for chunk in response.iter_bytes(1 << 20):
                    file.write(chunk)
                    sha256.update(chunk)
                    git_blob.update(chunk)
                    written += len(chunk)
                    bar.update(len(chunk))
            file.flush()
            os.fsync(file.fileno())
        if size is not None and written != size:
            raise Corruption(f"{url} gave {written} bytes and had announced {size}")
        found = {64: sha256.hexdigest(), 40: git_blob.hexdigest()}
        for digest in digests:
            if digest != found[len(digest)]:
                raise Corruption(
                    f"{url} gave bytes with hash {found[len(digest)]} and had announced {digest}"
                )
        Path(temporary).replace(target)
    except httpx2.HTTPError as error:
        raise Unavailable(f"{url} cannot be downloaded: {error or type(error).__name__}") from error
    except OSError as error:
        raise Unavailable(f"{str(target)!r} cannot be written: {error.strerror}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)
    return PublishedFile(size=written, sha256=sha256.hexdigest())


def _announced(response: httpx2.Response) -> tuple[int | None, list[str]]:
    """Size and hashes that the server states: SHA-256 for large files, git's blob hash for small ones.

    Large files are redirected to another host; the first answer describes them in `X-Linked-*`.
    """
    sizes: list[int] = []
    digests: list[str] = []
    for answer in [*response.history, response]:
        linked = answer is not response
        size = answer.headers.get("x-linked-size") or (
            None if linked else answer.headers.get("content-length")
        )
        if size and size.isdecimal():
            sizes.append(int(size))
        etag = answer.headers.get("x-linked-etag") or ("" if linked else answer.headers.get("etag", ""))
        etag = etag.removeprefix("W/").strip('"')
        from_git_or_sha256 = re.fullmatch(r"[0-9a-f]{64}|[0-9a-f]{40}", etag)
        if from_git_or_sha256 and (linked or not response.history):
            digests.append(etag)
    return (sizes[0] if sizes else None), digests
