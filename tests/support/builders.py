"""Short ways to make domain values in tests: every field has a plain default, and all is repeatable."""

from __future__ import annotations

import itertools
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hivemem.domain.access import ApiKey, Scope, hash_api_key
from hivemem.domain.accounts import (
    AuditEvent,
    ExternalIdentity,
    Graph,
    Invitation,
    Organization,
    Role,
    User,
)
from hivemem.domain.edge import Edge, Hyperedge, Participant
from hivemem.domain.graph import (
    Deletion,
    EdgeWrite,
    HyperedgeWrite,
    Kind,
    NodeVectors,
    NodeWrite,
    Passage,
    SessionCall,
    TimelineEntry,
    WriteBatch,
)
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.domain.oauth import (
    AuthorizationCode,
    AuthorizationRequest,
    ClientAuthentication,
    Grant,
    OAuthClient,
    SignIn,
    Token,
    TokenKind,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = "test-model"


def minutes(count: float) -> datetime:
    """The moment `count` minutes after the tests' beginning of time."""
    return START + timedelta(minutes=count)


class FixedClock:
    """The `Clock` port: time stands still, or moves by `step` at each reading; ids are counted."""

    def __init__(self, now: datetime = START, step: timedelta = timedelta(0)) -> None:
        self._now = now
        self._step = step
        self._numbers = itertools.count(1)

    def now(self) -> datetime:
        now = self._now
        self._now += self._step
        return now

    def advance(self, **duration: float) -> None:
        """Move on by a `timedelta`, as in `clock.advance(hours=2)`."""
        self._now += timedelta(**duration)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers):06d}"


def node(key: str = "fact_one", description: str | None = None, **changes: Any) -> Node:
    """A described fact; `changes` overrides any field."""
    fields: dict[str, Any] = {
        "key": key,
        "node_type": "fact",
        "description": f"What is known about {key}." if description is None else description,
        "created_at": START,
        "updated_at": START,
    }
    return Node(**{**fields, **changes})


def placeholder(key: str, **changes: Any) -> Node:
    """A node that a relationship has named and nobody has described."""
    return node(key, "", enrichment_status=EnrichmentStatus.PLACEHOLDER, **changes)


def edge(from_key: str, to_key: str, relationship: str = "depends on", **changes: Any) -> Edge:
    """An edge whose id is derived from its identity, unless `edge_id` is given."""
    fields: dict[str, Any] = {
        "edge_id": f"edge_{from_key}-{to_key}-{relationship}".replace(" ", "-"),
        "from_key": from_key,
        "to_key": to_key,
        "relationship": relationship,
        "created_at": START,
        "updated_at": START,
    }
    return Edge(**{**fields, **changes})


def hyperedge(*keys: str, relationship: str = "were decided together", **changes: Any) -> Hyperedge:
    """A hyperedge over `keys`, in that order; its id is derived from them unless given."""
    fields: dict[str, Any] = {
        "hyperedge_id": f"hyper_{'-'.join(keys)}-{relationship}".replace(" ", "-"),
        "relationship": relationship,
        "participants": tuple(Participant(node_key=key, ordinal=i) for i, key in enumerate(keys)),
        "created_at": START,
        "updated_at": START,
    }
    return Hyperedge(**{**fields, **changes})


def passage(*values: float, source: str = "description", start: int = 0, end: int = 5) -> Passage:
    """A passage with the vector `values`."""
    return Passage(source=source, start=start, end=end, vector=struct.pack(f"<{len(values)}f", *values))


def vectors(*passages: Passage, model_id: str = MODEL) -> NodeVectors:
    """The passages of one node; without arguments, the instance that clears vectors."""
    return NodeVectors(model_id=model_id, passages=passages)


def entry(summary: str = "Stored a node.", **changes: Any) -> TimelineEntry:
    """A diary line at the beginning of time."""
    fields: dict[str, Any] = {"at": START, "summary": summary, "source": "agent"}
    return TimelineEntry(**{**fields, **changes})


Write = NodeWrite | EdgeWrite | HyperedgeWrite | Deletion | TimelineEntry | SessionCall


def create(thing: Node | Edge | Hyperedge, vectors: NodeVectors | None = None) -> Write:
    """The write of something that does not exist yet."""
    return _write(thing, 0, vectors)


def update(thing: Node | Edge | Hyperedge, vectors: NodeVectors | None = None, **changes: Any) -> Write:
    """The write that takes `thing`, as it is stored, to its next version with `changes`."""
    following = replace(thing, write_version=thing.write_version + 1, **changes)
    return _write(following, thing.write_version, vectors)


def delete(thing: Node | Edge | Hyperedge) -> Deletion:
    """The removal of `thing` as it is stored."""
    match thing:
        case Node():
            return Deletion(kind=Kind.NODE, id=thing.key, expected=thing.write_version)
        case Edge():
            return Deletion(kind=Kind.EDGE, id=thing.edge_id, expected=thing.write_version)
        case Hyperedge():
            return Deletion(kind=Kind.HYPEREDGE, id=thing.hyperedge_id, expected=thing.write_version)


def _write(thing: Node | Edge | Hyperedge, expected: int, vectors: NodeVectors | None) -> Write:
    match thing:
        case Node():
            return NodeWrite(node=thing, expected=expected, vectors=vectors)
        case Edge():
            return EdgeWrite(edge=thing, expected=expected)
        case Hyperedge():
            return HyperedgeWrite(hyperedge=thing, expected=expected)


