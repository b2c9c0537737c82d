"""The store in a PostgreSQL database: for several servers on one memory, or where a database is at hand."""

from hivemem.storage.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
