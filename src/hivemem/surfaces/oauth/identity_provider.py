"""An OpenID Connect provider as this server talks to it: its metadata, its keys, and who it says is there.

Authlib makes the request, exchanges the code and checks the claims; joserfc checks the signature. Neither
fetches metadata and keys outside of a web framework, or knows when keys are too old: that is here.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import get_well_known_url
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from hivemem.errors import Unauthorized, Unavailable
from hivemem.ports.clock import Clock
from hivemem.service.sign_ins import ProvedIdentity
from hivemem.settings import Settings
from hivemem.surfaces.wire_json import parse_json

# Signatures that need the provider's secret key. `HS256` would make our own secret one that signs.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
_SCOPE = "openid profile email"
_SECONDS = 10.0
_MAX_BYTES = 1024 * 1024
_LEEWAY_SECONDS = 60
_METADATA_FOR = timedelta(hours=1)
_KEYS_FOR = timedelta(hours=1)
_KEYS_AGAIN_AFTER = timedelta(seconds=30)
_MAX_SUBJECT = 255


class ProviderRefusal(Unauthorized):
    """The provider did not let somebody in, or what it says of them cannot be believed."""

    code = "provider_refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the answer to a request must match. `verifier` proves that the code is exchanged by who asked."""

    redirect_uri: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata:
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    names_itself: bool
    secret_in_header: bool


