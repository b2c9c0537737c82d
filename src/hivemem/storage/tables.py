"""Every table of a store, alike in each database: what a copy from one to another reads and writes.

A new table is one entry in `TABLES`, or in `LEFT_BEHIND` with the reason; a test compares both with the real
schemas, so that none is forgotten. Texts are UTF-8 and ordered by their bytes, moments are integers (see
`times`), JSON is text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class ColumnKind(StrEnum):
    """What a column holds; each store has one type of its own for it."""

    TEXT = "text"
    INTEGER = "integer"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column and whether it may be NULL."""

    name: str
    kind: ColumnKind
    nullable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with its primary key, by which it is read in order.

    Raises:
        ValueError: A key column is missing, may be NULL, or holds bytes.
    """

    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        usable = {c.name for c in self.columns if not c.nullable and c.kind is not ColumnKind.BYTES}
        if not self.key or not usable.issuperset(self.key):
            raise ValueError(f"{self.name} cannot be read in the order of {self.key}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in the order of a row."""
        return tuple(column.name for column in self.columns)

    @property
    def key_positions(self) -> tuple[int, ...]:
        """Where in a row the key columns stand."""
        return tuple(map(self.names.index, self.key))


def _table(name: str, key: str, *columns: str) -> Table:
    """The table of short notations: `"revoked_at integer?"` is a column that may be NULL."""
    parts = [column.split() for column in columns]
    return Table(
        name=name,
        key=tuple(key.split()),
        columns=tuple(
            Column(name=column, kind=ColumnKind(kind.rstrip("?")), nullable=kind.endswith("?"))
            for column, kind in parts
        ),
    )


# In this order every row comes after the rows that its foreign keys name.
TABLES: tuple[Table, ...] = (
    _table(
        "users",
        "user_id",
        "user_id text",
        "name text",
        "created_at integer",
        "operator integer",
        "password_hash text?",
        "write_organization_id text?",
    ),
    _table("organizations", "organization_id", "organization_id text", "name text", "created_at integer"),
    _table(
        "graphs",
        "graph_id",
        "graph_id text",
        "name text",
        "owner_id text?",
        "organization_id text?",
        "created_at integer",
        "is_default integer",
        "frozen_at integer?",
    ),
    _table(
        "memberships",
        "organization_id user_id",
        "organization_id text",
        "user_id text",
        "role text",
        "joined_at integer",
    ),
    _table(
        "invitations",
        "hash",
        "hash text",
        "organization_id text",
        "role text",
        "invited_by text",
        "created_at integer",
        "expires_at integer",
        "used_at integer?",
        "used_by text?",
    ),
    _table(
        "external_identities",
        "issuer subject",
        "issuer text",
        "subject text",
        "user_id text",
        "created_at integer",
    ),
    _table(
        "api_keys",
        "key_id",
        "key_id text",
        "hash text",
        "name text",
        "user_id text",
        "graph_id text",
        "scope text",
        "created_at integer",
        "revoked_at integer?",
        "admin integer",
        "expires_at integer?",
        "last_used_at integer?",
    ),
    _table("graph_counters", "graph_id", "graph_id text", "revision integer", "last_event_id integer"),
    _table(
        "nodes",
        "graph_id key",
        "graph_id text",
        "key text",
        "node_type text",
        "description text",
        "data text",
        "search_text text?",
        "assets text",
        "enrichment_status text",
        "vector_model text?",
        "write_version integer",
        "revision integer",
        "created_at integer",
        "updated_at integer",
    ),
    _table(
        "node_vectors",
        "graph_id node_key ordinal",
        "graph_id text",
        "node_key text",
        "ordinal integer",
        "model_id text",
        "source text",
        "text_start integer",
        "text_end integer",
        "vector bytes",
    ),
    _table(
        "edges",
        "graph_id edge_id",
        "graph_id text",
        "edge_id text",
        "from_key text",
        "to_key text",
        "relationship text",
        "description text?",
        "data text",
        "write_version integer",
        "revision integer",
        "created_at integer",
        "updated_at integer",
    ),
    _table(
        "hyperedges",
        "graph_id hyperedge_id",
        "graph_id text",
        "hyperedge_id text",
        "identity text",
        "relationship text",
        "description text?",
        "data text",
        "write_version integer",
        "revision integer",
        "created_at integer",
        "updated_at integer",
    ),
    _table(
        "hyperedge_participants",
        "graph_id hyperedge_id node_key",
        "graph_id text",
        "hyperedge_id text",
        "node_key text",
        "ordinal integer",
        "role text",
    ),
    _table(
        "versions",
        "graph_id kind id revision",
        "graph_id text",
        "kind text",
        "id text",
        "revision integer",
        "recorded_at integer",
        "state text?",
    ),
    _table("tombstones", "graph_id kind id", "graph_id text", "kind text", "id text", "revision integer"),
    _table(
        "timeline",
        "graph_id event_id",
        "graph_id text",
        "event_id integer",
        "at integer",
        "summary text",
        "source text",
        "tool text?",
        "node_key text?",
        "meta text",
    ),
    _table("timeline_terms", "graph_id event_id", "graph_id text", "event_id integer", "terms text"),
    _table(
        "sessions",
        "graph_id session_id",
        "graph_id text",
        "session_id text",
        "tool_calls integer",
        "first_call_at integer",
        "last_call_at integer",
    ),
    _table(
        "session_nodes",
        "graph_id session_id node_key",
        "graph_id text",
        "session_id text",
        "node_key text",
        "touch_count integer",
        "first_touched_at integer",
        "last_touched_at integer",
    ),
    _table(
        "files",
        "graph_id file_id",
        "graph_id text",
        "file_id text",
        "filename text",
        "filename_folded text",
        "file_type text",
        "content_type text",
        "size_bytes integer",
        "sha256 text",
        "node_key text",
        "summary text",
        "created_at integer",
    ),
    _table(
        "token_reports",
        "graph_id user_id session_id turn_sequence",
        "graph_id text",
        "user_id text",
        "session_id text",
        "turn_sequence integer",
        "event_id text",
        "report text",
        "recorded_at integer",
    ),
    _table(
        "skills",
        "graph_id name",
        "graph_id text",
        "name text",
        "skill_id text",
        "version text",
        "content text",
        "files text",
        "published_at integer",
    ),
    _table(
        "oauth_clients",
        "client_id",
        "client_id text",
        "name text",
        "redirect_uris text",
        "grant_types text",
        "scopes text",
        "authentication text",
        "secret_hash text?",
        "created_at integer",
        "revoked_at integer?",
    ),
    _table(
        "oauth_grants",
        "grant_id",
        "grant_id text",
        "client_id text",
        "user_id text",
        "graph_id text",
        "key_id text?",
        "scopes text",
        "resource text",
        "created_at integer",
        "revoked_at integer?",
    ),
    _table(
        "oauth_tokens",
        "hash",
        "hash text",
        "kind text",
        "grant_id text",
        "scopes text",
        "expires_at integer",
        "used_at integer?",
    ),
    _table(
        "oauth_codes",
        "hash",
        "hash text",
        "grant_id text",
        "redirect_uri text",
        "redirect_uri_given integer",
        "code_challenge text",
        "expires_at integer",
        "used_at integer?",
    ),
    _table(
        "oauth_sign_ins",
        "hash",
        "hash text",
        "client_id text",
        "request text",
        "expires_at integer",
        "identity text?",
        "consent_hash text?",
        "external text?",
    ),
    _table(
        "audit_events",
        "event_id",
        "event_id integer",
        "at integer",
        "action text",
        "user_id text?",
        "credential text",
        "graph_id text?",
        "organization_id text?",
        "target text?",
        "address text",
        "request_id text",
        "detail text",
    ),
)

