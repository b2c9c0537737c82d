"""Under which address a client knows this server, and what it is told when it comes without a credential."""

from __future__ import annotations

from starlette.requests import HTTPConnection

from hivemem.domain.oauth import READ, WRITE
from hivemem.settings import Settings

RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource"
SERVER_METADATA_PATH = "/.well-known/oauth-authorization-server"
MCP_PATH = "/mcp"


def base_address(settings: Settings, connection: HTTPConnection) -> str:
    """Scheme, host and port without a slash at the end: the issuer, and what token audiences begin with.

    The setting `public_url`, or the address of this request, whose host the edge has checked.
    """
    if settings.public_url:
        return settings.public_url.rstrip("/")
    return f"{connection.url.scheme}://{connection.headers.get('host', '').lower()}"


def challenge(base: str, *, refused: bool) -> str:
    """The `WWW-Authenticate` of a 401 on `/mcp`: where to learn how to sign in (RFC 9728, 5.1).

    Args:
        base: As `base_address` gives it.
        refused: A credential was sent; without one, RFC 6750 (3.1) wants no error code.
    """
    parts = ['error="invalid_token"'] if refused else []
    parts.append(f'resource_metadata="{base}{RESOURCE_METADATA_PATH}{MCP_PATH}"')
    parts.append(f'scope="{READ} {WRITE}"')
    return "Bearer " + ", ".join(parts)
