"""Programs that are named by the https address of a document about them (Client ID Metadata Documents).

The address comes from a stranger and is fetched by this server, so it must not reach what only this server
can reach: the host's addresses are checked and then connected to as they are, without redirects and proxies.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

import httpx2

from hivemem.domain.oauth import SCOPES, ClientAuthentication, OAuthClient, known_scopes
from hivemem.domain.redirect_uris import redirect_uri_problem
from hivemem.errors import InvalidInput
from hivemem.ports.clock import Clock
from hivemem.surfaces.wire_json import parse_json

MAX_BYTES = 5 * 1024
_SECONDS = 5.0
_MAX_LENGTH = 512
_KEPT_SECONDS = 300.0
_MOST_KEPT = 200

# Ranges that Python takes for public ones, some versions at least: site-local, IPv4-compatible and others
# beside what is given out to the world, and the services of a provider to its machines at 192.0.0.192.
_UNICAST = ipaddress.IPv6Network("2000::/3")
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")
# Where only IPv6 is spoken, each address of the old world has one in here.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Resolve = Callable[[str, int], Awaitable[list[str]]]


def is_document_address(client_id: str) -> bool:
    """Whether a client id is an https address with a path, in the one form that the specification allows."""
    try:
        parts = urlsplit(client_id)
        _ = parts.port
    except ValueError:
        return False
    return bool(
        parts.scheme == "https"
        and parts.hostname
        and parts.path not in ("", "/")
        and "@" not in parts.netloc
        and "#" not in client_id
        and len(client_id) <= _MAX_LENGTH
        and client_id.isascii()
        and client_id.isprintable()
        and not {".", ".."} & set(parts.path.split("/"))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    until: datetime
    client: OAuthClient


class ClientDocuments:
    """Reads the documents, and keeps each for five minutes."""

    def __init__(
        self,
        clock: Clock,
        private_schemes: tuple[str, ...],
        *,
        resolve: Resolve | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._clock = clock
        self._private_schemes = private_schemes
        self._resolve = resolve or _public_addresses
        self._transport = transport
        self._kept: dict[str, _Kept] = {}

    async def client(self, client_id: str) -> OAuthClient:
        """The program that a document describes.

        Raises:
            InvalidInput: The document cannot be had, or does not describe a public program with this id.
        """
        now = self._clock.now()
        kept = self._kept.get(client_id)
        if kept is not None and now < kept.until:
            return kept.client
        try:
            document = parse_json(await self._fetch(urlsplit(client_id)))
        except (httpx2.HTTPError, OSError, UnicodeError) as error:
            # UnicodeError: a name that has no form for the DNS, such as one with an empty part.
            raise InvalidInput(f"the document {client_id} cannot be fetched.") from error
        client = _described(document, client_id, self._private_schemes, now)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[client_id] = _Kept(
            until=datetime.fromtimestamp(now.timestamp() + _KEPT_SECONDS, now.tzinfo), client=client
        )
        return client

    async def _fetch(self, address: SplitResult) -> bytes:
        host, port = address.hostname or "", address.port or 443
        async with asyncio.timeout(_SECONDS):
            ip = (await self._resolve(host, port))[0]
        target = address._replace(netloc=f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}").geturl()
        # The certificate is checked for the name, though the connection goes to the checked address.
        extensions = {"sni_hostname": host}
        headers = {"Host": address.netloc, "Accept": "application/json"}
        async with (
            httpx2.AsyncClient(
                timeout=_SECONDS, follow_redirects=False, trust_env=False, transport=self._transport
            ) as client,
            asyncio.timeout(_SECONDS),
            client.stream("GET", target, headers=headers, extensions=extensions) as response,
        ):
            if response.status_code != 200:
                raise InvalidInput(
                    f"the document {address.geturl()} answers {response.status_code}, not 200."
                )
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise InvalidInput(f"the document {address.geturl()} is larger than {MAX_BYTES} bytes.")
        return bytes(body)


def _described(
    document: object, client_id: str, private_schemes: tuple[str, ...], now: datetime
) -> OAuthClient:
    fields = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if fields.get("client_id") != client_id:
        raise InvalidInput(f"the document {client_id} is about another client_id.")
    if "client_secret" in fields or fields.get("token_endpoint_auth_method", "none") != "none":
        raise InvalidInput(f"the document {client_id} is not about a public program.")
    redirect_uris = _texts(fields.get("redirect_uris"))
    problems = [redirect_uri_problem(uri, private_schemes) for uri in redirect_uris]
    if not redirect_uris or any(problems):
        raise InvalidInput(f"the document {client_id} has no redirect_uris, or some that are not allowed.")
    name, scope = fields.get("client_name"), fields.get("scope")
    shown = "".join(one for one in name if one.isprintable()) if isinstance(name, str) else ""
    return OAuthClient(
        client_id=client_id,
        # The address is the part that can be believed, so the page shows it with the name.
        name=f"{shown.strip()[:100]} ({client_id})".strip(),
        redirect_uris=redirect_uris,
        grant_types=_texts(fields.get("grant_types")) or ("authorization_code", "refresh_token"),
        scopes=known_scopes(scope.split() if isinstance(scope, str) else ()) or SCOPES,
        authentication=ClientAuthentication.NONE,
        secret_hash=None,
        created_at=now,
    )


def _texts(value: object) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(item for item in items[:50] if isinstance(item, str))


async def _public_addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, all of them public.

    Raises:
        InvalidInput: One is private, or there is none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not addresses or not all(map(is_public, addresses)):
        raise InvalidInput(f"the host {host} is not on the public internet.")
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address is one that everybody can reach, not one of this machine or its network."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inside = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            inside = ipaddress.IPv4Address(ip.packed[-4:])
        if inside is None:
            return ip in _UNICAST and ip.is_global
        ip = inside
    return ip.is_global and not ip.is_multicast and ip not in _PROTOCOLS