GRAPH_TABLES: tuple[Table, ...] = tuple(
    table for table in TABLES if table.key[0] == "graph_id" and table.name != "graphs"
)
"""The tables that hold a graph's content, in the order of `TABLES`; `graph_id` is their first column."""

EXPORT_TABLES: tuple[Table, ...] = (
    _table(
        "exports",
        "graph_id export_id",
        "graph_id text",
        "export_id text",
        "user_id text",
        "request text",
        "secret text",
        "status text",
        "created_at integer",
        "expires_at integer",
        "document text?",
        "size_bytes integer?",
        "sha256 text?",
        "node_count integer?",
        "error_code text?",
    ),
    _table(
        "export_chunks",
        "graph_id export_id document ordinal",
        "graph_id text",
        "export_id text",
        "document text",
        "ordinal integer",
        "content bytes",
    ),
)
"""Tables of a graph that are left behind by a copy and go with the graph."""

PURGED_TABLES: tuple[Table, ...] = (*GRAPH_TABLES, *EXPORT_TABLES)
"""All that holds something of a graph. In the reverse of this order, rows go before those they name."""

BELONGS_TO = {
    "graph_id": "graphs",
    "user_id": "users",
    "owner_id": "users",
    "invited_by": "users",
    "organization_id": "organizations",
    "write_organization_id": "organizations",
}
"""Columns that name what a row belongs to, and the table where that must be; its key has the same values."""

OUTLIVING = {
    "audit_events": "a log tells of what is gone",
    "deleted_graphs": "the list of what is gone",
}
"""Tables whose rows may name what does not exist any more, and why."""


def owned_tables() -> Iterator[tuple[Table, dict[str, Table]]]:
    """Each table whose rows belong to others, with its columns that name them and the tables they name."""
    by_name = {table.name: table for table in TABLES}
    for table in (*TABLES, *EXPORT_TABLES):
        owners = {
            column: by_name[owner]
            for column, owner in BELONGS_TO.items()
            if column in table.names and owner != table.name and table.name not in OUTLIVING
        }
        if owners:
            yield table, owners


LEFT_BEHIND = {
    "blobs": "bytes of files are copied as files, since SQLite keeps them in a folder",
    "blob_chunks": "as blobs",
    "deleted_graphs": "what is gone is not in the copy",
    "exports": "live for a day; the copy makes its own",
    "export_chunks": "as exports",
    "leases": "which process does a piece of work now; none of them works on the copy",
    "rate_limits": "counts of the present minute",
    "schema_version": "each database has its own",
}
"""Tables that a copy does not take along, and why. They do not make a target full either."""
