"""Models that are exchanged, broken or absent: the memory goes on, says what is missing, and mends itself."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hivemem import app
from hivemem.models import weights
from hivemem.models.weights import EMBEDDER, MODEL_FILE, RERANKER
from hivemem.ports.models import Embedder, Span
from hivemem.service.recall import RecallResult
from hivemem.surfaces.rest.health import health
from tests.cases.memory import Memory, keys_of, opened, until
from tests.cases.reports import Report, play
from tests.models.real import onnx_embedder

pytestmark = pytest.mark.models


class TurnedEmbedder:
    """The bundled embedder in another space: its vectors turned into `dimension` axes, by the seed.

    Nearness within the space is that of the bundled model; vectors of two spaces are unrelated.
    """

    def __init__(self, model_id: str, dimension: int, seed: int) -> None:
        self._inner: Embedder = onnx_embedder()
        self.model_id = model_id
        self.dimension = dimension
        random = np.random.default_rng(seed).standard_normal((dimension, self._inner.dimension))
        self._turn = np.linalg.qr(random)[0].T.astype(np.float32)
        self.asked = 0

    def passages(self, text: str) -> list[Span]:
        return self._inner.passages(text)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._inner.embed_passages(texts) @ self._turn

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.asked += 1
        return self._inner.embed_query(text) @ self._turn


def model_a() -> TurnedEmbedder:
    return TurnedEmbedder("model-A-384", 384, seed=1)


def model_b() -> TurnedEmbedder:
    return TurnedEmbedder("model-B-768", 768, seed=2)


def model_c() -> TurnedEmbedder:
    return TurnedEmbedder("model-C-768-other", 768, seed=3)


def assert_no_foreign_vector_was_compared(result: RecallResult, model_id: str, missing: str) -> None:
    assert all("dense" not in hit.scores for hit in result.hits)
    assert result.meta["legs"]["dense"]["hits"] == 0
    assert any(missing in note and model_id in note for note in result.meta["degraded"])


async def change_model(memory: Memory, monkeypatch: pytest.MonkeyPatch, model: TurnedEmbedder) -> None:
    """Restart with another model and without the background work that embeds again."""
    monkeypatch.setattr(app, "load_embedder", lambda settings: model)
    await memory.restart(background=False)


@pytest.mark.shared
async def test_reported_change_of_model(
    memory: Memory, report: Callable[[str], Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = report("C16")
    await change_model(memory, monkeypatch, model_a())
    await memory.restart()
    await play(memory, case.setup[1:])
    _, heating, store_meter, wait, spare_keys, _, _, overview = case.sequence

    await change_model(memory, monkeypatch, model_b())
    [meanwhile] = await play(memory, [heating])
    assert_no_foreign_vector_was_compared(meanwhile, "model-B-768", "2 of 2 nodes")
    [[stored]] = await play(memory, [store_meter])
    assert stored.status == "created"
    await memory.restart()
    await play(memory, [wait])
    settled, keys = await play(memory, [heating, spare_keys])
    assert keys_of(keys)[0] == "keys"
    assert keys_of(settled)[0] == "boiler"

    await change_model(memory, monkeypatch, model_c())
    [meanwhile] = await play(memory, [heating])
    assert_no_foreign_vector_was_compared(meanwhile, "model-C-768-other", "3 of 3 nodes")
    await memory.restart()
    await memory.settled()
    again, counts = await play(memory, [heating, overview])
    assert keys_of(again)[0] == "boiler"
    assert counts.counts.nodes == 3


async def test_words_answer_while_the_vectors_are_of_another_model(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "mast": "The mast of the dinghy is repaired by a boat builder in Hoorn.",
        "sails": "The spare sails hang under the roof of the shed.",
        "rules": "Club rule: life jackets are worn on the jetty.",
    }
    await memory.notes(texts)
    for model in (model_b(), model_c()):
        await change_model(memory, monkeypatch, model)
        by_word = await memory.recall("spare sails")
        assert keys_of(by_word) == ["sails"]
        assert_no_foreign_vector_was_compared(by_word, model.model_id, "3 of 3 nodes")
    await memory.store("oars", "The oars are new.")
    mixed = await memory.recall("new oars")
    assert keys_of(mixed) == ["oars"]
    assert mixed.meta["legs"]["dense"]["hits"] == 1
    assert any("3 of 4 nodes" in note for note in mixed.meta["degraded"])
    await memory.restart()
    await memory.settled()
    whole = await memory.recall("which boat builder repaired the mast?")
    assert keys_of(whole)[0] == "mast"
    assert "degraded" not in whole.meta


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Addresses that anything in this process tried to reach."""
    tried: list[object] = []

    def refuse(self: socket.socket, address: object) -> None:
        tried.append(address)
        raise OSError("the network is blocked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: refuse(None, a))  # type: ignore[arg-type]
    return tried


@pytest.mark.shared
async def test_reported_offline_start_with_whole_models(
    tmp_path: Path, report: Callable[[str], Report], attempts: list[object]
) -> None:
    case = report("C40")
    [store] = [step for step in case.setup if "store" in step]
    [whole] = [step for step in case.sequence if step.get("case") == "models present and whole"]
    # Loaded from disk here, unlike in the other tests.
    async with opened(tmp_path, rerank_budget_seconds=60.0) as memory:
        await play(memory, [store])
        await memory.restart()
        [result] = await play(memory, [whole["then"]])
        assert keys_of(result) == ["well"]
        assert result.meta["legs"]["dense"]["ran"] and result.meta["rerank"]["ran"]
        assert "degraded" not in result.meta
        assert (await health(memory.services))["status"] == "ok"
    assert attempts == []


@pytest.fixture
def weights_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the bundled weights that a test may break; opening a memory reads this copy."""
    root = tmp_path / "weights"
    for model in (EMBEDDER, RERANKER):
        source = weights.packaged_files(model).model.parent
        shutil.copytree(source, root / model.folder)
    whole = weights.packaged_files
    monkeypatch.setattr(app, "packaged_files", lambda model: whole(model, root=root))
    return root


@pytest.mark.shared
async def test_reported_broken_weights(
    tmp_path: Path,
    report: Callable[[str], Report],
    weights_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    attempts: list[object],
) -> None:
    case = report("C40")
    [store] = [step for step in case.setup if "store" in step]
    steps = {step["case"]: step["then"] for step in case.sequence if "case" in step}
    cut = next(steps[name] for name in steps if "cut" in name)
    absent = next(steps[name] for name in steps if "no models" in name)
    file = weights_folder / EMBEDDER.folder / MODEL_FILE
    content = file.read_bytes()
    async with opened(tmp_path / "data", rerank_budget_seconds=60.0) as memory:
        await play(memory, [store])

        file.write_bytes(content[:1024])
        await memory.restart()
        by_word, by_meaning = await play(memory, [step for step in cut if "recall" in step])
        assert keys_of(by_word) == ["well"]
        for result in (by_word, by_meaning):
            assert result.meta["legs"]["dense"]["ran"] is False
            error = result.meta["legs"]["dense"]["error"]
            assert str(file) in error and "pip install" in error
            assert any(note.startswith("dense: ") for note in result.meta["degraded"])
        # The question is no exact match: without the dense leg its words still find the memory.
        assert keys_of(by_meaning) == ["well"]
        state = await health(memory.services)
        assert state["status"] == "degraded" and str(file) in str(state["checks"])

        (weights_folder / RERANKER.folder / MODEL_FILE).unlink()
        file.unlink()
        await memory.restart()
        [stored], gate = await play(memory, [step for step in absent if "health" not in step])
        assert stored.status == "created"
        assert "pending" in " ".join(stored.warnings)
        assert stored.node.enrichment_status == "pending"
        assert keys_of(gate) == ["gate"]
        assert len([note for note in gate.meta["degraded"] if "missing" in note]) == 2
        state = await health(memory.services)
        assert "missing" in state["checks"]["embedder"] and "missing" in state["checks"]["reranker"]
    assert attempts == []


async def test_mended_weights_are_taken_without_a_restart(
    tmp_path: Path, weights_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_MODEL_RETRY_SECONDS", 0.05)
    file = weights_folder / EMBEDDER.folder / MODEL_FILE
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    async with opened(tmp_path / "data", rerank_budget_seconds=60.0) as memory:
        await memory.store("pump", "The garden well pump is switched off in November.")
        assert (await memory.node("pump")).enrichment_status == "pending"
        file.write_bytes(content)
        await until(lambda: memory.services.executor.embedder is not None)
        await memory.settled()
        assert (await memory.node("pump")).enrichment_status != "pending"
        result = await memory.recall("which month is the water machinery turned off?")
        assert result.meta["legs"]["dense"]["hits"] == 1
        assert "degraded" not in result.meta
        assert keys_of(result) == ["pump"]
