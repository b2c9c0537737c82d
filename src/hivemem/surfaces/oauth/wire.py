"""Parameters and errors of the OAuth endpoints as RFC 6749 wants them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from hivemem.domain.rates import Bucket
from hivemem.errors import HivememError, InvalidInput, LimitExceeded, Unavailable
from hivemem.surfaces.envelope import HttpRefusal, answer_headers, http_status
from hivemem.surfaces.redaction import without_credentials
from hivemem.surfaces.rest.body import json_object, read_body
from hivemem.surfaces.wire_json import dump_json

MAX_BODY_BYTES = 64 * 1024
_MAX_PARAMETERS = 50
_SURROGATE = re.compile("[\ud800-\udfff]")
_ERROR_CODES = ("invalid_grant", "invalid_scope", "invalid_redirect_uri", "invalid_client_metadata")

Endpoint = Callable[[Request], Awaitable[Response]]
AddressLimit = Callable[[Request, Bucket], Awaitable[None]]
"""Lets a request pass whose network address is within the limit of a bucket, or raises `RateLimited`."""


class OAuthError(HivememError):
    """A refusal with one of the error codes of the OAuth specifications."""

    def __init__(self, code: str, message: str, *, status: int = 400, challenge: str | None = None) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.challenge = challenge


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What was sent, empty values left out. Only `resource` may be sent more than once (RFC 8707)."""

    values: Mapping[str, str]
    resources: tuple[str, ...]
    repeated: frozenset[str]

    def get(self, name: str) -> str | None:
        """The value of a parameter, None when it was not sent, or sent more than once."""
        return None if name in self.repeated else self.values.get(name)

    def required(self, name: str) -> str:
        """The value of a parameter.

        Raises:
            OAuthError: Not sent.
        """
        value = self.get(name)
        if value is None:
            raise OAuthError("invalid_request", f"the parameter {name!r} is missing.")
        return value

    def check_repetitions(self) -> None:
        """Let parameters pass of which none is repeated.

        Raises:
            OAuthError: One is.
        """
        if self.repeated:
            raise OAuthError(
                "invalid_request", f"{min(self.repeated)!r} was sent more than once; send it once."
            )


def query_parameters(request: Request) -> Parameters:
    """The parameters of the address."""
    return _parameters(request.query_params.multi_items())


async def body_parameters(request: Request) -> Parameters:
    """The parameters of a form, or the members of a JSON object.

    Raises:
        OAuthError: Neither of the two, or a member is no text.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/x-www-form-urlencoded":
        body = await read_body(request, MAX_BODY_BYTES)
        try:
            pairs = parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_MAX_PARAMETERS,
            )
        except ValueError as error:
            raise OAuthError("invalid_request", "the form cannot be read.") from error
        return _parameters(pairs)
    pairs = []
    for name, value in (await json_object(request, MAX_BODY_BYTES)).items():
        items = value if name == "resource" and isinstance(value, list) else [value]
        for item in items:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(item, str):
                pairs.append((name, item))
            elif item is not None:
                raise OAuthError("invalid_request", f"the parameter {name!r} is not a text.")
    return _parameters(pairs)


def oauth_endpoint(endpoint: Endpoint) -> Endpoint:
    """`endpoint`, its refusals answered as `error` and `error_description`."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except OAuthError as error:
            headers = {"WWW-Authenticate": error.challenge} if error.challenge else {}
            return error_answer(error.status, error.code, error.message, headers)
        except Unavailable as error:
            return error_answer(
                http_status(error), "temporarily_unavailable", error.message, answer_headers(error)
            )
        except (HttpRefusal, LimitExceeded) as error:
            return error_answer(http_status(error), "invalid_request", error.message, answer_headers(error))
        except InvalidInput as error:
            code = error.code if error.code in _ERROR_CODES else "invalid_request"
            return error_answer(400, code, error.message, {})

    return answer


def json_answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(dump_json(body), status, headers, media_type="application/json")


def error_answer(status: int, error: str, description: str, headers: Mapping[str, str]) -> Response:
    """An error of RFC 6749 (5.2)."""
    return json_answer(
        {"error": error, "error_description": without_credentials(description)}, status, headers
    )


def _parameters(pairs: list[tuple[str, str]]) -> Parameters:
    sent = [(name, value) for name, value in pairs if value]
    for _, value in sent:
        if _SURROGATE.search(value):
            raise OAuthError("invalid_request", "a parameter holds half a character (a lone surrogate).")
    values = {name: value for name, value in sent if name != "resource"}
    counts = Counter(name for name, _ in sent if name != "resource")
    return Parameters(
        values=values,
        resources=tuple(value for name, value in sent if name == "resource"),
        repeated=frozenset(name for name, count in counts.items() if count > 1),
    )
