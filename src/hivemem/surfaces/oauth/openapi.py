"""The endpoints of OAuth that programs call, as OpenAPI describes them.

The pages are left out: they are for people, and their forms carry secrets that only the pages know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hivemem.domain.oauth import SCOPES, ClientAuthentication
from hivemem.service.oauth import GRANT_TYPES
from hivemem.surfaces.oauth.addresses import MCP_PATH, RESOURCE_METADATA_PATH, SERVER_METADATA_PATH

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_METHODS = {"type": "string", "enum": [method.value for method in ClientAuthentication]}
_RESOURCE = {**_TEXT, "description": "This server (RFC 8707)."}
_CLIENT = {
    "client_id": {**_TEXT, "description": "Left out with `Authorization: Basic`."},
    "client_secret": {**_TEXT, "description": "Of programs that have one."},
}
_ERROR = {
    "type": "object",
    "required": ["error", "error_description"],
    "properties": {"error": {**_TEXT, "description": "A code of RFC 6749, 7591 or 8707."}}
    | {"error_description": _TEXT},
}
_REGISTRATION: dict[str, Any] = {
    "redirect_uris": {**_TEXTS, "minItems": 1, "maxItems": 20},
    "client_name": _TEXT,
    "grant_types": {"type": "array", "items": {"type": "string", "enum": [*GRANT_TYPES]}},
    "response_types": {"type": "array", "items": {"type": "string", "enum": ["code"]}},
    "scope": {**_TEXT, "description": f"Of {', '.join(SCOPES)}, separated by blanks."},
    "token_endpoint_auth_method": _METHODS,
}
_TOKEN_REQUEST: dict[str, Any] = {
    "grant_type": {"type": "string", "enum": [*GRANT_TYPES]},
    "code": {**_TEXT, "description": "Of the authorization; with `code_verifier` and `redirect_uri`."},
    "code_verifier": _TEXT,
    "redirect_uri": _TEXT,
    "refresh_token": _TEXT,
    "scope": {**_TEXT, "description": "At a refresh: fewer scopes than were granted."},
    "resource": _RESOURCE,
    **_CLIENT,
}
_TOKENS = {
    "access_token": _TEXT,
    "token_type": _TEXT,
    "expires_in": {"type": "integer", "description": "Seconds."},
    "scope": _TEXT,
    "refresh_token": _TEXT,
}


def oauth_paths(plain: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """The endpoints, described by `plain(summary, answer, refusals, secured=..., success=...)`."""

    def document(summary: str) -> dict[str, Any]:
        made = plain(summary, "ErrorAnswer", ("500",), secured=False)
        made["responses"]["200"]["content"] = _json({"type": "object"})
        return made

    def endpoint(summary: str, answer: Mapping[str, Any], success: str = "200") -> dict[str, Any]:
        refusals = ("400", "401", "413", "415", "429", "503")
        made = plain(summary, "ErrorAnswer", (*refusals, "500"), secured=False, success=success)
        for status in refusals:
            made["responses"][status]["content"] = _json(_ERROR)
        made["responses"][success]["content"] = _json(answer)
        return made

    register = endpoint(
        "Register a program (RFC 7591).",
        _object(
            {**_REGISTRATION, "client_id": _TEXT, "client_secret": _TEXT}, ("client_id", "redirect_uris")
        ),
        "201",
    )
    register["requestBody"] = {
        "required": True,
        "content": _json(_object(_REGISTRATION, ("redirect_uris",))),
    }
    token = endpoint(
        "Tokens for a code or for a refresh token (RFC 6749).",
        _object(_TOKENS, ("access_token", "token_type", "expires_in", "scope")),
    )
    token["requestBody"] = _form_or_json(_object(_TOKEN_REQUEST, ("grant_type",)))
    revoke = endpoint("End a grant by one of its tokens (RFC 7009).", _object({}, ()))
    revoke["requestBody"] = _form_or_json(_object({"token": _TEXT, **_CLIENT}, ("token",)))
    resource = "Where to sign in for this server (RFC 9728)."
    return {
        "/register": {"post": register},
        "/token": {"post": token},
        "/revoke": {"post": revoke},
        SERVER_METADATA_PATH: {"get": document("The authorization server (RFC 8414).")},
        RESOURCE_METADATA_PATH: {"get": document(resource)},
        RESOURCE_METADATA_PATH + MCP_PATH: {"get": document(resource)},
    }


def _object(properties: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _form_or_json(schema: Mapping[str, Any]) -> dict[str, Any]:
    content = {"application/x-www-form-urlencoded": {"schema": schema}, **_json(schema)}
    return {"required": True, "content": content}
