"""The truth: graphs, their history, sessions and timeline, users and keys.

Contract of every store, held by `tests/conformance/store`:

- Every method is one transaction. A write that returned is durable, and is seen by every read that
  starts later, in any process.
- A store never decides what a write means. Use cases read a `Snapshot`, plan a `WriteBatch` with the
  pure rules of `hivemem.domain`, and `apply` it; the batch names the versions it was planned on, and
  the store refuses it with `StaleWrite` when one of them has changed.
- A graph may be written before it is in `graphs`. One that was deleted takes nothing new: what would add to
  it (`apply`, `touch`, `add_event`, `record_tokens`, `add_file`, `add_export`, `put_skill`) raises `NotFound`
  (`graph_deleted`). What a write that ran at the same moment leaves is told by `leftovers`, and purged.
- All times are aware UTC, all ids and keys are compared byte by byte.
- A store that is busy, unreachable or closed raises `Unavailable`; broken bytes raise `Corruption`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

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


class GraphStore(Protocol):
    """Nodes and relationships of many graphs; no method crosses graphs."""

    async def revision(self, graph_id: GraphId) -> int:
        """The change counter, 0 for a graph that was never written. One indexed read."""
        ...

    async def snapshot(
        self,
        graph_id: GraphId,
        keys: Collection[str] = (),
        edges: Collection[EdgeIdentity] = (),
        hyperedges: Collection[HyperedgeIdentity] = (),
    ) -> Snapshot:
        """The present state of what is named, read in one transaction."""
        ...

    async def apply(self, graph_id: GraphId, batch: WriteBatch) -> int:
        """Store all of `batch` or nothing, and return the graph's revision afterwards.

        Every changed row gets the new revision, its version is kept, and a removal leaves a
        tombstone (taken away when the same key or id is stored again). Deleting a node removes its
        vectors, its edges and its memberships, as `Deletion` says, each with version and tombstone.

        Raises:
            StaleWrite: An `expected` version does not match, an edge or hyperedge with the same
                identity exists under another id, or an end or participant does not exist.
        """
        ...

    async def changes(self, graph_id: GraphId, since: int, *, model_id: str, limit: int = 1000) -> ChangePage:
        """What changed after revision `since`, oldest revision first.

        A page holds whole revisions: at least one, and as many as keep it at about `limit` rows.
        `page.more` says that `page.revision` is not yet the graph's. Each node comes with its
        passages of `model_id`, none when it has no vectors of that model.
        """
        ...

    async def nodes(self, graph_id: GraphId, keys: Collection[str]) -> dict[str, Node]:
        """The nodes that exist among `keys`, in the order of `keys`."""
        ...

    async def edges(self, graph_id: GraphId, ids: Collection[str]) -> dict[str, Edge]:
        """The edges that exist among `ids`."""
        ...

    async def hyperedges(self, graph_id: GraphId, ids: Collection[str]) -> dict[str, Hyperedge]:
        """The hyperedges that exist among `ids`."""
        ...

    async def relationships(
        self, graph_id: GraphId, keys: Collection[str], *, edge_limit: int, hyperedge_limit: int
    ) -> dict[str, Relationships]:
        """For each key its newest edges and hyperedges (by `created_at`, then id, descending)."""
        ...

    async def counts(self, graph_id: GraphId) -> GraphCounts:
        """Sizes by kind and node type."""
        ...

    async def scan(self, graph_id: GraphId, *, after: str | None = None, limit: int = 500) -> Sequence[Node]:
        """Nodes in ascending key order (code points), starting after the key `after`."""
        ...

    async def versions(self, graph_id: GraphId, kind: Kind, id: str) -> Sequence[Version]:
        """The history of one thing, newest first; empty when it never existed."""
        ...

    async def versions_before(
        self, graph_id: GraphId, kind: Kind, ids: Collection[str], revision: int
    ) -> dict[str, Version]:
        """The newest version of each of `ids` before `revision`; what had none is left out."""
        ...

    async def without_vectors(self, graph_id: GraphId, model_id: str, *, limit: int = 100) -> Sequence[Node]:
        """Described nodes that have no vectors of `model_id`, in key order: work for the embedder."""
        ...

    async def put_vectors(
        self,
        graph_id: GraphId,
        key: str,
        write_version: int,
        vectors: NodeVectors,
        status: EnrichmentStatus,
    ) -> bool:
        """Replace the vectors of all models and set the status, if `write_version` is still current.

        The node's revision advances with the graph's; its `write_version` and history do not change.
        False, and nothing written, when the node was changed or removed meanwhile.
        """
        ...

    async def vector_models(self, graph_id: GraphId) -> dict[str, int]:
        """Number of nodes that have vectors, by model id."""
        ...


class SessionStore(Protocol):
    """Conversations and the diary of a graph. Neither advances the revision."""

    async def touch(self, graph_id: GraphId, session_id: str, keys: Collection[str], at: datetime) -> None:
        """Record that a conversation touched nodes, and count one tool call of that session."""
        ...

    async def touched(
        self, graph_id: GraphId, session_id: str, *, limit: int = 200
    ) -> Sequence[SessionTouch]:
        """Nodes of a conversation that still exist, last touched first, then by key."""
        ...

    async def session(self, graph_id: GraphId, session_id: str) -> Session | None:
        """A conversation; None when none of its calls was counted."""
        ...

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
        """Events with `start <= at < end`, newest first (by time, then id). Filters combine.

        `words` are the words of a query as index terms: an event stays when its summary holds at least
        one term of each word (`hivemem.retrieval.analyse`).
        Deleting a node removes the lines that name it, so that no forgotten text is left.
        """
        ...

    async def add_event(self, graph_id: GraphId, entry: TimelineEntry) -> TimelineEvent:
        """Write one line into the diary; the revision does not change."""
        ...


class AccountStore(Protocol):
    """Users, graphs, organizations and keys; what an operation may reach is read here, at one moment.

    Names of users are unique among users, those of organizations among organizations, byte by byte.
    """

    # Users

    async def add_user(self, user: User, graph: Graph) -> None:
        """Create a user with a first graph.

        Raises:
            InvalidInput: The graph is not the user's.
            Conflict: An id, or the user's name, is taken.
        """
        ...

    async def user(self, user_id: str) -> User | None:
        """A user."""
        ...

    async def user_by_name(self, name: str) -> User | None:
        """The user of this name."""
        ...

    async def users(self) -> Sequence[User]:
        """All users, oldest first."""
        ...

    async def put_user(self, user: User, *, read: User | None = None) -> None:
        """Change a user: all fields but `user_id` and `created_at`.

        Args:
            user: As they are to be.
            read: As they were when the change was decided on: whatever changed since is not undone. None to
                put `user` in the place of whatever there is.

        Raises:
            StaleWrite: They are neither as they were read, nor `user` already.
            NotFound: There is no such user, or no organization `write_organization_id`.
            Conflict: The name is taken, or nobody would run the server any more (`last_operator`).
        """
        ...

    async def remove_user(self, user_id: str, at: datetime) -> bool:
        """Remove a user with all that is theirs; False when there is none.

        Their graphs become `DeletedGraph`s. Keys, grants, memberships, outside identities, sign-ins under
        way, token reports and exports go, in organizations too. Invitations they made are taken back.

        Raises:
            Conflict: They are the only owner of an organization (`last_owner`), or the only operator
                (`last_operator`). Nothing was removed.
        """
        ...

    # Graphs

    async def add_graph(self, graph: Graph) -> None:
        """Create a further personal graph; as the default one, it takes that from the owner's others.

        Raises:
            NotFound: There is no such user.
            InvalidInput: It is an organization's.
            Conflict: The id is taken, also by a deleted graph.
        """
        ...

    async def graph(self, graph_id: str) -> Graph | None:
        """A graph that is not deleted."""
        ...

    async def graphs(self, owner_id: str) -> Sequence[Graph]:
        """The personal graphs of a user, oldest first."""
        ...

    async def graph_ids(self) -> Sequence[GraphId]:
        """All graphs that are not deleted, of users and organizations."""
        ...

    async def put_graph(self, graph: Graph, *, read: Graph | None = None) -> bool:
        """Change `name`, `frozen_at` and `is_default` of a graph; False when it is gone.

        A graph that becomes the default takes that from the owner's others.

        Args:
            graph: As it is to be.
            read: As in `put_user`.

        Raises:
            StaleWrite: It is neither as it was read, nor `graph` already.
        """
        ...

    async def remove_graph(self, graph_id: str, at: datetime) -> bool:
        """Make a personal graph a `DeletedGraph`, and end all keys, grants and sign-ins at it.

        False, and nothing done, when it is gone or an organization's.
        """
        ...

    # Organizations

    async def add_organization(self, organization: Organization, owner_id: str) -> None:
        """Create an organization with its graph, and its first owner.

        Raises:
            NotFound: There is no user `owner_id`.
            Conflict: An id or the name is taken.
        """
        ...

    async def organization(self, organization_id: str) -> Organization | None:
        """An organization."""
        ...

    async def organizations(self) -> Sequence[Organization]:
        """All organizations, oldest first."""
        ...

    async def rename_organization(self, organization_id: str, name: str) -> bool:
        """Change the name; False when there is no such organization.

        Raises:
            Conflict: The name is taken.
        """
        ...

    async def remove_organization(self, organization_id: str, at: datetime) -> bool:
        """Remove an organization with memberships, invitations and keys; False when there is none.

        Its graph becomes a `DeletedGraph`.
        """
        ...

    async def members(self, organization_id: str) -> Sequence[Member]:
        """Who belongs to an organization, longest first (by time, then id)."""
        ...

    async def put_member(self, organization_id: str, user_id: str, role: Role, at: datetime) -> None:
        """Make a user a member, or change their role; when they joined stays.

        Whoever may write no longer loses their write mode there, and their keys at its graph become read-only
        by their role.

        Raises:
            NotFound: There is no such organization or user.
            Conflict: The organization would have no owner (`last_owner`).
        """
        ...

    async def remove_member(self, organization_id: str, user_id: str, at: datetime) -> bool:
        """End a membership, with the keys and grants of the user at its graph; False when there is none.

        Raises:
            Conflict: The organization would have no owner (`last_owner`).
        """
        ...

    async def add_invitation(self, invitation: Invitation) -> None:
        """Keep an invitation.

        Raises:
            NotFound: Its organization or maker does not exist.
        """
        ...

    async def invitation(self, hash: str) -> Invitation | None:
        """An invitation, also when it was used or its time is over."""
        ...

    async def invitations(self, organization_id: str) -> Sequence[Invitation]:
        """The invitations of an organization, newest first (by time, then hash)."""
        ...

    async def accept_invitation(self, hash: str, user_id: str, at: datetime) -> bool:
        """Use an invitation, and make the user a member, unless their present role is higher.

        Of any number of calls one gets True; the others, and those from its end on, change nothing.

        Raises:
            NotFound: There is no such user.
        """
        ...

    async def remove_invitation(self, hash: str) -> bool:
        """Take an invitation back; False when there is none."""
        ...

    # Credentials

    async def add_key(self, key: ApiKey) -> None:
        """Keep a credential.

        Raises:
            NotFound: Its user or graph does not exist.
            Conflict: It is there already.
        """
        ...

    async def keys(self, user_id: str | None = None) -> Sequence[ApiKey]:
        """All credentials, or those of a user, oldest first, revoked ones included."""
        ...

    async def revoke_key(self, key_id: str, at: datetime) -> bool:
        """End a credential from the next request on; False when there is no such active key."""
        ...

    async def key_used(self, key_id: str, at: datetime) -> None:
        """Note when a key was used last; an earlier time changes nothing, an unknown key neither."""
        ...

    async def key_account(self, hash: str) -> tuple[ApiKey, Account] | None:
        """The key with this SHA-256, also when it has ended, and the account behind it at the key's graph.

        Everything is read at one moment, by indexes.
        """
        ...

    async def account(self, user_id: str, graph_id: str) -> Account | None:
        """A user with memberships, and the graph if there is one of this id. Read at one moment."""
        ...

    # Identity providers

    async def add_external_identity(self, identity: ExternalIdentity) -> None:
        """Note who a user is at an identity provider.

        Raises:
            NotFound: There is no such user.
            Conflict: That identity is somebody's already.
        """
        ...

    async def user_by_external_identity(self, issuer: str, subject: str) -> User | None:
        """Who is known by this identity."""
        ...

    async def external_identities(self, user_id: str) -> Sequence[ExternalIdentity]:
        """The identities of a user, oldest first (by time, issuer, subject)."""
        ...

    async def remove_external_identity(self, issuer: str, subject: str) -> bool:
        """Forget an identity; False when there is none."""
        ...


class PurgeStore(Protocol):
    """What is left of graphs that were deleted."""

    async def deleted_graphs(self, since: datetime | None = None) -> Sequence[DeletedGraph]:
        """Graphs whose content may still be there; with `since` all that were deleted from then on, too.

        Oldest first (by time, then id).
        """
        ...

    async def purge_graph(self, graph_id: GraphId, limit: int = 5000) -> int:
        """Remove about `limit` rows of a deleted graph's content for good; how many, 0 when none was left.

        A graph that is not deleted is left alone, and counts 0.
        """
        ...

    async def graph_purged(self, graph_id: GraphId, at: datetime) -> None:
        """Note that the content of a deleted graph is gone."""
        ...

    async def leftovers(self) -> Leftovers:
        """Rows that belong to no graph, user or organization that exists; each table is read whole.

        Graphs that wait for being purged count too. `hivemem.storage.tables` says what belongs to what.
        """
        ...

    async def reclaim(self) -> None:
        """Overwrite and give back the room of what was removed; takes long, and as much room again."""
        ...


class AuditStore(Protocol):
    """Who did what. Lines are added and read; no statement changes or removes one."""

    async def add_audit_events(self, events: Sequence[AuditEvent]) -> None:
        """Keep lines, in their order."""
        ...

    async def audit_events(self, query: AuditQuery) -> Sequence[AuditEvent]:
        """The newest lines that `query` asks for, newest first."""
        ...


class TokenStore(Protocol):
    """Reports of the tokens that agents used."""

    async def record_tokens(self, graph_id: GraphId, report: TokenReport) -> TokenReport:
        """Keep a report, and return the one that is kept: an earlier one of the same identity wins."""
        ...


class FileStore(Protocol):
    """What a graph knows of its files. A file is there as long as its node is."""

    async def add_file(self, graph_id: GraphId, file: StoredFile) -> None:
        """Keep the record of a file, under a fresh id.

        Raises:
            Conflict: The id is taken.
        """
        ...

    async def file(self, graph_id: GraphId, file_id: str) -> StoredFile | None:
        """The file with this id, None when there is none or its node is forgotten."""
        ...

    async def files(
        self, graph_id: GraphId, *, file_type: str | None = None, search: str | None = None, limit: int = 50
    ) -> Sequence[StoredFile]:
        """Files, newest first (by time, then id).

        `search` is a part of the file name; case does not matter for ASCII letters.
        """
        ...

    async def drop_forgotten_files(self, graph_id: GraphId, before: datetime) -> int:
        """Remove the records of files stored before `before` whose node is forgotten; their number."""
        ...

    async def used_blobs(self, graph_id: GraphId, hashes: Collection[str]) -> set[str]:
        """Those of `hashes` that a file of the graph refers to, also one whose node is forgotten."""
        ...


class OAuthStore(Protocol):
    """Programs that sign in with OAuth, what was granted to them, and codes and tokens by their hashes."""

    async def put_oauth_client(self, client: OAuthClient) -> None:
        """Keep a program, or what it now says of itself; when it came and whether it was revoked stay."""
        ...

    async def oauth_client(self, client_id: str) -> OAuthClient | None:
        """A program, also when it is revoked."""
        ...

    async def revoke_oauth_client(self, client_id: str, at: datetime) -> None:
        """End a program and all that was granted to it, from the next request on."""
        ...

    async def add_sign_in(self, sign_in: SignIn) -> None:
        """Keep a sign-in that begins; its program must exist."""
        ...

    async def sign_in(self, hash: str) -> SignIn | None:
        """A sign-in under way."""
        ...

    async def send_out(self, hash: str, external: str) -> bool:
        """Note what an identity provider's answer must match; False when the sign-in is gone."""
        ...

    async def identify(self, hash: str, identity: Identity, consent_hash: str) -> bool:
        """Note who signed in, the last one counts; False when the sign-in is gone."""
        ...

    async def end_sign_in(self, hash: str) -> bool:
        """Forget a sign-in; False when it is gone already."""
        ...

    async def allow_sign_in(self, hash: str, grant: Grant, code: AuthorizationCode) -> bool:
        """Turn a sign-in into a grant with a code.

        False, and nothing written, when the sign-in is gone, or the user, graph or key of the grant.
        """
        ...

    async def grants(self, user_id: str) -> Sequence[Grant]:
        """What a user granted, newest first (by time, then id), revoked grants included."""
        ...

    async def revoke_grant(self, grant_id: str, at: datetime) -> None:
        """End a grant with all its tokens, from the next request on; an earlier end stays."""
        ...

    async def authorization_code(self, hash: str) -> tuple[AuthorizationCode, Grant] | None:
        """A code and its grant, whatever became of them."""
        ...

    async def exchange_code(self, hash: str, tokens: Sequence[Token], at: datetime) -> bool:
        """Use a code and keep its tokens. Of any number of calls one gets True; the others write nothing."""
        ...

    async def oauth_token(self, hash: str) -> TokenState | None:
        """A token with all that can end it. One indexed read."""
        ...

    async def token_account(self, hash: str, graph_id: GraphId | None) -> tuple[TokenState, Account] | None:
        """A token with all that can end it, and the account behind it, at `graph_id` or else at the grant's.

        Everything is read at one moment, by indexes.
        """
        ...

    async def exchange_refresh_token(
        self, hash: str, tokens: Sequence[Token], at: datetime, reusable_from: datetime
    ) -> bool:
        """Use a refresh token and keep its successors.

        False, and nothing written, when it is gone or was used first before `reusable_from`.
        """
        ...

    async def drop_stale_oauth(self, now: datetime, before: datetime) -> None:
        """Forget sign-ins and tokens that ended by `now`, and codes that ended by `before`.

        Of what began by `before`, also grants without token and code, and programs without grant and sign-in
        unless they are revoked.
        """
        ...


