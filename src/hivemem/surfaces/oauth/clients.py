"""Programs: how they register (RFC 7591), how they are found, and how they prove who they are."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import cast
from urllib.parse import unquote_plus

from mcp.shared.auth import OAuthClientMetadata
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from hivemem.domain.access import hash_api_key as hash_of
from hivemem.domain.oauth import SCOPES, ClientAuthentication, OAuthClient, known_scopes
from hivemem.domain.rates import Bucket
from hivemem.errors import InvalidInput
from hivemem.service.oauth import GRANT_TYPES, OAuth
from hivemem.surfaces.oauth.client_documents import ClientDocuments, is_document_address
from hivemem.surfaces.oauth.wire import MAX_BODY_BYTES, AddressLimit, OAuthError, Parameters, json_answer
from hivemem.surfaces.rest.body import json_object


class Clients:
    """The programs that may ask for access."""

    def __init__(self, oauth: OAuth, documents: ClientDocuments | None, limit: AddressLimit) -> None:
        self._oauth = oauth
        self._documents = documents
        self._limit = limit

    async def register(self, request: Request) -> Response:
        """`POST /register`: anybody may, which gives no access to anything."""
        await self._limit(request, Bucket.REGISTER)
        try:
            sent = dict(await json_object(request, MAX_BODY_BYTES))
            scopes = known_scopes(str(sent.pop("scope", None) or "").split()) or SCOPES
            metadata = OAuthClientMetadata.model_validate(sent)
        except ValidationError as error:
            told = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            code = "invalid_redirect_uri" if "redirect_uris" in told else "invalid_client_metadata"
            raise OAuthError(code, told) from error
        except InvalidInput as error:
            raise OAuthError("invalid_client_metadata", error.message) from error
        _check_metadata(metadata)
        if metadata.redirect_uris is None:
            # The model lets a null pass.
            raise OAuthError("invalid_redirect_uri", "redirect_uris is null; register at least one.")
        # As they were sent: the model would write them in another way.
        redirect_uris = tuple(cast("list[str]", sent["redirect_uris"]))
        client, secret = await self._oauth.register(
            name=_shown(metadata.client_name),
            redirect_uris=redirect_uris,
            grant_types=tuple(one for one in GRANT_TYPES if one in metadata.grant_types),
            scopes=scopes,
            # RFC 7591 (2) names the one that is meant when none is.
            authentication=ClientAuthentication(
                metadata.token_endpoint_auth_method or ClientAuthentication.HEADER
            ),
        )
        answer: dict[str, object] = {
            **metadata.model_dump(mode="json", exclude_none=True),
            "redirect_uris": redirect_uris,
            "grant_types": client.grant_types,
            "scope": " ".join(client.scopes),
            "token_endpoint_auth_method": client.authentication.value,
            "client_id": client.client_id,
            "client_id_issued_at": int(client.created_at.timestamp()),
        }
        if secret is not None:
            answer |= {"client_secret": secret, "client_secret_expires_at": 0}
        return json_answer(answer, 201)

    async def asking(self, client_id: str) -> OAuthClient | None:
        """The program behind a request for access; one that is named by its document is read anew."""
        if self._documents is not None and is_document_address(client_id):
            await self._oauth.keep_client(await self._documents.client(client_id))
        return await self._oauth.client(client_id)

    async def authenticated(self, request: Request, sent: Parameters) -> OAuthClient:
        """The program that sent a request to the token or revocation endpoint.

        A program with a secret may show it in the body or in the header, however it registered.

        Raises:
            OAuthError: `invalid_client`: unknown, revoked, or without its secret.
        """
        in_header = _basic(request)
        client_id, secret = in_header or (sent.required("client_id"), sent.get("client_secret") or "")
        client = await self._oauth.client(client_id)
        known = client is not None and sent.get("client_id") in (None, client_id)
        if client is not None and client.secret_hash is not None:
            known = known and hmac.compare_digest(client.secret_hash, hash_of(secret))
        if client is None or not known:
            raise OAuthError(
                "invalid_client",
                "the program is unknown, revoked, or sent a wrong secret; register again.",
                status=401,
                challenge='Basic realm="hivemem"' if in_header else None,
            )
        return client


def _check_metadata(metadata: OAuthClientMetadata) -> None:
    method, methods = metadata.token_endpoint_auth_method, [one.value for one in ClientAuthentication]
    if method not in (None, *methods):
        raise OAuthError(
            "invalid_client_metadata",
            f"token_endpoint_auth_method is {method!r}; use one of {', '.join(methods)}.",
        )
    if "authorization_code" not in metadata.grant_types or "code" not in metadata.response_types:
        raise OAuthError(
            "invalid_client_metadata",
            "grant_types needs 'authorization_code' and response_types 'code'; there is no other way here.",
        )


def _shown(name: str | None) -> str:
    """A name for the page: no control characters, none that turn the direction of writing, no novels."""
    return "".join(character for character in name or "" if character.isprintable()).strip()[:100]


def _basic(request: Request) -> tuple[str, str] | None:
    """Id and secret of the header, None without one. Both are encoded as in a form (RFC 6749, 2.3.1)."""
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        colon = name = secret = ""
    if not colon:
        raise OAuthError(
            "invalid_client", "the header Authorization cannot be read.", status=401, challenge="Basic"
        )
    return unquote_plus(name), unquote_plus(secret)
