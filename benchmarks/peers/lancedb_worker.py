"""LanceDB's side of `lancedb_same_run.py`; runs with a Python that has lancedb, and needs nothing else.

    python lancedb_worker.py FOLDER

FOLDER holds graphs.json ({graph: {"ids", "texts"}}), queries.json ([{"id", "graph", "text"}]) and the unit
vectors of both as float32 files `<number of the graph>.f32` and `queries.f32`. Writes found.json: for each
query the ids of the best 30, best first, and the milliseconds that the search took.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
from lancedb.index import FTS
from lancedb.rerankers import RRFReranker

LEG = 50
TOP = 30
RRF_K = 60
WARM_UP = 3


def table_of(
    database: Any, name: str, ids: list[str], texts: list[str], vectors: Path, dimension: int
) -> Any:
    """A table of one graph with its full-text index; so few vectors are searched exactly."""
    flat = pa.py_buffer(vectors.read_bytes())
    values = pa.Array.from_buffers(pa.float32(), len(ids) * dimension, [None, flat])
    rows = pa.table(
        {
            "id": pa.array(ids),
            "text": pa.array(texts),
            "vector": pa.FixedSizeListArray.from_arrays(values, dimension),
        }
    )
    table = database.create_table(name, rows)
    table.create_index("text", config=FTS())
    return table


def main(folder: Path) -> None:
    graphs = json.loads((folder / "graphs.json").read_text())
    queries = json.loads((folder / "queries.json").read_text())
    vectors = memoryview((folder / "queries.f32").read_bytes()).cast("f")
    dimension = len(vectors) // len(queries)
    database = lancedb.connect(folder / "lancedb")
    of_graph: dict[str, list[int]] = defaultdict(list)
    for position, query in enumerate(queries):
        of_graph[query["graph"]].append(position)
    found: dict[str, dict[str, Any]] = {}
    reranker = RRFReranker(K=RRF_K)
    for number, (name, positions) in enumerate(of_graph.items()):
        ids, texts = graphs[name]["ids"], graphs[name]["texts"]
        table = table_of(database, f"graph_{number}", ids, texts, folder / f"{number}.f32", dimension)

        def search(position: int, table: Any = table) -> list[str]:
            vector = vectors[position * dimension : (position + 1) * dimension].tolist()
            asked = (
                table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
                .vector(vector)
                .text(queries[position]["text"])
                .distance_type("cosine")
                .limit(LEG)
                .select(["id", "text"])
                .rerank(reranker)
            )
            return asked.to_arrow()["id"].to_pylist()[:TOP]

        for position in positions[:WARM_UP]:
            search(position)
        for position in positions:
            started = time.perf_counter()
            best = search(position)
            taken = 1000 * (time.perf_counter() - started)
            found[queries[position]["id"]] = {"ids": best, "ms": taken}
    answer = {"version": lancedb.__version__, "found": found}
    (folder / "found.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
