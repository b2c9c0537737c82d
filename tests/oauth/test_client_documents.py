"""Programs that are named by a document: what is fetched, and what never is."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hivemem.errors import InvalidInput
from hivemem.surfaces.oauth.client_documents import (
    MAX_BYTES,
    ClientDocuments,
    is_document_address,
    is_public,
)
from hivemem.surfaces.oauth.routes import oauth_routes
from tests.oauth.flow import REDIRECT, Program, query_of
from tests.support.builders import FixedClock
from tests.surfaces.serving import Served, served

ADDRESS = "https://agent.example/oauth/client.json"
DOCUMENT: dict[str, Any] = {
    "client_id": ADDRESS,
    "client_name": "Agent\u202e",
    "redirect_uris": ["http://127.0.0.1/", "https://agent.example/callback"],
    "token_endpoint_auth_method": "none",
}


async def public(host: str, port: int) -> list[str]:
    return ["93.184.216.34"]


class Web:
    """The internet, with one document on it."""

    def __init__(
        self, answer: Callable[[httpx2.Request], httpx2.Response] | None = None, **changes: Any
    ) -> None:
        document = {name: value for name, value in {**DOCUMENT, **changes}.items() if value is not None}
        self.answer = answer or (lambda _: httpx2.Response(200, json=document))
        self.requests: list[httpx2.Request] = []
        self.clock = FixedClock()
        self.documents = ClientDocuments(
            self.clock, (), resolve=public, transport=httpx2.MockTransport(self._answer)
        )

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return self.answer(request)


@pytest.mark.parametrize(
    ("client_id", "fits"),
    [
        (ADDRESS, True),
        ("https://agent.example:8443/client?x=1", True),
        ("http://agent.example/client.json", False),
        ("https://agent.example", False),
        ("https://agent.example/", False),
        ("https://agent.example/a/../b", False),
        ("https://agent.example/a#b", False),
        ("https://me@agent.example/a", False),
        ("https://agent.example:x/a", False),
        ("https:///a", False),
        ("https://agent.example/" + "a" * 500, False),
        ("https://agent.example/a\n", False),
        ("client_one", False),
    ],
)
def test_an_address_of_a_document_has_one_form(client_id: str, fits: bool) -> None:
    assert is_document_address(client_id) is fits


async def test_a_document_is_fetched_from_the_checked_address_under_its_name() -> None:
    web = Web()
    client = await web.documents.client(ADDRESS)
    assert client.client_id == ADDRESS
    assert client.name == f"Agent ({ADDRESS})"
    assert client.redirect_uris == tuple(DOCUMENT["redirect_uris"])
    assert client.secret_hash is None
    [request] = web.requests
    assert str(request.url) == "https://93.184.216.34/oauth/client.json"
    assert request.headers["host"] == "agent.example"
    assert request.extensions["sni_hostname"] == "agent.example"
    assert "authorization" not in request.headers


async def test_a_document_is_kept_for_five_minutes() -> None:
    web = Web()
    first = await web.documents.client(ADDRESS)
    web.clock.advance(minutes=5, microseconds=-1)
    assert await web.documents.client(ADDRESS) is first
    web.clock.advance(microseconds=1)
    await web.documents.client(ADDRESS)
    assert len(web.requests) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "https://agent.example/other"},
        {"client_id": None},
        {"redirect_uris": None},
        {"redirect_uris": []},
        {"redirect_uris": "http://127.0.0.1/"},
        {"redirect_uris": ["http://agent.example/"]},
        {"redirect_uris": ["https://agent.example/", "javascript:alert(1)"]},
        {"client_secret": "x"},
        {"token_endpoint_auth_method": "client_secret_post"},
    ],
)
async def test_a_document_that_does_not_describe_its_public_program_is_refused(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(InvalidInput, match="the document"):
        await Web(**changes).documents.client(ADDRESS)


def too_large(_: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, content=json.dumps(DOCUMENT).encode() + b" " * MAX_BYTES)


def unreachable(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("no route")


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: httpx2.Response(404, json=DOCUMENT),
        lambda _: httpx2.Response(302, headers={"Location": "http://169.254.169.254/"}),
        lambda _: httpx2.Response(200, content=b"<html>"),
        lambda _: httpx2.Response(200, content=b"[]"),
        too_large,
        unreachable,
    ],
)
async def test_an_answer_that_is_no_document_is_refused(
    answer: Callable[[httpx2.Request], httpx2.Response],
) -> None:
    web = Web(answer)
    with pytest.raises(InvalidInput):
        await web.documents.client(ADDRESS)
    assert len(web.requests) == 1


@pytest.mark.parametrize(
    ("address", "answers"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("::", False),
        ("fd00::1", False),
        ("fe80::1%eth0", False),
        ("::ffff:127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("::127.0.0.1", False),
        ("fec0::1", False),
        ("64:ff9b::127.0.0.1", False),
        ("64:ff9b::93.184.216.34", True),
        ("192.0.0.192", False),
    ],
)
def test_only_public_addresses_are_reached(address: str, answers: bool) -> None:
    assert is_public(address) is answers


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "localhost", "2130706433", "a..b", "...", "a" * 64 + ".example"]
)
async def test_this_machine_is_not_fetched_from(host: str) -> None:
    documents = ClientDocuments(FixedClock(), (), transport=httpx2.MockTransport(too_large))
    with pytest.raises(InvalidInput):
        await documents.client(f"https://{host}/client.json")


async def test_the_certificate_is_checked_for_the_name_not_the_address() -> None:
    """The real transport hands the name to TLS; a wrong certificate would end the handshake there."""
    asked: list[Any] = []

    class Context(ssl.SSLContext):
        def wrap_bio(
            self,
            incoming: Any,
            outgoing: Any,
            server_side: bool = False,
            server_hostname: Any = None,
            *_: Any,
        ) -> Any:
            asked.append((server_hostname, self.check_hostname, self.verify_mode))
            raise ssl.SSLCertVerificationError("stop here")

    transport = httpx2.AsyncHTTPTransport(verify=Context(ssl.PROTOCOL_TLS_CLIENT))
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    documents = ClientDocuments(FixedClock(), (), resolve=here, transport=transport)
    with pytest.raises(InvalidInput):
        await documents.client(f"https://agent.example:{port}/client.json")
    server.close()
    await server.wait_closed()
    assert asked == [(b"agent.example", True, ssl.CERT_REQUIRED)]


async def use_documents(api: Served, web: Web) -> Program:
    """A program that is named by its document, at a server that reads documents."""
    api.app.router.routes[:0] = oauth_routes(api.services, web.documents)
    return Program(api.anonymous, {"client_id": ADDRESS})


async def test_a_program_signs_in_by_its_document(api: Served) -> None:
    web = Web()
    program = await use_documents(api, web)
    metadata = (await api.anonymous.get("/.well-known/oauth-authorization-server")).json()
    assert metadata["client_id_metadata_document_supported"] is True
    page = await program.consent_page(api.key)
    assert f"<strong>Agent ({ADDRESS})</strong>" in page.text
    code = query_of(await program.decide(page))["code"]
    assert (await program.exchange(code)).status_code == 200
    assert (await program.authorize(redirect_uri="https://evil.example/")).status_code == 400
    await api.services.oauth.revoke_client(ADDRESS)
    assert (await program.authorize()).status_code == 400


async def test_documents_are_off_unless_they_are_wanted(tmp_path: Path) -> None:
    for setting, supported in (("off", False), ("on", True)):
        async with served(tmp_path / setting, oauth_client_documents=setting) as api:
            metadata = (await api.anonymous.get("/.well-known/oauth-authorization-server")).json()
            assert metadata["client_id_metadata_document_supported"] is supported
            refused = await Program(api.anonymous, {"client_id": "https://127.0.0.1/x"}).authorize()
            assert refused.status_code == (422 if supported else 400)
            assert REDIRECT not in refused.headers.get("location", "")
