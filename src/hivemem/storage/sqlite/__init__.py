"""The store in one SQLite file: the default, which needs no server."""

from hivemem.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
