"""Short texts and questions for measuring the engine alone, from the shared benchmark sets.

Turns of conversations and sentences of articles, shuffled with a fixed seed. Beyond what the sets
hold, texts are mixed: the first half of one and the second half of another, so that word frequencies
stay those of real text.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

SHARED = Path(
    os.environ.get("HIVEMEM_SHARED_DIR", Path(__file__).resolve().parent.parent.parent.parent / "shared")
)
WHOLE = ("locomo", "realtalk", "multihoprag_facts")
SENTENCES = ("hotpotqa", "musique", "2wiki", "vaswani", "scifact", "beam100k", "longmemeval_pool")
QUESTIONS = ("locomo", "realtalk", "hotpotqa", "musique", "2wiki", "scifact")
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")


def short_texts(count: int, seed: int = 7) -> list[str]:
    """`count` texts of one to some sentences."""
    pool = [text for name in WHOLE for text in _texts(name, "corpus")]
    pool += [
        part
        for name in SENTENCES
        for text in _texts(name, "corpus")
        for part in _BREAK.split(text)
        if len(part) > 20
    ]
    pool = list(dict.fromkeys(pool))
    rng = random.Random(seed)
    rng.shuffle(pool)
    while len(pool) < count:
        first, second = (rng.choice(pool).split() for _ in range(2))
        pool.append(" ".join(first[: len(first) // 2] + second[len(second) // 2 :]))
    return pool[:count]


def questions(count: int, seed: int = 7) -> list[str]:
    """`count` questions, in equal parts of the sets as far as they reach."""
    rng = random.Random(seed)
    found: list[str] = []
    for name in QUESTIONS:
        texts = list(_texts(name, "queries"))
        rng.shuffle(texts)
        found += texts[: -(-count // len(QUESTIONS))]
    rng.shuffle(found)
    return found[:count]


def _texts(name: str, kind: str) -> Iterator[str]:
    with gzip.open(SHARED / "bench" / name / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]
