"""The `Store` port on a PostgreSQL database. Contracts stand in `hivemem.ports.store`.

Reads are queries, writes are transactions; both run on the connections of `Pool`, and what they run are
the functions of the modules beside this one. Any number of servers may use the same database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import TypeVar

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
from hivemem.storage.postgres import (
    audit,
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
from hivemem.storage.postgres.blobs import PostgresFiles
from hivemem.storage.postgres.connection import Address
from hivemem.storage.postgres.groups import GroupCommit
from hivemem.storage.postgres.migrate import prepare_database
from hivemem.storage.postgres.pool import Pool
from hivemem.storage.postgres.rates import PostgresRateCounts
from hivemem.storage.postgres.transaction import Transaction, findable

T = TypeVar("T")


class PostgresStore:
    """Memory graphs in one database; make it with `open`, and close it."""

    def __init__(self, address: Address, pool: Pool, observers: Observers | None = None) -> None:
        self._address = address
        self._pool = pool
        self.rate_counts = PostgresRateCounts(pool)
        self._observers = observers or Observers()
        self._groups = GroupCommit(pool)

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        connections: int = 10,
        wait_seconds: float = 10.0,
        statement_seconds: float = 30.0,
        migrate: bool = True,
        observers: Observers | None = None,
    ) -> PostgresStore:
        """The store of a database, whose schema is created or brought up to date.

        Args:
            url: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, with the parameters of libpq.
            connections: Most connections at a time.
            wait_seconds: How long a call waits for a connection, a lock, or the server's return.
            statement_seconds: How long one statement may run.
            migrate: Whether an outdated schema is brought up to date, or refused.
            observers: Told of each `store.write`.

        Raises:
            InvalidInput: The URL cannot be read, or the database is not UTF-8.
            Conflict: The schema is outdated, and not to be changed.
            Corruption: Another program's tables, or a newer schema.
            Unavailable: Out of reach.
        """
        address = Address.parse(url)
        await prepare_database(address, upgrade=migrate)
        pool = Pool(address, size=connections, wait_seconds=wait_seconds, statement_seconds=statement_seconds)
        await pool.open()
        return cls(address, pool, observers)

    async def revision(self, graph_id: GraphId) -> int:
        """See `GraphStore.revision`."""
        return await self._pool.ask(history.revision(graph_id))

    async def snapshot(
        self,
        graph_id: GraphId,
        keys: Collection[str] = (),
        edges: Collection[EdgeIdentity] = (),
        hyperedges: Collection[HyperedgeIdentity] = (),
    ) -> Snapshot:
        """See `GraphStore.snapshot`."""
        return await _snapshot(self._pool, graph_id, keys, edges, hyperedges)

    async def apply(self, graph_id: GraphId, batch: WriteBatch) -> int:
        """See `GraphStore.apply`."""
        with self._observers.work("store.write", nodes=len(batch.nodes)):
            return (await self._groups.apply(graph_id, batch)).revision

    async def changes(self, graph_id: GraphId, since: int, *, model_id: str, limit: int = 1000) -> ChangePage:
        """See `GraphStore.changes`."""
        return await changes.changes(self._pool, graph_id, since, model_id, limit)

    async def nodes(self, graph_id: GraphId, keys: Collection[str]) -> dict[str, Node]:
        """See `GraphStore.nodes`."""
        return await self._pool.ask(nodes.nodes(graph_id, keys))

    async def edges(self, graph_id: GraphId, ids: Collection[str]) -> dict[str, Edge]:
        """See `GraphStore.edges`."""
        return await self._pool.ask(edges.edges(graph_id, ids))

    async def hyperedges(self, graph_id: GraphId, ids: Collection[str]) -> dict[str, Hyperedge]:
        """See `GraphStore.hyperedges`."""
        return await self._pool.ask(hyperedges.hyperedges(graph_id, ids))

    async def relationships(
        self, graph_id: GraphId, keys: Collection[str], *, edge_limit: int, hyperedge_limit: int
    ) -> dict[str, Relationships]:
        """See `GraphStore.relationships`."""
        return await _relationships(self._pool, graph_id, keys, edge_limit, hyperedge_limit)

    async def counts(self, graph_id: GraphId) -> GraphCounts:
        """See `GraphStore.counts`."""
        types, edge_count, hyperedge_count = await self._pool.ask_three(
            nodes.counts_by_type(graph_id),
            edges.count_edges(graph_id),
            hyperedges.count_hyperedges(graph_id),
        )
        return GraphCounts(
            nodes=sum(types.values()), edges=edge_count, hyperedges=hyperedge_count, types=types
        )

    async def scan(self, graph_id: GraphId, *, after: str | None = None, limit: int = 500) -> Sequence[Node]:
        """See `GraphStore.scan`."""
        return await self._pool.ask(nodes.scan(graph_id, after, limit))

    async def versions(self, graph_id: GraphId, kind: Kind, id: str) -> Sequence[Version]:
        """See `GraphStore.versions`."""
        return await self._pool.ask(history.versions(graph_id, kind, id))

    async def versions_before(
        self, graph_id: GraphId, kind: Kind, ids: Collection[str], revision: int
    ) -> dict[str, Version]:
        """See `GraphStore.versions_before`."""
        return await self._pool.ask(history.versions_before(graph_id, kind, ids, revision))

    async def without_vectors(self, graph_id: GraphId, model_id: str, *, limit: int = 100) -> Sequence[Node]:
        """See `GraphStore.without_vectors`."""
        return await self._pool.ask(nodes.without_vectors(graph_id, model_id, limit))

    async def put_vectors(
        self,
        graph_id: GraphId,
        key: str,
        write_version: int,
        vectors: NodeVectors,
        status: EnrichmentStatus,
    ) -> bool:
        """See `GraphStore.put_vectors`."""
        # A second time costs a revision and changes nothing else.
        return await self._pool.write(
            lambda transaction: nodes.put_vectors(transaction, graph_id, key, write_version, vectors, status)
        )

    async def vector_models(self, graph_id: GraphId) -> dict[str, int]:
        """See `GraphStore.vector_models`."""
        return await self._pool.ask(nodes.vector_models(graph_id))

    async def touch(self, graph_id: GraphId, session_id: str, keys: Collection[str], at: datetime) -> None:
        """See `SessionStore.touch`."""
        # When the answer to the commit is lost, a touch may be counted twice, which no answer tells.
        await self._add(
            graph_id, lambda transaction: sessions.touch(transaction, graph_id, session_id, keys, at)
        )

    async def touched(
        self, graph_id: GraphId, session_id: str, *, limit: int = 200
    ) -> Sequence[SessionTouch]:
        """See `SessionStore.touched`."""
        return await self._pool.ask(sessions.touched(graph_id, session_id, limit))

    async def session(self, graph_id: GraphId, session_id: str) -> Session | None:
        """See `SessionStore.session`."""
        return await self._pool.ask(sessions.session(graph_id, session_id))

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
        return await self._pool.ask(sessions.timeline(graph_id, start, end, node_key, words, limit))

    async def add_event(self, graph_id: GraphId, entry: TimelineEntry) -> TimelineEvent:
        """See `SessionStore.add_event`."""
        batch = WriteBatch(at=entry.at, timeline=(entry,))
        return TimelineEvent(id=(await self._groups.apply(graph_id, batch)).last_event, entry=entry)

    async def add_user(self, user: User, graph: Graph) -> None:
        """See `AccountStore.add_user`."""
        await self._pool.write(
            lambda transaction: users.add_user(transaction, user, graph),
            happened=lambda transaction, _: users.user_was_added(transaction, user),
        )

    async def user(self, user_id: str) -> User | None:
        """See `AccountStore.user`."""
        return await self._pool.ask(users.user(user_id))

    async def user_by_name(self, name: str) -> User | None:
        """See `AccountStore.user_by_name`."""
        return await self._pool.ask(users.user_by_name(name))

    async def users(self) -> Sequence[User]:
        """See `AccountStore.users`."""
        return await self._pool.ask(users.users())

    async def put_user(self, user: User, *, read: User | None = None) -> None:
        """See `AccountStore.put_user`."""
        # Made a second time, it changes nothing more; so do the other writes here that do not ask.
        await self._pool.write(lambda transaction: users.put_user(transaction, user, read))

    async def remove_user(self, user_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_user`."""
        return await self._pool.write(
            lambda transaction: users.remove_user(transaction, user_id, at),
            happened=lambda transaction, removed: users.user_was_removed(transaction, user_id, removed),
        )

    async def add_graph(self, graph: Graph) -> None:
        """See `AccountStore.add_graph`."""
        await self._pool.write(
            lambda transaction: users.add_graph(transaction, graph),
            happened=lambda transaction, _: users.graph_was_added(transaction, graph),
        )

    async def graph(self, graph_id: str) -> Graph | None:
        """See `AccountStore.graph`."""
        return await self._pool.ask(users.graph(graph_id))

    async def graphs(self, owner_id: str) -> Sequence[Graph]:
        """See `AccountStore.graphs`."""
        return await self._pool.ask(users.graphs(owner_id))

    async def graph_ids(self) -> Sequence[GraphId]:
        """See `AccountStore.graph_ids`."""
        return await self._pool.ask(users.graph_ids())

    async def put_graph(self, graph: Graph, *, read: Graph | None = None) -> bool:
        """See `AccountStore.put_graph`."""
        return await self._pool.write(lambda transaction: users.put_graph(transaction, graph, read))

    async def remove_graph(self, graph_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_graph`."""
        return await self._pool.write(
            lambda transaction: users.remove_graph(transaction, graph_id, at),
            happened=lambda transaction, removed: users.graph_was_removed(transaction, graph_id, removed),
        )

    async def add_organization(self, organization: Organization, owner_id: str) -> None:
        """See `AccountStore.add_organization`."""
        await self._pool.write(
            lambda transaction: organizations.add(transaction, organization, owner_id),
            happened=lambda transaction, _: organizations.was_added(transaction, organization),
        )

    async def organization(self, organization_id: str) -> Organization | None:
        """See `AccountStore.organization`."""
        return await self._pool.ask(organizations.organization(organization_id))

    async def organizations(self) -> Sequence[Organization]:
        """See `AccountStore.organizations`."""
        return await self._pool.ask(organizations.organizations())

    async def rename_organization(self, organization_id: str, name: str) -> bool:
        """See `AccountStore.rename_organization`."""
        return await self._pool.write(
            lambda transaction: organizations.rename(transaction, organization_id, name)
        )

    async def remove_organization(self, organization_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_organization`."""
        return await self._pool.write(
            lambda transaction: organizations.remove(transaction, organization_id, at),
            happened=lambda transaction, removed: organizations.was_removed(
                transaction, organization_id, removed
            ),
        )

    async def members(self, organization_id: str) -> Sequence[Member]:
        """See `AccountStore.members`."""
        return await self._pool.ask(organizations.members(organization_id))

    async def put_member(self, organization_id: str, user_id: str, role: Role, at: datetime) -> None:
        """See `AccountStore.put_member`."""
        await self._pool.write(
            lambda transaction: organizations.put_member(transaction, organization_id, user_id, role, at)
        )

    async def remove_member(self, organization_id: str, user_id: str, at: datetime) -> bool:
        """See `AccountStore.remove_member`."""
        return await self._pool.write(
            lambda transaction: organizations.remove_member(transaction, organization_id, user_id, at),
            happened=lambda transaction, removed: organizations.member_was_removed(
                transaction, organization_id, user_id, removed
            ),
        )

    async def add_invitation(self, invitation: Invitation) -> None:
        """See `AccountStore.add_invitation`."""
        await self._pool.write(lambda transaction: organizations.add_invitation(transaction, invitation))

    async def invitation(self, hash: str) -> Invitation | None:
        """See `AccountStore.invitation`."""
        return await self._pool.ask(organizations.invitation(hash))

    async def invitations(self, organization_id: str) -> Sequence[Invitation]:
        """See `AccountStore.invitations`."""
        return await self._pool.ask(organizations.invitations(organization_id))

    async def accept_invitation(self, hash: str, user_id: str, at: datetime) -> bool:
        """See `AccountStore.accept_invitation`."""
        return await self._pool.write(
            lambda transaction: organizations.accept_invitation(transaction, hash, user_id, at),
            happened=lambda transaction, accepted: organizations.invitation_was_accepted(
                transaction, hash, user_id, at, accepted
            ),
        )

    async def remove_invitation(self, hash: str) -> bool:
        """See `AccountStore.remove_invitation`."""
        return await self._pool.write(
            lambda transaction: organizations.remove_invitation(transaction, hash),
            happened=lambda transaction, removed: organizations.invitation_was_removed(
                transaction, hash, removed
            ),
        )

    async def add_key(self, key: ApiKey) -> None:
        """See `AccountStore.add_key`."""
        await self._pool.write(
            lambda transaction: keys.add_key(transaction, key),
            happened=lambda transaction, _: keys.key_was_added(transaction, key),
        )

    async def keys(self, user_id: str | None = None) -> Sequence[ApiKey]:
        """See `AccountStore.keys`."""
        return await self._pool.ask(keys.keys(user_id))

    async def revoke_key(self, key_id: str, at: datetime) -> bool:
        """See `AccountStore.revoke_key`."""
        return await self._pool.write(
            lambda transaction: keys.revoke_key(transaction, key_id, at),
            happened=lambda transaction, _: keys.key_was_revoked(transaction, key_id, at),
        )

    async def key_used(self, key_id: str, at: datetime) -> None:
        """See `AccountStore.key_used`."""
        await self._pool.write(lambda transaction: keys.key_used(transaction, key_id, at))

    async def key_account(self, hash: str) -> tuple[ApiKey, Account] | None:
        """See `AccountStore.key_account`."""
        return await self._pool.ask(keys.key_account(hash))

    async def account(self, user_id: str, graph_id: str) -> Account | None:
        """See `AccountStore.account`."""
        return await self._pool.ask(keys.account(user_id, graph_id))

    async def add_external_identity(self, identity: ExternalIdentity) -> None:
        """See `AccountStore.add_external_identity`."""
        await self._pool.write(
            lambda transaction: users.add_identity(transaction, identity),
            happened=lambda transaction, _: users.identity_was_added(transaction, identity),
        )

    async def user_by_external_identity(self, issuer: str, subject: str) -> User | None:
        """See `AccountStore.user_by_external_identity`."""
        return await self._pool.ask(users.user_by_identity(issuer, subject))

    async def external_identities(self, user_id: str) -> Sequence[ExternalIdentity]:
        """See `AccountStore.external_identities`."""
        return await self._pool.ask(users.identities(user_id))

    async def remove_external_identity(self, issuer: str, subject: str) -> bool:
        """See `AccountStore.remove_external_identity`."""
        return await self._pool.write(
            lambda transaction: users.remove_identity(transaction, issuer, subject),
            happened=lambda transaction, removed: users.identity_was_removed(
                transaction, issuer, subject, removed
            ),
        )

    async def deleted_graphs(self, since: datetime | None = None) -> Sequence[DeletedGraph]:
        """See `PurgeStore.deleted_graphs`."""
        return await self._pool.ask(purging.deleted_graphs(since))

    async def purge_graph(self, graph_id: GraphId, limit: int = 5000) -> int:
        """See `PurgeStore.purge_graph`."""
        return await self._pool.write(lambda transaction: purging.purge(transaction, graph_id, limit))

    async def graph_purged(self, graph_id: GraphId, at: datetime) -> None:
        """See `PurgeStore.graph_purged`."""
        await self._pool.write(lambda transaction: purging.purged(transaction, graph_id, at))

    async def leftovers(self) -> Leftovers:
        """See `PurgeStore.leftovers`."""
        self._pool.check_open()
        return await purging.leftovers(self._address)

    async def reclaim(self) -> None:
        """See `PurgeStore.reclaim`."""
        self._pool.check_open()
        await purging.reclaim(self._address)

    async def add_audit_events(self, events: Sequence[AuditEvent]) -> None:
        """See `AuditStore.add_audit_events`."""
        await self._pool.write(
            lambda transaction: audit.add(transaction, events),
            happened=lambda transaction, ids: audit.were_added(transaction, ids),
        )

    async def audit_events(self, query: AuditQuery) -> Sequence[AuditEvent]:
        """See `AuditStore.audit_events`."""
        return await self._pool.ask(audit.events(query))

    async def record_tokens(self, graph_id: GraphId, report: TokenReport) -> TokenReport:
        """See `TokenStore.record_tokens`."""
        return await self._add(graph_id, lambda transaction: tokens.record(transaction, graph_id, report))

    async def add_file(self, graph_id: GraphId, file: StoredFile) -> None:
        """See `FileStore.add_file`."""
        await self._add(graph_id, lambda transaction: files.add_file(transaction, graph_id, file))

    async def file(self, graph_id: GraphId, file_id: str) -> StoredFile | None:
        """See `FileStore.file`."""
        return await self._pool.ask(files.file(graph_id, file_id))

    async def files(
        self, graph_id: GraphId, *, file_type: str | None = None, search: str | None = None, limit: int = 50
    ) -> Sequence[StoredFile]:
        """See `FileStore.files`."""
        return await self._pool.ask(files.files(graph_id, file_type, search, limit))

    async def drop_forgotten_files(self, graph_id: GraphId, before: datetime) -> int:
        """See `FileStore.drop_forgotten_files`."""
        return await self._pool.write(
            lambda transaction: files.drop_forgotten_files(transaction, graph_id, before)
        )

    async def used_blobs(self, graph_id: GraphId, hashes: Collection[str]) -> set[str]:
        """See `FileStore.used_blobs`."""
        return await self._pool.ask(files.used_blobs(graph_id, hashes))

    async def put_oauth_client(self, client: OAuthClient) -> None:
        """See `OAuthStore.put_oauth_client`."""
        await self._pool.write(lambda transaction: oauth.put_client(transaction, client))

    async def oauth_client(self, client_id: str) -> OAuthClient | None:
        """See `OAuthStore.oauth_client`."""
        return await self._pool.ask(oauth.client(client_id))

    async def revoke_oauth_client(self, client_id: str, at: datetime) -> None:
        """See `OAuthStore.revoke_oauth_client`."""
        await self._pool.write(lambda transaction: oauth.revoke_client(transaction, client_id, at))

    async def add_sign_in(self, sign_in: SignIn) -> None:
        """See `OAuthStore.add_sign_in`."""
        await self._pool.write(lambda transaction: oauth.add_sign_in(transaction, sign_in))

    async def sign_in(self, hash: str) -> SignIn | None:
        """See `OAuthStore.sign_in`."""
        return await self._pool.ask(oauth.sign_in(hash))

    async def send_out(self, hash: str, external: str) -> bool:
        """See `OAuthStore.send_out`."""
        return await self._pool.write(lambda transaction: oauth.send_out(transaction, hash, external))

    async def identify(self, hash: str, identity: Identity, consent_hash: str) -> bool:
        """See `OAuthStore.identify`."""
        return await self._pool.write(
            lambda transaction: oauth.identify(transaction, hash, identity, consent_hash)
        )

    async def end_sign_in(self, hash: str) -> bool:
        """See `OAuthStore.end_sign_in`."""
        return await self._pool.write(lambda transaction: oauth.end_sign_in(transaction, hash))

    async def allow_sign_in(self, hash: str, grant: Grant, code: AuthorizationCode) -> bool:
        """See `OAuthStore.allow_sign_in`."""
        return await self._pool.write(
            lambda transaction: oauth.allow(transaction, hash, grant, code),
            happened=lambda transaction, allowed: oauth.was_allowed(transaction, hash, allowed, code.hash),
        )

    async def grants(self, user_id: str) -> Sequence[Grant]:
        """See `OAuthStore.grants`."""
        return await self._pool.ask(oauth.grants(user_id))

    async def revoke_grant(self, grant_id: str, at: datetime) -> None:
        """See `OAuthStore.revoke_grant`."""
        await self._pool.write(lambda transaction: oauth.revoke_grant(transaction, grant_id, at))

    async def authorization_code(self, hash: str) -> tuple[AuthorizationCode, Grant] | None:
        """See `OAuthStore.authorization_code`."""
        return await self._pool.ask(oauth.code(hash))

    async def exchange_code(self, hash: str, tokens: Sequence[Token], at: datetime) -> bool:
        """See `OAuthStore.exchange_code`."""
        return await self._pool.write(
            lambda transaction: oauth.exchange_code(transaction, hash, tokens, at),
            happened=lambda transaction, done: oauth.code_was_exchanged(transaction, hash, done, tokens, at),
        )

    async def oauth_token(self, hash: str) -> TokenState | None:
        """See `OAuthStore.oauth_token`."""
        return await self._pool.ask(oauth.token(hash))

    async def token_account(self, hash: str, graph_id: GraphId | None) -> tuple[TokenState, Account] | None:
        """See `OAuthStore.token_account`."""
        return await self._pool.ask(oauth.token_account(hash, graph_id))

    async def exchange_refresh_token(
        self, hash: str, tokens: Sequence[Token], at: datetime, reusable_from: datetime
    ) -> bool:
        """See `OAuthStore.exchange_refresh_token`."""
        return await self._pool.write(
            lambda transaction: oauth.exchange_refresh_token(transaction, hash, tokens, at, reusable_from)
        )

    async def drop_stale_oauth(self, now: datetime, before: datetime) -> None:
        """See `OAuthStore.drop_stale_oauth`."""
        await self._pool.write(lambda transaction: oauth.drop_stale(transaction, now, before))

    async def add_export(self, graph_id: GraphId, export: Export) -> Export:
        """See `ExportStore.add_export`."""
        return await self._add(
            graph_id, lambda transaction: exports.add_export(transaction, graph_id, export)
        )

    async def export(self, graph_id: GraphId, export_id: str) -> Export | None:
        """See `ExportStore.export`."""
        return await self._pool.ask(exports.export(graph_id, export_id))

    async def advance_export(self, graph_id: GraphId, export: Export) -> bool:
        """See `ExportStore.advance_export`."""
        return await self._pool.write(
            lambda transaction: exports.advance(transaction, graph_id, export),
            happened=lambda transaction, advanced: exports.was_advanced(
                transaction, graph_id, export, advanced
            ),
        )

    async def add_export_chunk(
        self, graph_id: GraphId, export_id: str, document: str, ordinal: int, content: bytes
    ) -> None:
        """See `ExportStore.add_export_chunk`."""
        await self._pool.write(
            lambda transaction: exports.add_chunk(
                transaction, graph_id, export_id, document, ordinal, content
            )
        )

    async def export_chunk(
        self, graph_id: GraphId, export_id: str, document: str, ordinal: int
    ) -> bytes | None:
        """See `ExportStore.export_chunk`."""
        return await self._pool.ask(exports.chunk(graph_id, export_id, document, ordinal))

    async def drop_stale_exports(self, graph_id: GraphId, at: datetime, before: datetime) -> None:
        """See `ExportStore.drop_stale_exports`."""
        await self._pool.write(lambda transaction: exports.drop_stale(transaction, graph_id, at, before))

    async def put_skill(self, graph_id: GraphId, skill: CustomSkill) -> CustomSkill:
        """See `SkillStore.put_skill`."""
        return await self._add(graph_id, lambda transaction: skills.put_skill(transaction, graph_id, skill))

    async def skills(self, graph_id: GraphId) -> Sequence[CustomSkill]:
        """See `SkillStore.skills`."""
        return await self._pool.ask(skills.skills(graph_id))

    async def remove_skill(self, graph_id: GraphId, name: str) -> bool:
        """See `SkillStore.remove_skill`."""
        return await self._pool.write(lambda transaction: skills.remove_skill(transaction, graph_id, name))

    async def acquire_lease(self, name: str, holder: str, *, at: datetime, expires_at: datetime) -> bool:
        """See `LeaseStore.acquire_lease`."""
        return await self._pool.write(
            lambda transaction: leases.acquire(transaction, name, holder, at, expires_at)
        )

    async def release_lease(self, name: str, holder: str) -> None:
        """See `LeaseStore.release_lease`."""
        await self._pool.write(lambda transaction: leases.release(transaction, name, holder))

    async def _add(self, graph_id: GraphId, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """The result of a write that adds to a graph: refused when the graph is deleted."""

        async def held(transaction: Transaction) -> T:
            await purging.hold_graph(transaction, graph_id)
            return await work(transaction)

        return await self._pool.write(held)

    def blobs(self, graph_id: GraphId) -> PostgresFiles:
        """The bytes of a graph's files, in the same database."""
        return PostgresFiles(self._pool, graph_id)

    async def close(self) -> None:
        """See `Store.close`."""
        await self._pool.close()


async def _snapshot(
    pool: Pool,
    graph_id: GraphId,
    keys: Collection[str],
    edge_identities: Collection[EdgeIdentity],
    hyperedge_identities: Collection[HyperedgeIdentity],
) -> Snapshot:
    if not edge_identities and not hyperedge_identities:
        return Snapshot(nodes=await pool.ask(nodes.nodes(graph_id, keys)), edges={}, hyperedges={})
    found_nodes, found_edges, found_hyperedges = await pool.ask_three(
        nodes.nodes(graph_id, keys),
        edges.edges_by_identity(graph_id, edge_identities),
        hyperedges.hyperedges_by_identity(graph_id, hyperedge_identities),
    )
    return Snapshot(
        nodes=found_nodes,
        edges=found_edges,
        hyperedges={identity: equal[0] for identity, equal in found_hyperedges.items()},
    )


async def _relationships(
    pool: Pool, graph_id: GraphId, keys: Collection[str], edge_limit: int, hyperedge_limit: int
) -> dict[str, Relationships]:
    wanted = findable(keys)
    own_edges, edge_totals, own_hyperedges, hyperedge_totals = await pool.ask_four(
        edges.edges_of_nodes(graph_id, wanted, edge_limit),
        edges.edge_totals_of_nodes(graph_id, wanted),
        hyperedges.hyperedges_of_nodes(graph_id, wanted, hyperedge_limit),
        hyperedges.hyperedge_totals_of_nodes(graph_id, wanted),
    )
    return {
        key: Relationships(
            edges=own_edges.get(key, ()),
            hyperedges=own_hyperedges.get(key, ()),
            edge_total=edge_totals.get(key, 0),
            hyperedge_total=hyperedge_totals.get(key, 0),
        )
        for key in keys
    }
