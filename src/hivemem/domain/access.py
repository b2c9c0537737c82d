"""Users, graphs and API keys: who may read and write which graph."""

from __future__ import annotations

import enum
import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime

from hivemem.errors import Forbidden

API_KEY_PATTERN = re.compile(r"hm_[0-9a-f]{64}")


class Scope(enum.StrEnum):
    """What a credential may do."""

    OWNER = "owner"
    """Read and write."""
    MEMBER = "member"
    """Read only."""


class GraphKind(enum.StrEnum):
    """Whose memory a graph is."""

    PERSONAL = "personal"
    ORGANIZATION = "organization"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person who owns memories."""

    user_id: str
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """An isolated set of nodes and relationships."""

    graph_id: str
    name: str
    kind: GraphKind
    owner_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A credential as it is stored: the SHA-256 of the whole key, never the key.

    `key_id` names it in listings and revocations; it is the first 12 hex digits of the hash.
    """

    key_id: str
    hash: str
    name: str
    user_id: str
    graph_id: str
    scope: Scope
    created_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The caller of an operation, derived from the credential alone."""

    user_id: str
    graph_id: str
    scope: Scope

    def require_write(self) -> None:
        """Let an owner pass.

        Raises:
            Forbidden: The credential is read-only.
        """
        if self.scope is not Scope.OWNER:
            raise Forbidden(
                "this credential is read-only; use a key with the scope 'owner', or a sign-in that may write."
            )


def new_api_key() -> str:
    """A fresh secret: `hm_` and 64 lower-case hex digits, 256 bits from the system's generator."""
    return f"hm_{secrets.token_hex(32)}"


def hash_api_key(key: str) -> str:
    """SHA-256 of the whole key as 64 hex digits. The key has full entropy, so no salt is needed."""
    return hashlib.sha256(key.encode()).hexdigest()