class ExportStore(Protocol):
    """Orders for documents, and the documents in pieces, so that every server has them."""

    async def add_export(self, graph_id: GraphId, export: Export) -> Export:
        """Keep an order, and return the kept one: an earlier one of the same `request` wins."""
        ...

    async def export(self, graph_id: GraphId, export_id: str) -> Export | None:
        """An export by its id."""
        ...

    async def advance_export(self, graph_id: GraphId, export: Export) -> bool:
        """Write how far an export is; False, and nothing written, when it is finished or gone."""
        ...

    async def add_export_chunk(
        self, graph_id: GraphId, export_id: str, document: str, ordinal: int, content: bytes
    ) -> None:
        """Keep a piece, counted from 0; nothing happens when the export is gone or the piece is there."""
        ...

    async def export_chunk(
        self, graph_id: GraphId, export_id: str, document: str, ordinal: int
    ) -> bytes | None:
        """A piece of a document, None behind the last one."""
        ...

    async def drop_stale_exports(self, graph_id: GraphId, at: datetime, before: datetime) -> None:
        """Expire the exports that end by `at`, forget those that ended by `before`, drop unneeded pieces.

        A piece is needed while its export is unfinished, or published with its document.
        """
        ...


class SkillStore(Protocol):
    """Skills that were published for the agents of a graph."""

    async def put_skill(self, graph_id: GraphId, skill: CustomSkill) -> CustomSkill:
        """Keep a skill instead of the one of its name, whose id stays; return it as it is kept."""
        ...

    async def skills(self, graph_id: GraphId) -> Sequence[CustomSkill]:
        """All skills of a graph, by name (code points)."""
        ...

    async def remove_skill(self, graph_id: GraphId, name: str) -> bool:
        """Take a skill away; False when there is none of that name."""
        ...


class LeaseStore(Protocol):
    """Who does a piece of work that one process at a time should do.

    A lease saves work and guards nothing: its holder may be held up past the end of it, and clocks
    differ. What the work writes must be right with two workers too.
    """

    async def acquire_lease(self, name: str, holder: str, *, at: datetime, expires_at: datetime) -> bool:
        """Take the lease `name`, or renew it when `holder` has it; True when `holder` has it afterwards.

        False, and nothing changed, while another holder's lease runs: until `at` has reached its end.
        """
        ...

    async def release_lease(self, name: str, holder: str) -> None:
        """Give back a lease; nothing happens when `holder` does not have it."""
        ...


class Store(
    GraphStore,
    SessionStore,
    AccountStore,
    PurgeStore,
    AuditStore,
    TokenStore,
    FileStore,
    OAuthStore,
    ExportStore,
    SkillStore,
    LeaseStore,
    Protocol,
):
    """One database."""

    async def close(self) -> None:
        """Finish running writes and release files and connections. Safe to call twice."""
        ...
