"""OAuth: programs that ask for access, what a person granted them, and the codes and tokens of a grant.

Secrets are random and long, so they are kept as SHA-256, like API keys, and looked up by it.
"""

from __future__ import annotations

import enum
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from hivemem.domain.access import ApiKey, Scope

READ, WRITE, ADMIN = "memory:read", "memory:write", "memory:admin"
SCOPES = (READ, WRITE, ADMIN)

OWN_PAGES = "hivemem-pages"
"""Id of the program that this server's own pages are, where a sign-in ends at them."""

ACCESS_TOKEN_PREFIX = "at_"
REFRESH_TOKEN_PREFIX = "rt_"
CODE_PREFIX = "ac_"

SIGN_IN_LIFETIME = timedelta(minutes=10)
CODE_LIFETIME = timedelta(minutes=5)
ACCESS_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=60)
"""Counted from the last refresh: an agent that is used stays signed in."""
REFRESH_GRACE = timedelta(seconds=30)
"""How long a refresh token may be used again: an agent's hooks run at the same time, and answers get lost."""
UNUSED_CLIENT_LIFETIME = timedelta(hours=24)
"""After that a program to which nobody has granted anything is forgotten."""

_LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))
_DEFAULT_PORTS = {"http": 80, "https": 443}


class ClientAuthentication(enum.StrEnum):
    """How a program proves at the token endpoint that it is the one that registered."""

    NONE = "none"
    BODY = "client_secret_post"
    HEADER = "client_secret_basic"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """A program that may ask for access. `secret_hash` is None exactly when it has no secret to prove."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    scopes: tuple[str, ...]
    authentication: ClientAuthentication
    secret_hash: str | None
    created_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who signed in: what the grant will be bound to.

    `key_id` is the API key that was shown, None when the person signed in by other means; then the grant
    is bound to the user alone, and `password_mark` names the password that they had at that moment.
    """

    user_id: str
    graph_id: str
    scope: Scope
    admin: bool = False
    key_id: str | None
    password_mark: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """What a program asks for. `redirect_uri_given`: sent, or the only registered one taken instead."""

    client_id: str
    redirect_uri: str
    redirect_uri_given: bool
    code_challenge: str
    state: str | None
    scopes: tuple[str, ...]
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A request on its way through the browser, found by the hash of the id in its address.

    `identity` and `consent_hash` are there once somebody has signed in: only the page that was then shown
    knows the secret with this hash, so that no other page can give the consent. `external` is JSON that an
    identity provider's answer must match, when the browser was sent to one.
    """

    hash: str
    request: AuthorizationRequest
    expires_at: datetime
    identity: Identity | None = None
    consent_hash: str | None = None
    external: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a person allowed a program to do, until it is revoked or its key is."""

    grant_id: str
    client_id: str
    user_id: str
    graph_id: str
    key_id: str | None
    scopes: tuple[str, ...]
    resource: str
    created_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationCode:
    """The single-use code that a program exchanges for tokens."""

    hash: str
    grant_id: str
    redirect_uri: str
    redirect_uri_given: bool
    code_challenge: str
    expires_at: datetime
    used_at: datetime | None = None


class TokenKind(enum.StrEnum):
    """What a token is good for."""

    ACCESS = "access"
    REFRESH = "refresh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as it is stored. `used_at`: when a refresh token was exchanged first."""

    hash: str
    kind: TokenKind
    grant_id: str
    scopes: tuple[str, ...]
    expires_at: datetime
    used_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenState:
    """A token with all that can end it, read at one moment. `key` is None when the grant has none."""

    token: Token
    grant: Grant
    client_revoked_at: datetime | None
    key: ApiKey | None

    def is_alive(self, now: datetime) -> bool:
        """Whether neither time nor a revocation of grant, program or key has ended it."""
        return (
            now < self.token.expires_at
            and self.grant.revoked_at is None
            and self.client_revoked_at is None
            and (self.key is None or self.key.is_alive(now))
        )

    @property
    def scope(self) -> Scope:
        """What it may do: it writes when both its scopes and its key allow that."""
        may_write = WRITE in self.token.scopes and (self.key is None or self.key.scope is Scope.OWNER)
        return Scope.OWNER if may_write else Scope.MEMBER

    @property
    def may_administer(self) -> bool:
        """Whether it reaches the administration: both its scopes and its key must allow that."""
        return ADMIN in self.token.scopes and (self.key is None or self.key.admin)


def new_secret(prefix: str = "") -> str:
    """A fresh secret of 256 bits in the alphabet `[A-Za-z0-9_-]`, which every URL and shell leaves alone."""
    return prefix + secrets.token_urlsafe(32)


def known_scopes(asked: Iterable[str]) -> tuple[str, ...]:
    """Those of `asked` that exist here, each once, in our order.

    Programs ask every server for scopes such as `offline_access`; RFC 6749 (3.3) lets a server ignore them.
    """
    wanted = set(asked)
    return tuple(scope for scope in SCOPES if scope in wanted)


def granted_scopes(asked: Collection[str], identity: Identity) -> tuple[str, ...]:
    """What a person who signed in can grant of `asked`; reading is part of everything."""
    allowed = {
        READ,
        *((WRITE,) if identity.scope is Scope.OWNER else ()),
        *((ADMIN,) if identity.admin else ()),
    }
    return tuple(name for name in SCOPES if name in allowed and (name in asked or name == READ))


def same_resource(resource: str, base: str) -> bool:
    """Whether a resource indicator (RFC 8707) names the server at `base`, or its `/mcp`.

    The loopback names count as one, since `localhost` and `127.0.0.1` are the same server.
    """
    try:
        asked, own = urlsplit(resource), urlsplit(base)
        ports = [part.port or _DEFAULT_PORTS.get(part.scheme) for part in (asked, own)]
    except ValueError:
        return False
    hosts = [_host(part.hostname) for part in (asked, own)]
    return (
        asked.scheme == own.scheme
        and hosts[0] == hosts[1] != ""
        and ports[0] == ports[1]
        and asked.path.rstrip("/") in ("", "/mcp")
        and "@" not in asked.netloc
        and not asked.query
        and not asked.fragment
    )


def is_loopback(host: str | None) -> bool:
    """Whether a host name, without brackets, is this machine's own."""
    return host is not None and host.lower() in _LOOPBACK_NAMES


def _host(name: str | None) -> str:
    return "localhost" if is_loopback(name) else (name or "").lower()
