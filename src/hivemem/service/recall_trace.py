"""What a recall tells about itself: the `_search_meta` of its answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from hivemem.domain.text import JsonObject, JsonValue
from hivemem.ports.models import Reranker
from hivemem.retrieval.fuse import RRF_K
from hivemem.service.first_stage import FirstStage

_DENSE = "dense: "


@dataclass(slots=True, kw_only=True)
class Trace:
    """Collected on the way through one recall.

    Attributes:
        started: `time.perf_counter()` at the call.
        degraded: What was left out and why, each note beginning with the part's name.
        warnings: Notes for the caller that are no failures.
        query_shortened: Whether only the last words of a long query were searched for.
        embed_ms: Waiting for the query's vector.
        rerank_ms: Waiting for the cross-encoder.
        model_seconds: In which it computed for this recall.
        read: Candidates that it read alone.
        read_in_context: Candidates that it read among their neighbours.
        cut: Whether the time budget ended the reading.
    """

    started: float = field(default_factory=time.perf_counter)
    degraded: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    query_shortened: bool = False
    embed_ms: float = 0.0
    rerank_ms: float = 0.0
    model_seconds: float = 0.0
    read: int = 0
    read_in_context: int = 0
    cut: bool = False

    def dense_failed(self, reason: str) -> None:
        """Note that the dense leg did not run, or not on all nodes."""
        self.degraded.append(_DENSE + reason)

    def reranker_failed(self, reason: str) -> None:
        """Note that the cross-encoder did not read all that it should."""
        self.degraded.append(f"reranker: {reason}")


def search_meta(
    stage: FirstStage, trace: Trace, *, reranker: Reranker | None, floor: float, below_floor: int
) -> JsonObject:
    """The diagnostics of a recall by words and meaning; times are in milliseconds."""
    ran = stage.dense.hits is not None
    dense: JsonObject = {
        "ran": ran,
        "hits": stage.dense.hits or 0,
        "ms": milliseconds(stage.dense.milliseconds),
        "embed_ms": milliseconds(trace.embed_ms),
    }
    error = next((note for note in trace.degraded if note.startswith(_DENSE)), None)
    if error and not ran:
        dense["error"] = error.removeprefix(_DENSE)
    degraded: list[JsonValue] = list(trace.degraded)
    meta: JsonObject = {
        "search_source": "hybrid",
        "legs": {
            "dense": dense,
            "bm25": {"ran": True, "hits": stage.bm25.hits, "ms": milliseconds(stage.bm25.milliseconds)},
        },
        "fusion": {"method": "rrf", "k": RRF_K, "candidates": stage.fused},
        "rerank": {
            "ran": trace.read > 0,
            "model": None if reranker is None else reranker.model_id,
            "candidates": trace.read,
            "in_context": trace.read_in_context,
            "ms": milliseconds(trace.rerank_ms),
        },
        "relevance_floor": floor,
        "below_floor": below_floor,
        "first_stage_ms": milliseconds(stage.milliseconds),
        "total_ms": milliseconds(1000 * (time.perf_counter() - trace.started)),
    }
    if trace.query_shortened:
        meta["query_shortened"] = True
    if degraded:
        meta["degraded"] = degraded
    return meta


def milliseconds(value: float) -> float:
    """Two decimals: more are noise."""
    return round(value, 2)
