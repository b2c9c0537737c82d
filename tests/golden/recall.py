"""Asks the golden questions: hashing embedder, no reranker, numbers of its own.

The ranking formula is tuned; what is fixed here is everything around it. So the calibration is that of
the tests and does not follow the tuning.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from hivemem.models.executor import ModelExecutor
from hivemem.models.hashing import HashingEmbedder
from hivemem.projection.hot_graphs import HotGraphs
from hivemem.service.limits import Limits
from hivemem.service.recall import Recall, RecallHit, RecallRequest, RerankLimits
from hivemem.service.remember import Remember, StoreRequest
from hivemem.storage.memory import MemoryStore
from tests.golden.corpus import MEMORIES, QUESTIONS, RELATIONSHIPS
from tests.service.conftest import OWNER
from tests.support.builders import FixedClock
from tests.support.calibration import CALIBRATION

FILE = Path(__file__).with_name("recall.json")
SHOWN = 5

_LENIENT = replace(CALIBRATION, floor=0.05)
"""A low floor, so that there is an order to see."""


async def answers() -> list[dict[str, Any]]:
    """For each question its best hits, with scores, reasons and relationships, and how many fell off."""
    store, clock = MemoryStore(), FixedClock(step=timedelta(seconds=1))
    embedder = HashingEmbedder(128)
    executor = ModelExecutor(embedder, None)
    try:
        hot = HotGraphs(store, embedder.model_id, embedder.dimension, max_bytes=1 << 30)
        remember = Remember(store=store, executor=executor, clock=clock, limits=Limits())
        recall = Recall(
            store=store,
            hot=hot,
            executor=executor,
            clock=clock,
            limits=Limits(),
            calibration=_LENIENT,
            rerank=RerankLimits(),
        )
        related = {
            key: [{"to_key": target, "relationship": label} for _, target, label in group]
            for key, group in itertools.groupby(sorted(RELATIONSHIPS), key=lambda one: one[0])
        }
        for key, text in MEMORIES.items():
            request = StoreRequest(key=key, description=text, relationships=related.get(key, ()))
            await remember.store(OWNER, request)
        found: list[dict[str, Any]] = []
        for question in QUESTIONS:
            result = await recall.recall(OWNER, RecallRequest(query=question, max_results=SHOWN))
            found.append(
                {
                    "question": question,
                    "below_floor": result.meta["below_floor"],
                    "hits": [_shown(hit) for hit in result.hits],
                }
            )
        await recall.close()
        return found
    finally:
        executor.close()


def _shown(hit: RecallHit) -> dict[str, Any]:
    return {
        "key": hit.node.key,
        "score": round(hit.score, 7),
        "scores": {name: round(score, 7) for name, score in sorted(hit.scores.items())},
        "reasons": list(hit.reasons),
        "expansion": [f"{link.direction} {link.relationship}: {link.key}" for link in hit.expansion],
        "expansion_omitted": hit.expansion_omitted,
    }
