"""Measure the real models: what company does to a result, what alone costs, memory, passages.

    python -m tests.models.measure CORPUS.jsonl.gz...

Each file has one JSON object with a `text` a line. docs/decisions/model-weights.md has the results.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from hivemem.models.onnx import OnnxEmbedder, OnnxNetwork, OnnxReranker
from hivemem.models.weights import EMBEDDER, RERANKER, packaged_files

TEXTS = 66
QUESTION = "when was the boiler serviced by the fitter?"

Groups = list[list[int]]


def sample(paths: Sequence[str]) -> list[str]:
    texts: list[str] = []
    for path in sorted(paths):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line)["text"] for line in lines]
        random.Random(1).shuffle(rows)
        texts += rows[: TEXTS // len(paths) + 1]
    return texts[:TEXTS]


def in_batches(
    network: OnnxNetwork, encodings: Sequence[Encoding], groups: Groups
) -> list[NDArray[np.float32]]:
    """What a padded batch gives, group after group."""
    outputs: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(encodings)
    for group in groups:
        width = max(len(encodings[i]) for i in group)
        feed = {name: np.zeros((len(group), width), np.int64) for name in network._inputs}
        for row, i in enumerate(group):
            feed["input_ids"][row, : len(encodings[i])] = encodings[i].ids
            feed["attention_mask"][row, : len(encodings[i])] = 1
            feed["token_type_ids"][row, : len(encodings[i])] = encodings[i].type_ids
        for i, output in zip(group, network._session.run(None, feed)[0], strict=True):
            outputs[i] = output[0] if output.ndim == 2 else output
    return outputs


def best_seconds(*calls: Callable[[], object], repeat: int = 12) -> list[float]:
    """The shortest time of each call; the calls take turns, so that a busy machine is unfair to none."""
    best = [float("inf")] * len(calls)
    for _ in range(repeat):
        for number, call in enumerate(calls):
            started = time.perf_counter()
            call()
            best[number] = min(best[number], time.perf_counter() - started)
    return best


def compare(name: str, encodings: Sequence[Encoding], networks: dict[int, OnnxNetwork], unit: bool) -> None:
    one = networks[1]
    by_length = sorted(range(len(encodings)), key=lambda i: len(encodings[i]))
    mixed = random.Random(2).sample(by_length, len(by_length))

    def groups(order: Sequence[int]) -> Groups:
        return [list(order[k : k + 8]) for k in range(0, len(order), 8)]

    def array(outputs: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        rows = np.array(outputs).reshape(len(outputs), -1)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True) if unit else rows

    alone = array(in_batches(one, encodings, [[i] for i in by_length]))
    print(f"\n{name}: {len(encodings)} texts, {np.mean([len(e) for e in encodings]):.0f} tokens on average")
    for label, order in (("8 of like length", by_length), ("8 mixed", mixed)):
        difference = np.abs(array(in_batches(one, encodings, groups(order))) - alone).max(axis=1)
        print(
            f"  {label:18} differs from alone: median {np.median(difference):.4f}, "
            f"99 % {np.quantile(difference, 0.99):.4f}, most {difference.max():.4f}"
        )
    calls: dict[str, Callable[[], object]] = {
        "alone, 1 thread": lambda: one.run_each(encodings),
        "alone, 2 threads": lambda: networks[2].run_each(encodings),
        "8 of like length": lambda: in_batches(one, encodings, groups(by_length)),
        "8 mixed": lambda: in_batches(one, encodings, groups(mixed)),
    }
    for label, seconds in zip(calls, best_seconds(*calls.values()), strict=True):
        print(f"  {label:18} {1000 * seconds / len(encodings):6.2f} ms a text")


def resident_megabytes() -> int:
    return (
        int(next(line for line in Path("/proc/self/status").open() if line.startswith("VmRSS")).split()[1])
        // 1024
    )


def main() -> None:
    texts = sample(sys.argv[1:])
    before = resident_megabytes()
    started = time.perf_counter()
    embedder, reranker = OnnxEmbedder(packaged_files(EMBEDDER)), OnnxReranker(packaged_files(RERANKER))
    print(f"both models: verified and loaded in {time.perf_counter() - started:.2f} s")
    embedder.embed_passages(["word " * 600] * 8)
    reranker.score(QUESTION, ["word " * 600] * 8)
    print(f"memory after full windows: {before} -> {resident_megabytes()} MB")

    tokenizer = embedder._tokenizer
    passages = tokenizer.encode_batch(texts, add_special_tokens=False)
    for encoding in passages:
        encoding.truncate(158)
    networks = {n: OnnxNetwork(packaged_files(EMBEDDER).model, threads=n) for n in (1, 2)}
    compare("embedder", [tokenizer.post_process(e) for e in passages], networks, unit=True)
    [seconds] = best_seconds(lambda: embedder.embed_query(QUESTION), repeat=50)
    print(f"  a question: {1000 * seconds:.1f} ms")

    networks = {n: OnnxNetwork(packaged_files(RERANKER).model, threads=n) for n in (1, 2)}
    tokenizer = reranker._tokenizer
    for room in (44, 158):
        asked = tokenizer.encode(QUESTION, add_special_tokens=False)
        shown = tokenizer.encode_batch(texts, add_special_tokens=False)
        for encoding in shown:
            encoding.truncate(room)
        pairs = [tokenizer.post_process(asked, e) for e in shown]
        compare(f"reranker, texts of up to {room} tokens", pairs, networks, unit=False)

    print()
    for label, text in (("English", " ".join(texts) * 20), ("no boundaries", "a" * 1_000_000)):
        text = text[:1_000_000]
        [seconds] = best_seconds(lambda text=text: embedder.passages(text), repeat=1)
        count = len(embedder.passages(text))
        print(f"{len(text):,} characters, {label}: cut into {count} passages in {seconds:.2f} s")


if __name__ == "__main__":
    main()
