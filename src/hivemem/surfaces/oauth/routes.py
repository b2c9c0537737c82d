"""The routes of the authorization server, ready to be part of the application."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hivemem.domain.oauth import SCOPES, ClientAuthentication
from hivemem.errors import InvalidInput
from hivemem.service.oauth import GRANT_TYPES
from hivemem.surfaces.oauth.addresses import (
    MCP_PATH,
    RESOURCE_METADATA_PATH,
    SERVER_METADATA_PATH,
    base_address,
)
from hivemem.surfaces.oauth.client_documents import ClientDocuments
from hivemem.surfaces.oauth.clients import Clients
from hivemem.surfaces.oauth.endpoints import Authorization, Tokens, page
from hivemem.surfaces.oauth.joining import JOIN_PATH, JoinPages
from hivemem.surfaces.oauth.sign_in_ways import ApiKeyWay, PasswordWay
from hivemem.surfaces.oauth.wire import AddressLimit, json_answer, oauth_endpoint
from hivemem.surfaces.rest.limits import count_address
from hivemem.surfaces.services import Services

PROVIDER_START_PATH = "/oauth/oidc/start"

_METHODS = [method.value for method in ClientAuthentication]


def oauth_routes(services: Services, documents: ClientDocuments | None = None) -> list[Route]:
    """The routes; `documents` replaces the reader of documents about programs."""
    settings, oauth = services.settings, services.oauth
    if documents is None and settings.oauth_client_documents == "on":
        documents = ClientDocuments(services.clock, settings.oauth_redirect_schemes)
    limit = partial(count_address, services)
    clients = Clients(oauth, documents, limit)
    provider_start = PROVIDER_START_PATH if settings.oidc_issuer else None
    sign_ins = services.sign_ins
    pages = Authorization(
        services.consenting,
        clients,
        sign_ins,
        settings,
        [PasswordWay(sign_ins), ApiKeyWay(sign_ins)],
        limit=limit,
        provider_start=provider_start,
    )
    join = JoinPages(
        services.joining,
        services.consenting,
        sign_ins,
        limit=limit,
        provider_start=provider_start,
        provider_name=settings.oidc_name,
    )
    tokens = Tokens(oauth, clients, settings, limit)

    async def server_metadata(request: Request) -> Response:
        return json_answer(_server_metadata(base_address(settings, request), documents is not None))

    async def resource_metadata(request: Request) -> Response:
        return json_answer(_resource_metadata(base_address(settings, request)))

    return [
        Route(SERVER_METADATA_PATH, server_metadata, methods=["GET"]),
        Route(RESOURCE_METADATA_PATH, resource_metadata, methods=["GET"]),
        Route(RESOURCE_METADATA_PATH + MCP_PATH, resource_metadata, methods=["GET"]),
        Route("/register", oauth_endpoint(clients.register), methods=["POST"]),
        Route("/token", oauth_endpoint(tokens.token), methods=["POST"]),
        Route("/revoke", oauth_endpoint(tokens.revoke), methods=["POST"]),
        Route("/authorize", page(pages.authorize), methods=["GET", "POST"]),
        Route("/oauth/sign-in", page(pages.sign_in), methods=["GET"]),
        Route("/oauth/sign-in", page(pages.signed_in), methods=["POST"]),
        Route("/oauth/consent", page(pages.decided), methods=["POST"]),
        Route(JOIN_PATH, page(join.show), methods=["GET"]),
        Route(JOIN_PATH, page(join.submit), methods=["POST"]),
        *(_provider_routes(services, pages, join, limit) if settings.oidc_issuer else ()),
    ]


def _provider_routes(
    services: Services, pages: Authorization, join: JoinPages, limit: AddressLimit
) -> list[Route]:
    """The routes of an identity provider.

    Raises:
        InvalidInput: What it needs is not installed.
    """
    try:
        from hivemem.surfaces.oauth.identity_provider import IdentityProvider
        from hivemem.surfaces.oauth.provider_pages import CALLBACK_PATH, ProviderPages
    except ImportError as error:
        raise InvalidInput(
            "oidc_issuer is set, and Authlib is not installed; run: pip install 'hivemem[oidc]'."
        ) from error
    provider = ProviderPages(
        IdentityProvider(services.settings, services.clock),
        services.consenting,
        services.sign_ins,
        services.joining,
        services.settings,
        limit=limit,
        ask_consent=pages.ask_consent,
        ask_joining=join.confirm,
        ask_again=pages.ask_who,
    )
    return [
        Route(PROVIDER_START_PATH, page(provider.start), methods=["GET"]),
        Route(CALLBACK_PATH, page(provider.callback), methods=["GET"]),
    ]


def _server_metadata(base: str, documents: bool) -> dict[str, object]:
    """RFC 8414."""
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/authorize",
        "token_endpoint": f"{base}/token",
        "registration_endpoint": f"{base}/register",
        "revocation_endpoint": f"{base}/revoke",
        "scopes_supported": SCOPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": GRANT_TYPES,
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": _METHODS,
        "revocation_endpoint_auth_methods_supported": _METHODS,
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": documents,
    }


def _resource_metadata(base: str) -> dict[str, object]:
    """RFC 9728."""
    return {
        "resource": base + MCP_PATH,
        "authorization_servers": [base],
        "scopes_supported": SCOPES,
        "bearer_methods_supported": ["header"],
        "resource_name": "hivemem",
    }
