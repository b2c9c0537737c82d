"""The `Store` port on one SQLite file. Contracts stand in `hivemem.ports.store`.

Reads run in the threads of `Readers`, writes in the thread of `Writer`; what they run are the
functions of the modules beside this one. Any number of processes may have the same file open.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from hivemem.domain.access import ApiKey
from hivemem.domain.accounts import (
    Account,
    AuditEvent,
    AuditQuery,
    DeletedGraph,
    ExternalIdentity,
    Graph,
    Invitation,
    Leftovers,
    Member,
    Organization,
    Role,
    User,
)
from hivemem.domain.edge import Edge, EdgeIdentity, Hyperedge, HyperedgeIdentity
from hivemem.domain.exports import Export
from hivemem.domain.files import StoredFile
from hivemem.domain.graph import (
    ChangePage,
    GraphCounts,
    GraphId,
    Kind,
    NodeVectors,
    Relationships,
    Session,
    SessionTouch,
    Snapshot,
    TimelineEntry,
    TimelineEvent,
    Version,
    WriteBatch,
)
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.domain.oauth import AuthorizationCode, Grant, Identity, OAuthClient, SignIn, Token, TokenState
from hivemem.domain.skills import CustomSkill
from hivemem.domain.tokens import TokenReport
from hivemem.ports.observer import Observers
from hivemem.storage.sqlite import (
    audit,
    batches,
    changes,
    edges,
    exports,
    files,
    history,
    hyperedges,
    keys,
    leases,
    nodes,
    oauth,
    organizations,
    purging,
    sessions,
    skills,
    tokens,
    users,
)
from hivemem.storage.sqlite.migrate import prepare_database
from hivemem.storage.sqlite.readers import Readers, one_state
from hivemem.storage.sqlite.writer import Writer

_PROMPT_ROWS = 8
"""A snapshot of so few things, that of a usual store call, is read on the spot."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class SqliteStore:
    """Memory graphs in one file; make it with `open`, and close it."""

    def __init__(
        self, path: Path, *, busy_timeout_seconds: float, reader_threads: int, observers: Observers | None
    ) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._readers = Readers(path, threads=reader_threads, busy_timeout_seconds=busy_timeout_seconds)
        self._writer = Writer(path, busy_timeout_seconds=busy_timeout_seconds)
        self._observers = observers or Observers()

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        busy_timeout_seconds: float = 10.0,
        reader_threads: int = 4,
        observers: Observers | None = None,
    ) -> SqliteStore:
        """The store of the file `path`, which is created or brought to the present schema.

        Args:
            path: The database file, on a local disk. SQLite keeps two more files beside it while it
                is open, with `-wal` and `-shm` added to the name.
            busy_timeout_seconds: How long a write waits for another process's write.
            reader_threads: Reads that can run at the same time.
            observers: Told of each `store.write`.

        Raises:
            Corruption: Not a database, another program's, damaged, or of a newer schema.
            Unavailable: Out of reach, or locked for longer than the timeout.
        """

        def open_file() -> SqliteStore:
            prepare_database(path, busy_timeout_seconds)
            return cls(
                path,
                busy_timeout_seconds=busy_timeout_seconds,
                reader_threads=reader_threads,
                observers=observers,
            )

        return await asyncio.to_thread(open_file)

    async def revision(self, graph_id: GraphId) -> int:
        """See `GraphStore.revision`."""
        return await self._readers.run_promptly(history.revision, graph_id)

    async def snapshot(
        self,
        graph_id: GraphId,
        keys: Collection[str] = (),
        edges: Collection[EdgeIdentity] = (),
        hyperedges: Collection[HyperedgeIdentity] = (),
    ) -> Snapshot:
        """See `GraphStore.snapshot`."""
        few = len(keys) + len(edges) + len(hyperedges) <= _PROMPT_ROWS
        run = self._readers.run_promptly if few else self._readers.run
        return await run(_snapshot, graph_id, keys, edges, hyperedges)

    async def apply(self, graph_id: GraphId, batch: WriteBatch) -> int:
        """See `GraphStore.apply`."""
        with self._observers.work("store.write", nodes=len(batch.nodes)):
            return await self._write(batches.apply, graph_id, batch)

    async def changes(self, graph_id: GraphId, since: int, *, model_id: str, limit: int = 1000) -> ChangePage:
        """See `GraphStore.changes`."""
        return await self._readers.run(changes.changes, graph_id, since, model_id, limit)

    async def nodes(self, graph_id: GraphId, keys: Collection[str]) -> dict[str, Node]:
        """See `GraphStore.nodes`."""
        return await self._readers.run(nodes.nodes, graph_id, keys)

    async def edges(self, graph_id: GraphId, ids: Collection[str]) -> dict[str, Edge]:
        """See `GraphStore.edges`."""
        return await self._readers.run(edges.edges, graph_id, ids)

    async def hyperedges(self, graph_id: GraphId, ids: Collection[str]) -> dict[str, Hyperedge]:
        """See `GraphStore.hyperedges`."""
        return await self._readers.run(hyperedges.hyperedges, graph_id, ids)

    async def relationships(
        self, graph_id: GraphId, keys: Collection[str], *, edge_limit: int, hyperedge_limit: int
    ) -> dict[str, Relationships]:
        """See `GraphStore.relationships`."""
        return await self._readers.run(_relationships, graph_id, keys, edge_limit, hyperedge_limit)

    async def counts(self, graph_id: GraphId) -> GraphCounts:
        """See `GraphStore.counts`."""
        return await self._readers.run(_counts, graph_id)

    async def scan(self, graph_id: GraphId, *, after: str | None = None, limit: int = 500) -> Sequence[Node]:
        """See `GraphStore.scan`."""
        return await self._readers.run(nodes.scan, graph_id, after, limit)

    async def versions(self, graph_id: GraphId, kind: Kind, id: str) -> Sequence[Version]:
        """See `GraphStore.versions`."""
        return await self._readers.run(history.versions, graph_id, kind, id)

    async def versions_before(
        self, graph_id: GraphId, kind: Kind, ids: Collection[str], revision: int
    ) -> dict[str, Version]:
        """See `GraphStore.versions_before`."""
        return await self._readers.run(history.versions_before, graph_id, kind, ids, revision)

    async def without_vectors(self, graph_id: GraphId, model_id: str, *, limit: int = 100) -> Sequence[Node]:
        """See `GraphStore.without_vectors`."""
        return await self._readers.run(nodes.without_vectors, graph_id, model_id, limit)

    async def put_vectors(
        self,
        graph_id: GraphId,
        key: str,
        write_version: int,
        vectors: NodeVectors,
        status: EnrichmentStatus,
    ) -> bool:
        """See `GraphStore.put_vectors`."""
        return await self._writer.run(nodes.put_vectors, graph_id, key, write_version, vectors, status)

    async def vector_models(self, graph_id: GraphId) -> dict[str, int]:
        """See `GraphStore.vector_models`."""
        return await self._readers.run(nodes.vector_models, graph_id)

    async def touch(self, graph_id: GraphId, session_id: str, keys: Collection[str], at: datetime) -> None:
        """See `SessionStore.touch`."""
        await self._write(sessions.touch, graph_id, session_id, keys, at)

    async def touched(
        self, graph_id: GraphId, session_id: str, *, limit: int = 200
    ) -> Sequence[SessionTouch]:
        """See `SessionStore.touched`."""
        return await self._readers.run(sessions.touched, graph_id, session_id, limit)

    async def session(self, graph_id: GraphId, session_id: str) -> Session | None:
        """See `SessionStore.session`."""
        return await self._readers.run(sessions.session, graph_id, session_id)

    async def timeline(
        self,
        graph_id: GraphId,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        node_key: str | None = None,
        words: Sequence[Collection[str]] = (),
        limit: int = 50,
    ) -> Sequence[TimelineEvent]:
        """See `SessionStore.timeline`."""
        return await self._readers.run(sessions.timeline, graph_id, start, end, node_key, words, limit)

    async def add_event(self, graph_id: GraphId, entry: TimelineEntry) -> TimelineEvent:
        """See `SessionStore.add_event`."""
        return await self._write(sessions.add_event, graph_id, entry)

    async def add_user(self, user: User, graph: Graph) -> None:
        """See `AccountStore.add_user`."""
        await self._writer.run(users.add_user, user, graph)

    async def user(self, user_id: str) -> User | None:
        """See `AccountStore.user`."""
        return await self._readers.run(users.user, user_id)

    async def user_by_name(self, name: str) -> User | None:
        """See `AccountStore.user_by_name`."""
        return await self._readers.run(users.user_by_name, name)

    async def users(self) -> Sequence[User]:
        """See `AccountStore.users`."""
        return await self._readers.run(users.users)

    async def put_user(self, user: User, *, read: User | None = None) -> None:
        """See `AccountStore.put_user`."""
        await self._writer.run(users.put_user, user, read)

    async def remove_user(self, user_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_user`."""
        return await self._writer.run(users.remove_user, user_id, at)

    async def add_graph(self, graph: Graph) -> None:
        """See `AccountStore.add_graph`."""
        await self._writer.run(users.add_graph, graph)

    async def graph(self, graph_id: str) -> Graph | None:
        """See `AccountStore.graph`."""
        return await self._readers.run(users.graph, graph_id)

    async def graphs(self, owner_id: str) -> Sequence[Graph]:
        """See `AccountStore.graphs`."""
        return await self._readers.run(users.graphs, owner_id)

    async def graph_ids(self) -> Sequence[GraphId]:
        """See `AccountStore.graph_ids`."""
        return await self._readers.run(users.graph_ids)

    async def put_graph(self, graph: Graph, *, read: Graph | None = None) -> bool:
        """See `AccountStore.put_graph`."""
        return await self._writer.run(users.put_graph, graph, read)

    async def remove_graph(self, graph_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_graph`."""
        return await self._writer.run(users.remove_graph, graph_id, at)

    async def add_organization(self, organization: Organization, owner_id: str) -> None:
        """See `AccountStore.add_organization`."""
        await self._writer.run(organizations.add, organization, owner_id)

    async def organization(self, organization_id: str) -> Organization | None:
        """See `AccountStore.organization`."""
        return await self._readers.run(organizations.organization, organization_id)

    async def organizations(self) -> Sequence[Organization]:
        """See `AccountStore.organizations`."""
        return await self._readers.run(organizations.organizations)

    async def rename_organization(self, organization_id: str, name: str) -> bool:
        """See `AccountStore.rename_organization`."""
        return await self._writer.run(organizations.rename, organization_id, name)

    async def remove_organization(self, organization_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_organization`."""
        return await self._writer.run(organizations.remove, organization_id, at)

    async def members(self, organization_id: str) -> Sequence[Member]:
        """See `AccountStore.members`."""
        return await self._readers.run(organizations.members, organization_id)

    async def put_member(self, organization_id: str, user_id: str, role: Role, at: datetime) -> None:
        """See `AccountStore.put_member`."""
        await self._writer.run(organizations.put_member, organization_id, user_id, role, at)

    async def remove_member(self, organization_id: str, user_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_member`."""
        return await self._writer.run(organizations.remove_member, organization_id, user_id, at)

    async def add_invitation(self, invitation: Invitation) -> None:
        """See `AccountStore.add_invitation`."""
        await self._writer.run(organizations.add_invitation, invitation)

    async def invitation(self, hash: str) -> Invitation | None:
        """See `AccountStore.invitation`."""
        return await self._readers.run(organizations.invitation, hash)

    async def invitations(self, organization_id: str) -> Sequence[Invitation]:
        """See `AccountStore.invitations`."""
        return await self._readers.run(organizations.invitations, organization_id)

    async def accept_invitation(self, hash: str, user_id: str, at: datetime) -> bool:
        """See `AccountStore.accept_invitation`."""
        return await self._writer.run(organizations.accept_invitation, hash, user_id, at)

    async def remove_invitation(self, hash: str) -> bool:
        """See `AccountStore.remove_invitation`."""
        return await self._writer.run(organizations.remove_invitation, hash)

    async def add_key(self, key: ApiKey) -> None:
        """See `AccountStore.add_key`."""
        await self._writer.run(keys.add_key, key)

    async def keys(self, user_id: str | None = None) -> Sequence[ApiKey]:
        """See `AccountStore.keys`."""
        return await self._readers.run(keys.keys, user_id)

    async def revoke_key(self, key_id: str, at: datetime) -> bool:
        """See `AccountStore.revoke_key`."""
        return await self._writer.run(keys.revoke_key, key_id, at)

    async def key_used(self, key_id: str, at: datetime) -> None:
        """See `AccountStore.key_used`."""
        await self._writer.run(keys.key_used, key_id, at)

    async def key_account(self, hash: str) -> tuple[ApiKey, Account] | None:
        """See `AccountStore.key_account`."""
        return await self._readers.run_promptly(keys.key_account, hash)

    async def account(self, user_id: str, graph_id: str) -> Account | None:
        """See `AccountStore.account`."""
        return await self._readers.run_promptly(keys.account, user_id, graph_id)

    async def add_external_identity(self, identity: ExternalIdentity) -> None:
        """See `AccountStore.add_external_identity`."""
        await self._writer.run(users.add_identity, identity)

    async def user_by_external_identity(self, issuer: str, subject: str) -> User | None:
        """See `AccountStore.user_by_external_identity`."""
        return await self._readers.run(users.user_by_identity, issuer, subject)

    async def external_identities(self, user_id: str) -> Sequence[ExternalIdentity]:
        """See `AccountStore.external_identities`."""
        return await self._readers.run(users.identities, user_id)

    async def remove_external_identity(self, issuer: str, subject: str) -> bool:
        """See `AccountStore.remove_external_identity`."""
        return await self._writer.run(users.remove_identity, issuer, subject)

    async def deleted_graphs(self, since: datetime | None = None) -> Sequence[DeletedGraph]:
        """See `PurgeStore.deleted_graphs`."""
        return await self._readers.run(purging.deleted_graphs, since)

    async def purge_graph(self, graph_id: GraphId, limit: int = 5000) -> int:
        """See `PurgeStore.purge_graph`."""
        return await self._writer.run(purging.purge, graph_id, limit)

    async def graph_purged(self, graph_id: GraphId, at: datetime) -> None:
        """See `PurgeStore.graph_purged`."""
        await self._writer.run(purging.purged, graph_id, at)

    async def leftovers(self) -> Leftovers:
        """See `PurgeStore.leftovers`."""
        return await self._readers.run(purging.leftovers)

    async def reclaim(self) -> None:
        """See `PurgeStore.reclaim`."""
        await asyncio.to_thread(purging.reclaim, self._path, self._busy_timeout_seconds)

    async def add_audit_events(self, events: Sequence[AuditEvent]) -> None:
        """See `AuditStore.add_audit_events`."""
        await self._writer.run(audit.add, events)

    async def audit_events(self, query: AuditQuery) -> Sequence[AuditEvent]:
        """See `AuditStore.audit_events`."""
        return await self._readers.run(audit.events, query)

    async def record_tokens(self, graph_id: GraphId, report: TokenReport) -> TokenReport:
        """See `TokenStore.record_tokens`."""
        return await self._write(tokens.record, graph_id, report)

    async def add_file(self, graph_id: GraphId, file: StoredFile) -> None:
        """See `FileStore.add_file`."""
        await self._write(files.add_file, graph_id, file)

    async def file(self, graph_id: GraphId, file_id: str) -> StoredFile | None:
        """See `FileStore.file`."""
        return await self._readers.run(files.file, graph_id, file_id)

    async def files(
        self, graph_id: GraphId, *, file_type: str | None = None, search: str | None = None, limit: int = 50
    ) -> Sequence[StoredFile]:
        """See `FileStore.files`."""
        return await self._readers.run(files.files, graph_id, file_type, search, limit)

    async def drop_forgotten_files(self, graph_id: GraphId, before: datetime) -> int:
        """See `FileStore.drop_forgotten_files`."""
        return await self._writer.run(files.drop_forgotten_files, graph_id, before)

    async def used_blobs(self, graph_id: GraphId, hashes: Collection[str]) -> set[str]:
        """See `FileStore.used_blobs`."""
        return await self._readers.run(files.used_blobs, graph_id, hashes)

    async def put_oauth_client(self, client: OAuthClient) -> None:
        """See `OAuthStore.put_oauth_client`."""
        await self._writer.run(oauth.put_client, client)

    async def oauth_client(self, client_id: str) -> OAuthClient | None:
        """See `OAuthStore.oauth_client`."""
        return await self._readers.run(oauth.client, client_id)

    async def revoke_oauth_client(self, client_id: str, at: datetime) -> None:
        """See `OAuthStore.revoke_oauth_client`."""
        await self._writer.run(oauth.revoke_client, client_id, at)

    async def add_sign_in(self, sign_in: SignIn) -> None:
        """See `OAuthStore.add_sign_in`."""
        await self._writer.run(oauth.add_sign_in, sign_in)

    async def sign_in(self, hash: str) -> SignIn | None:
        """See `OAuthStore.sign_in`."""
        return await self._readers.run(oauth.sign_in, hash)

    async def send_out(self, hash: str, external: str) -> bool:
        """See `OAuthStore.send_out`."""
        return await self._writer.run(oauth.send_out, hash, external)

    async def identify(self, hash: str, identity: Identity, consent_hash: str) -> bool:
        """See `OAuthStore.identify`."""
        return await self._writer.run(oauth.identify, hash, identity, consent_hash)

    async def end_sign_in(self, hash: str) -> bool:
        """See `OAuthStore.end_sign_in`."""
        return await self._writer.run(oauth.end_sign_in, hash)

    async def allow_sign_in(self, hash: str, grant: Grant, code: AuthorizationCode) -> bool:
        """See `OAuthStore.allow_sign_in`."""
        return await self._writer.run(oauth.allow, hash, grant, code)

    async def grants(self, user_id: str) -> Sequence[Grant]:
        """See `OAuthStore.grants`."""
        return await self._readers.run(oauth.grants, user_id)

    async def revoke_grant(self, grant_id: str, at: datetime) -> None:
        """See `OAuthStore.revoke_grant`."""
        await self._writer.run(oauth.revoke_grant, grant_id, at)

    async def authorization_code(self, hash: str) -> tuple[AuthorizationCode, Grant] | None:
        """See `OAuthStore.authorization_code`."""
        return await self._readers.run(oauth.code, hash)

    async def exchange_code(self, hash: str, tokens: Sequence[Token], at: datetime) -> bool:
        """See `OAuthStore.exchange_code`."""
        return await self._writer.run(oauth.exchange_code, hash, tokens, at)

    async def oauth_token(self, hash: str) -> TokenState | None:
        """See `OAuthStore.oauth_token`."""
        return await self._readers.run_promptly(oauth.token, hash)

    async def token_account(self, hash: str, graph_id: GraphId | None) -> tuple[TokenState, Account] | None:
        """See `OAuthStore.token_account`."""
        return await self._readers.run_promptly(oauth.token_account, hash, graph_id)

    async def exchange_refresh_token(
        self, hash: str, tokens: Sequence[Token], at: datetime, reusable_from: datetime
    ) -> bool:
        """See `OAuthStore.exchange_refresh_token`."""
        return await self._writer.run(oauth.exchange_refresh_token, hash, tokens, at, reusable_from)

    async def drop_stale_oauth(self, now: datetime, before: datetime) -> None:
        """See `OAuthStore.drop_stale_oauth`."""
        await self._writer.run(oauth.drop_stale, now, before)

    async def add_export(self, graph_id: GraphId, export: Export) -> Export:
        """See `ExportStore.add_export`."""
        return await self._write(exports.add_export, graph_id, export)

    async def export(self, graph_id: GraphId, export_id: str) -> Export | None:
        """See `ExportStore.export`."""
        return await self._readers.run(exports.export, graph_id, export_id)

    async def advance_export(self, graph_id: GraphId, export: Export) -> bool:
        """See `ExportStore.advance_export`."""
        return await self._writer.run(exports.advance, graph_id, export)

    async def add_export_chunk(
        self, graph_id: GraphId, export_id: str, document: str, ordinal: int, content: bytes
    ) -> None:
        """See `ExportStore.add_export_chunk`."""
        await self._writer.run(exports.add_chunk, graph_id, export_id, document, ordinal, content)

    async def export_chunk(
        self, graph_id: GraphId, export_id: str, document: str, ordinal: int
    ) -> bytes | None:
        """See `ExportStore.export_chunk`."""
        return await self._readers.run(exports.chunk, graph_id, export_id, document, ordinal)

    async def drop_stale_exports(self, graph_id: GraphId, at: datetime, before: datetime) -> None:
        """See `ExportStore.drop_stale_exports`."""
        await self._writer.run(exports.drop_stale, graph_id, at, before)

    async def put_skill(self, graph_id: GraphId, skill: CustomSkill) -> CustomSkill:
        """See `SkillStore.put_skill`."""
        return await self._write(skills.put_skill, graph_id, skill)

    async def skills(self, graph_id: GraphId) -> Sequence[CustomSkill]:
        """See `SkillStore.skills`."""
        return await self._readers.run(skills.skills, graph_id)

    async def remove_skill(self, graph_id: GraphId, name: str) -> bool:
        """See `SkillStore.remove_skill`."""
        return await self._writer.run(skills.remove_skill, graph_id, name)

    async def acquire_lease(self, name: str, holder: str, *, at: datetime, expires_at: datetime) -> bool:
        """See `LeaseStore.acquire_lease`."""
        return await self._writer.run(leases.acquire, name, holder, at, expires_at)

    async def release_lease(self, name: str, holder: str) -> None:
        """See `LeaseStore.release_lease`."""
        await self._writer.run(leases.release, name, holder)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._writer.close()
        await self._readers.close()

    async def _write(
        self,
        write: Callable[Concatenate[sqlite3.Connection, GraphId, _P], _R],
        graph_id: GraphId,
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _R:
        """The result of a write that adds to a graph: refused when the graph is deleted.

        Writes that only change or remove what is there need no check: purging ends with nothing there.
        """
        return await self._writer.run(purging.unless_deleted, graph_id, write, *args, **kwargs)


def _snapshot(
    connection: sqlite3.Connection,
    graph_id: GraphId,
    keys: Collection[str],
    edge_identities: Collection[EdgeIdentity],
    hyperedge_identities: Collection[HyperedgeIdentity],
) -> Snapshot:
    if not edge_identities and not hyperedge_identities:
        return Snapshot(nodes=nodes.nodes(connection, graph_id, keys), edges={}, hyperedges={})
    with one_state(connection):
        return Snapshot(
            nodes=nodes.nodes(connection, graph_id, keys),
            edges=edges.edges_by_identity(connection, graph_id, edge_identities),
            hyperedges=hyperedges.hyperedges_by_identity(connection, graph_id, hyperedge_identities),
        )


def _relationships(
    connection: sqlite3.Connection,
    graph_id: GraphId,
    keys: Collection[str],
    edge_limit: int,
    hyperedge_limit: int,
) -> dict[str, Relationships]:
    found: dict[str, Relationships] = {}
    for key in keys:
        own_edges, edge_total = edges.edges_of_node(connection, graph_id, key, edge_limit)
        own_hyperedges, hyperedge_total = hyperedges.hyperedges_of_node(
            connection, graph_id, key, hyperedge_limit
        )
        found[key] = Relationships(
            edges=own_edges,
            hyperedges=own_hyperedges,
            edge_total=edge_total,
            hyperedge_total=hyperedge_total,
        )
    return found


def _counts(connection: sqlite3.Connection, graph_id: GraphId) -> GraphCounts:
    types = nodes.counts_by_type(connection, graph_id)
    return GraphCounts(
        nodes=sum(types.values()),
        edges=edges.count_edges(connection, graph_id),
        hyperedges=hyperedges.count_hyperedges(connection, graph_id),
        types=types,
    )