class IdentityProvider:
    """The provider that the settings name.

    Args:
        settings: With `oidc_issuer`, `oidc_client_id` and the others of `oidc_`.
        clock: For the age of metadata, keys and tokens.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._metadata: tuple[datetime, _Metadata] | None = None
        self._keys: tuple[datetime, KeySet] | None = None

    async def request(self, redirect_uri: str, state: str) -> tuple[str, Expected]:
        """Where to send a browser, and what its answer must match.

        Raises:
            Unavailable: The provider cannot be reached, or does not speak OpenID Connect.
        """
        metadata = await self._known()
        expected = Expected(
            redirect_uri=redirect_uri, nonce=secrets.token_urlsafe(32), verifier=secrets.token_urlsafe(48)
        )
        async with self._client(metadata, redirect_uri) as client:
            address, _ = client.create_authorization_url(
                metadata.authorization_endpoint,
                state=state,
                code_verifier=expected.verifier,
                nonce=expected.nonce,
            )
        return str(address), expected

    async def check_sender(self, issuer: str | None) -> None:
        """Let an answer pass that comes from this provider, as far as it says so (RFC 9207).

        Raises:
            ProviderRefusal: It comes from another one.
        """
        metadata = await self._known()
        if issuer != metadata.issuer and (issuer is not None or metadata.names_itself):
            raise ProviderRefusal("the answer does not come from the identity provider of this server.")

    async def identity(self, code: str, expected: Expected) -> ProvedIdentity:
        """Who signed in.

        Raises:
            ProviderRefusal: Code or token are not good, or the settings do not let this person in.
            Unavailable: The provider cannot be reached.
        """
        metadata = await self._known()
        token = await self._exchanged(metadata, code, expected)
        encoded = token.get("id_token")
        if not isinstance(encoded, str):
            raise ProviderRefusal("the identity provider sent no ID token.")
        claims = await self._claims(metadata, encoded, expected.nonce, token.get("access_token"))
        self._check_person(claims)
        return ProvedIdentity(
            issuer=metadata.issuer.rstrip("/"), subject=str(claims["sub"]), names=_names(claims)
        )

    async def _exchanged(self, metadata: _Metadata, code: str, expected: Expected) -> Mapping[str, Any]:
        try:
            async with self._client(metadata, expected.redirect_uri) as client:
                token = await client.fetch_token(
                    metadata.token_endpoint,
                    grant_type="authorization_code",
                    code=code,
                    redirect_uri=expected.redirect_uri,
                    code_verifier=expected.verifier,
                )
        except AuthlibBaseError as error:
            raise ProviderRefusal("the identity provider did not take the code; sign in again.") from error
        except (httpx2.HTTPError, ValueError) as error:
            raise _unreachable(metadata.issuer) from error
        return cast("Mapping[str, Any]", token)

    async def _claims(
        self, metadata: _Metadata, encoded: str, nonce: str, access_token: object
    ) -> Mapping[str, Any]:
        client_id = self._settings.oidc_client_id
        try:
            signed = await self._verified(metadata, encoded)
            claims = CodeIDToken(
                signed.claims,
                signed.header,
                {
                    "iss": {"essential": True, "value": metadata.issuer},
                    "aud": {"essential": True, "value": client_id},
                },
                {"nonce": nonce, "client_id": client_id, "access_token": access_token},
            )
            claims.validate(now=int(self._clock.now().timestamp()), leeway=_LEEWAY_SECONDS)
        except JoseError as error:
            # The error names the claim or the rule, never the token.
            raise ProviderRefusal(f"the ID token is not good ({error.error}); sign in again.") from error
        if not 1 <= len(claims["sub"]) <= _MAX_SUBJECT or not claims["sub"].isprintable():
            raise ProviderRefusal("the ID token has no usable subject.")
        return claims

    async def _verified(self, metadata: _Metadata, encoded: str) -> jwt.Token:
        keys = await self._keys_of(metadata)
        try:
            return jwt.decode(encoded, keys, algorithms=_ALGORITHMS)
        except InvalidKeyIdError:
            # A key that was made since: providers change theirs without a word.
            fresh = await self._keys_of(metadata, anew=True)
            return jwt.decode(encoded, fresh, algorithms=_ALGORITHMS)

    async def _known(self) -> _Metadata:
        now, kept = self._clock.now(), self._metadata
        if kept is not None and now - kept[0] < _METADATA_FOR:
            return kept[1]
        issuer = self._settings.oidc_issuer
        found = await self._fetched(get_well_known_url(issuer, external=True))
        endpoints = [found.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        secure = [one for one in endpoints if isinstance(one, str) and _as_secure(one, issuer)]
        named = found.get("issuer")
        if not isinstance(named, str) or named.rstrip("/") != issuer.rstrip("/") or len(secure) != 3:
            raise Unavailable(
                f"what {issuer} says of itself is not an OpenID Connect provider of this name; look at "
                "oidc_issuer.",
                code="provider_unusable",
            )
        methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        metadata = _Metadata(
            issuer=named,
            authorization_endpoint=secure[0],
            token_endpoint=secure[1],
            jwks_uri=secure[2],
            names_itself=found.get("authorization_response_iss_parameter_supported") is True,
            secret_in_header="client_secret_basic" in methods,
        )
        self._metadata = (now, metadata)
        return metadata

    async def _keys_of(self, metadata: _Metadata, *, anew: bool = False) -> KeySet:
        now, kept = self._clock.now(), self._keys
        age = None if kept is None else now - kept[0]
        if kept is not None and age is not None and age < (_KEYS_AGAIN_AFTER if anew else _KEYS_FOR):
            return kept[1]
        try:
            keys = KeySet.import_key_set(cast("Any", await self._fetched(metadata.jwks_uri)))
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise _unreachable(metadata.issuer) from error
        self._keys = (now, keys)
        return keys

    async def _fetched(self, address: str) -> Mapping[str, Any]:
        try:
            async with (
                httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False) as client,
                client.stream("GET", address, headers={"Accept": "application/json"}) as response,
            ):
                response.raise_for_status()
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _MAX_BYTES:
                        raise ValueError("larger than any document of a provider")
            found = parse_json(bytes(body))
        except (httpx2.HTTPError, OSError, ValueError) as error:
            raise _unreachable(self._settings.oidc_issuer) from error
        return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}

    def _client(self, metadata: _Metadata, redirect_uri: str) -> Any:
        """Authlib's client, of which type checkers do not see that it is one of httpx2."""
        secret = self._settings.oidc_client_secret or None
        method = "client_secret_basic" if metadata.secret_in_header else "client_secret_post"
        return AsyncOAuth2Client(
            client_id=self._settings.oidc_client_id,
            client_secret=secret,
            token_endpoint_auth_method="none" if secret is None else method,
            code_challenge_method="S256",
            scope=_SCOPE,
            redirect_uri=redirect_uri,
            timeout=_SECONDS,
        )

    def _check_person(self, claims: Mapping[str, Any]) -> None:
        """Let those pass whom the settings let in."""
        domains = {one.lower().lstrip("@") for one in self._settings.oidc_allowed_domains}
        email = claims.get("email")
        domain = email.rpartition("@")[2].lower() if isinstance(email, str) else ""
        if domains and (claims.get("email_verified") is not True or domain not in domains):
            raise ProviderRefusal("only people with a verified e-mail address of this organization sign in.")
        name, _, value = self._settings.oidc_required_claim.partition("=")
        held = claims.get(name.strip())
        values = cast("list[object]", held) if isinstance(held, list) else [held]
        if name and value.strip() not in [one for one in values if isinstance(one, str)]:
            raise ProviderRefusal(f"the identity provider does not say {name.strip()!r} of you as it must.")


def _names(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """What a new user may be called, best first."""
    found = [claims.get(name) for name in ("preferred_username", "email", "name")]
    return tuple(one.strip() for one in found if isinstance(one, str) and one.strip() and one.isprintable())


def _as_secure(address: str, issuer: str) -> bool:
    """Whether an endpoint is reached by https, or by http at a provider on this machine."""
    return address.startswith("https://") or (address.startswith("http://") and issuer.startswith("http://"))


def _unreachable(issuer: str) -> Unavailable:
    return Unavailable(
        f"the identity provider {issuer} cannot be reached, or does not speak OpenID Connect; try again.",
        code="provider_unavailable",
        retry_after_seconds=10,
    )
