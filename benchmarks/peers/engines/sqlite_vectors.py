"""SQLite with FTS5 and sqlite-vec, fused in Python: what one builds oneself without a search engine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import apsw
import sqlite_vec

from engines.contract import Engine, Plan, Rows, Vector, reciprocal_ranks

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA cache_size = -262144;
PRAGMA mmap_size = 4294967296;
CREATE TABLE memory (number INTEGER PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE memory_words USING fts5(
    text, content = memory, content_rowid = number, tokenize = 'porter unicode61'
);
CREATE VIRTUAL TABLE memory_vectors USING vec0(vector float[{dimension}] distance_metric = cosine);
"""
_BY_WORD = "SELECT rowid FROM memory_words WHERE memory_words MATCH ? ORDER BY rank LIMIT ?"
_BY_MEANING = "SELECT rowid FROM memory_vectors WHERE vector MATCH ? AND k = ? ORDER BY distance"


class SQLiteVectors(Engine):
    what = "FTS5 bm25 (Porter stems, any word), sqlite-vec (every vector), RRF in Python"
    durability = "one commit with synchronous=FULL for each insert"
    version = f"{apsw.sqlite_lib_version()}, sqlite-vec {sqlite_vec.__version__}"

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._plan = plan
        self._connection = apsw.Connection(str(folder / "memories.sqlite3"))
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())
        self._connection.enable_load_extension(False)
        self._connection.execute(_SCHEMA.format(dimension=plan.dimension)).fetchall()
        self._count = 0

    def add(self, batches: Iterable[Rows]) -> None:
        for rows in batches:
            numbers = range(self._count, self._count + len(rows.ids))
            self._count = numbers.stop
            blobs = (vector.astype("<f4", copy=False).tobytes() for vector in rows.vectors)
            with self._connection:
                for statement, values in (
                    ("INSERT INTO memory VALUES (?, ?, ?)", zip(numbers, rows.ids, rows.texts, strict=True)),
                    (
                        "INSERT INTO memory_words (rowid, text) VALUES (?, ?)",
                        zip(numbers, rows.texts, strict=True),
                    ),
                    (
                        "INSERT INTO memory_vectors (rowid, vector) VALUES (?, ?)",
                        zip(numbers, blobs, strict=True),
                    ),
                ):
                    self._connection.executemany(statement, values)

    def ready(self) -> None:
        self._connection.execute("INSERT INTO memory_words (memory_words) VALUES ('optimize')").fetchall()
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def hybrid(self, text: str, vector: Vector, k: int) -> list[str]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        by_word = self._numbers(_BY_WORD, words, self._plan.leg) if words else []
        by_meaning = self._numbers(_BY_MEANING, vector.tobytes(), self._plan.leg)
        return self._ids(reciprocal_ranks((by_word, by_meaning), k, self._plan.rrf_k))

    def dense(self, vector: Vector, k: int) -> list[str]:
        return self._ids(self._numbers(_BY_MEANING, vector.tobytes(), k))

    def close(self) -> None:
        self._connection.close()

    def _numbers(self, statement: str, *values: object) -> list[int]:
        return [number for (number,) in self._connection.execute(statement, values)]

    def _ids(self, numbers: list[int]) -> list[str]:
        marks = ", ".join("?" * len(numbers))
        statement = f"SELECT number, id FROM memory WHERE number IN ({marks})"
        ids = dict(self._connection.execute(statement, numbers).fetchall())
        return [ids[number] for number in numbers]


ENGINE = SQLiteVectors