def batch(*things: Node | Edge | Hyperedge | Write, at: datetime = START) -> WriteBatch:
    """One batch of these writes, sorted by kind; a plain node, edge or hyperedge is created."""
    writes = [create(thing) if isinstance(thing, Node | Edge | Hyperedge) else thing for thing in things]
    return WriteBatch(
        at=at,
        nodes=tuple(write for write in writes if isinstance(write, NodeWrite)),
        edges=tuple(write for write in writes if isinstance(write, EdgeWrite)),
        hyperedges=tuple(write for write in writes if isinstance(write, HyperedgeWrite)),
        deletions=tuple(write for write in writes if isinstance(write, Deletion)),
        timeline=tuple(write for write in writes if isinstance(write, TimelineEntry)),
        calls=tuple(write for write in writes if isinstance(write, SessionCall)),
    )


def user(user_id: str = "user_one", **changes: Any) -> User:
    """A person; the name follows from the id."""
    return User(**{"user_id": user_id, "name": f"Name of {user_id}", "created_at": START, **changes})


def graph(graph_id: str = "graph_one", owner_id: str = "user_one", **changes: Any) -> Graph:
    """A personal graph."""
    fields: dict[str, Any] = {
        "graph_id": graph_id,
        "name": "personal",
        "owner_id": owner_id,
        "created_at": START,
    }
    return Graph(**{**fields, **changes})


def organization(organization_id: str = "org_one", **changes: Any) -> Organization:
    """An organization; name and graph follow from the id."""
    fields: dict[str, Any] = {
        "organization_id": organization_id,
        "name": f"Name of {organization_id}",
        "graph_id": f"graph_of_{organization_id}",
        "created_at": START,
    }
    return Organization(**{**fields, **changes})


def invitation(secret: str = "inv_1", **changes: Any) -> Invitation:
    """The stored form of an invitation of the default user to the default organization."""
    fields: dict[str, Any] = {
        "hash": hash_api_key(secret),
        "organization_id": "org_one",
        "role": Role.MEMBER,
        "invited_by": "user_one",
        "created_at": START,
        "expires_at": minutes(60),
    }
    return Invitation(**{**fields, **changes})


def external_identity(subject: str = "248289761001", **changes: Any) -> ExternalIdentity:
    """Who the default user is at an identity provider."""
    fields: dict[str, Any] = {
        "issuer": "https://accounts.example",
        "subject": subject,
        "user_id": "user_one",
        "created_at": START,
    }
    return ExternalIdentity(**{**fields, **changes})


def audit_event(action: str = "key.create", **changes: Any) -> AuditEvent:
    """A line of the audit log that names nobody."""
    return AuditEvent(**{"at": START, "action": action, **changes})


def api_key(secret: str = "hm_" + "0" * 64, **changes: Any) -> ApiKey:
    """The stored form of `secret`, for the default user and graph."""
    hash = hash_api_key(secret)
    fields: dict[str, Any] = {
        "key_id": hash[:12],
        "hash": hash,
        "name": "laptop",
        "user_id": "user_one",
        "graph_id": "graph_one",
        "scope": Scope.OWNER,
        "created_at": START,
    }
    return ApiKey(**{**fields, **changes})


def oauth_client(client_id: str = "client_one", **changes: Any) -> OAuthClient:
    """A public program on this machine."""
    fields: dict[str, Any] = {
        "client_id": client_id,
        "name": "Agent <é>",
        "redirect_uris": ("http://127.0.0.1/callback", "cursor://agent/callback"),
        "grant_types": ("authorization_code", "refresh_token"),
        "scopes": ("memory:read", "memory:write"),
        "authentication": ClientAuthentication.NONE,
        "secret_hash": None,
        "created_at": START,
    }
    return OAuthClient(**{**fields, **changes})


def sign_in(secret: str = "request", client_id: str = "client_one", **changes: Any) -> SignIn:
    """A sign-in under way that nobody has signed in to."""
    request = AuthorizationRequest(
        client_id=client_id,
        redirect_uri="http://127.0.0.1:5000/callback",
        redirect_uri_given=True,
        code_challenge="c" * 43,
        state="a state ☕",
        scopes=("memory:read", "memory:write"),
        resource="http://localhost/mcp",
    )
    fields: dict[str, Any] = {"hash": hash_api_key(secret), "request": request, "expires_at": minutes(10)}
    return SignIn(**{**fields, **changes})


def grant(grant_id: str = "grant_one", client_id: str = "client_one", **changes: Any) -> Grant:
    """What the default user granted with the default key."""
    fields: dict[str, Any] = {
        "grant_id": grant_id,
        "client_id": client_id,
        "user_id": "user_one",
        "graph_id": "graph_one",
        "key_id": api_key().key_id,
        "scopes": ("memory:read", "memory:write"),
        "resource": "http://localhost/mcp",
        "created_at": START,
    }
    return Grant(**{**fields, **changes})


def authorization_code(
    secret: str = "ac_1", grant_id: str = "grant_one", **changes: Any
) -> AuthorizationCode:
    """The stored form of a code."""
    fields: dict[str, Any] = {
        "hash": hash_api_key(secret),
        "grant_id": grant_id,
        "redirect_uri": "http://127.0.0.1:5000/callback",
        "redirect_uri_given": True,
        "code_challenge": "c" * 43,
        "expires_at": minutes(5),
    }
    return AuthorizationCode(**{**fields, **changes})


def token(secret: str = "at_1", grant_id: str = "grant_one", **changes: Any) -> Token:
    """The stored form of an access token."""
    fields: dict[str, Any] = {
        "hash": hash_api_key(secret),
        "kind": TokenKind.ACCESS,
        "grant_id": grant_id,
        "scopes": ("memory:read",),
        "expires_at": minutes(60),
    }
    return Token(**{**fields, **changes})
