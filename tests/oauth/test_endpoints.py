"""The endpoints as programs use them: each rule by itself."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, ProtectedResourceMetadata

from tests.oauth.flow import CHALLENGE, REDIRECT, VERIFIER, Program, hidden, query_of, register
from tests.surfaces.serving import REST, Served, bearer, served

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "hm_get_overview", "arguments": {}},
}


# Metadata and the challenge -----------------------------------------------------------------------


async def test_the_metadata_names_the_server_without_a_slash(api: Served) -> None:
    answer = (await api.anonymous.get("/.well-known/oauth-authorization-server")).json()
    OAuthMetadata.model_validate(answer)
    assert answer["issuer"] == "http://localhost"
    assert answer["code_challenge_methods_supported"] == ["S256"]
    assert answer["token_endpoint_auth_methods_supported"][0] == "none"
    assert answer["authorization_response_iss_parameter_supported"] is True
    assert answer["client_id_metadata_document_supported"] is False
    for name in ("authorization", "token", "registration", "revocation"):
        path = answer[f"{name}_endpoint"].removeprefix(answer["issuer"])
        assert (await api.anonymous.get(path)).status_code != 404


@pytest.mark.parametrize("suffix", ["", "/mcp"])
async def test_the_resource_names_its_authorization_server(api: Served, suffix: str) -> None:
    answer = (await api.anonymous.get(f"/.well-known/oauth-protected-resource{suffix}")).json()
    ProtectedResourceMetadata.model_validate(answer)
    assert answer["resource"] == "http://localhost/mcp"
    assert answer["authorization_servers"] == ["http://localhost"]
    assert answer["scopes_supported"] == ["memory:read", "memory:write", "memory:admin"]
    assert answer["bearer_methods_supported"] == ["header"]


async def test_without_a_public_url_the_request_names_the_server(api: Served) -> None:
    headers = {"Host": "127.0.0.1:8477"}
    answer = (await api.anonymous.get("/.well-known/oauth-authorization-server", headers=headers)).json()
    assert answer["issuer"] == "http://127.0.0.1:8477"
    refused = await api.anonymous.get(
        "/.well-known/oauth-authorization-server", headers={"Host": "evil.example"}
    )
    assert refused.status_code == 421


async def test_a_public_url_is_what_everybody_is_told(tmp_path: Path) -> None:
    async with served(tmp_path, public_url="https://memory.example/") as api:
        for host in ("localhost", "memory.example"):
            headers = {"Host": host}
            answer = (
                await api.anonymous.get("/.well-known/oauth-authorization-server", headers=headers)
            ).json()
            assert answer["issuer"] == "https://memory.example"
            response = await api.anonymous.post("/mcp", json=CALL, headers=headers)
            assert (
                'resource_metadata="https://memory.example/.well-known'
                in response.headers["www-authenticate"]
            )
        program = await Program.register(api.anonymous)
        decided = await program.decide(
            await program.consent_page(api.key, resource="https://memory.example/mcp")
        )
        assert query_of(decided)["iss"] == "https://memory.example"
        refused = await program.authorize(resource="http://localhost/mcp")
        assert query_of(refused)["error"] == "invalid_target"


async def test_a_host_without_credential_learns_where_to_sign_in(api: Served) -> None:
    metadata = 'resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"'
    scope = 'scope="memory:read memory:write"'
    response = await api.anonymous.post("/mcp", json=CALL)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == f"Bearer {metadata}, {scope}"
    assert response.json()["error"] == "unauthorized"
    for wrong in ("at_wrong", "hm_wrong", "wrong"):
        response = await api.anonymous.post("/mcp", json=CALL, headers=bearer(wrong))
        assert response.headers["www-authenticate"] == f'Bearer error="invalid_token", {metadata}, {scope}'


# Registration -------------------------------------------------------------------------------------


async def test_a_program_registers_and_is_told_what_it_is(api: Served) -> None:
    response = await register(api.anonymous, client_uri="https://agent.example/", scope="memory:read openid")
    assert response.status_code == 201
    answer = response.json()
    OAuthClientInformationFull.model_validate(answer)
    assert answer["redirect_uris"] == [REDIRECT]
    assert answer["scope"] == "memory:read"
    assert answer["client_name"] == "Agent"
    assert answer["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in answer
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT, "http://agent.example/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": None}, "invalid_redirect_uri"),
        ({"redirect_uris": [1]}, "invalid_redirect_uri"),
        ({"redirect_uris": "http://127.0.0.1"}, "invalid_redirect_uri"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"),
        ({"grant_types": ["refresh_token"]}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
        ({"client_name": 5}, "invalid_client_metadata"),
        ({"client_uri": "no address"}, "invalid_client_metadata"),
    ],
)
async def test_a_registration_that_cannot_be_is_refused(
    api: Served, changes: dict[str, Any], error: str
) -> None:
    response = await register(api.anonymous, **changes)
    assert response.status_code == 400
    assert response.json()["error"] == error
    assert response.json()["error_description"]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"\xff", b"{}" + b" " * 70_000, b'{"redirect_uris": null}']
)
async def test_a_registration_is_a_small_json_object(api: Served, body: bytes) -> None:
    response = await api.anonymous.post(
        "/register", content=body, headers={"Content-Type": "application/json"}
    )
    assert response.status_code in (400, 413)
    assert response.json()["error"].startswith("invalid_")


async def test_registrations_from_one_address_are_limited(tmp_path: Path) -> None:
    async with served(tmp_path, oauth_registrations_per_hour=2) as api:
        assert [(await register(api.anonymous)).status_code for _ in range(3)] == [201, 201, 429]
        refused = await register(api.anonymous)
        assert 1 <= int(refused.headers["retry-after"]) <= 1800
        assert set(refused.json()) == {"error", "error_description"}


# The request for access ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"scope": "openid"}, "invalid_scope"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": "http://localhost/other"}, "invalid_target"),
    ],
)
async def test_a_wrong_request_goes_back_to_the_program(
    program: Program, changes: dict[str, str | None], error: str
) -> None:
    response = await program.authorize(**changes)
    assert response.headers["location"].startswith(f"{REDIRECT}/?")
    told = query_of(response)
    assert (told["error"], told["state"], told["iss"]) == (error, "a state & more", "http://localhost")
    assert told["error_description"]


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "client_none"},
        {"client_id": None},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": "http://127.0.0.1:51234/other"},
        {"redirect_uri": "http://127.0.0.1:51234@evil.example/"},
        {"redirect_uri": "javascript:alert(1)"},
        {"client_id": "https://agent.example/client.json"},
    ],
)
async def test_nobody_is_sent_to_an_address_that_is_not_the_programs(
    program: Program, changes: dict[str, str | None]
) -> None:
    response = await program.authorize(**changes)
    assert response.status_code == 400
    assert "location" not in response.headers
    assert response.headers["content-type"].startswith("text/html")


async def test_a_redirect_uri_that_is_sent_twice_is_none(program: Program) -> None:
    asked = {"client_id": program.client_id, "redirect_uri": [REDIRECT, "http://127.0.0.1:1"]}
    response = await program.http.get("/authorize", params=asked)
    assert response.status_code == 400
    assert "location" not in response.headers


async def test_other_parameters_come_once_too(program: Program) -> None:
    asked = {"client_id": program.client_id, "redirect_uri": REDIRECT, "response_type": ["code", "code"]}
    assert query_of(await program.http.get("/authorize", params=asked))["error"] == "invalid_request"


@pytest.mark.parametrize("port", ["", ":1", ":51234", ":65535"])
async def test_the_port_of_a_loopback_address_is_free_and_the_path_is_added(
    api: Served, program: Program, port: str
) -> None:
    uri = f"http://127.0.0.1{port}"
    decided = await program.decide(await program.consent_page(api.key, redirect_uri=uri))
    assert decided.headers["location"].startswith(f"{uri}/?code=ac_")
    for sent in (uri, f"{uri}/"):
        code = await program.code(api.key, redirect_uri=uri)
        assert (await program.exchange(code, redirect_uri=sent)).status_code == 200


async def test_a_program_may_send_no_state_and_no_redirect_uri(api: Served, program: Program) -> None:
    decided = await program.decide(await program.consent_page(api.key, state=None, redirect_uri=None))
    assert sorted(query_of(decided)) == ["code", "iss"]
    assert (await program.exchange(query_of(decided)["code"], redirect_uri=None)).status_code == 200


async def test_the_answer_has_code_state_and_issuer(api: Served, program: Program) -> None:
    told = query_of(await program.decide(await program.consent_page(api.key)))
    assert sorted(told) == ["code", "iss", "state"]
    assert (told["state"], told["iss"]) == ("a state & more", "http://localhost")


async def test_a_program_gets_the_scopes_that_it_asks_for_and_registered(api: Served) -> None:
    reader = await Program.register(api.anonymous, scope="memory:read")
    assert (await reader.tokens(api.key, scope="memory:read memory:write"))["scope"] == "memory:read"
    asking = await Program.register(api.anonymous)
    assert (await asking.tokens(api.key))["scope"] == "memory:read memory:write"
    everything = "memory:read memory:write memory:admin offline_access"
    assert (await asking.tokens(api.key, scope=everything))["scope"] == "memory:read memory:write"
    owner = await api.services.access.local_principal()
    administers, _ = await api.services.keys.create(owner, name="admin", admin=True)
    granted = (await asking.tokens(administers, scope=everything))["scope"]
    assert granted == "memory:read memory:write memory:admin"


async def test_a_request_may_be_posted(program: Program) -> None:
    sent = {
        "response_type": "code",
        "client_id": program.client_id,
        "redirect_uri": REDIRECT,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    assert "request" in query_of(await program.http.post("/authorize", data=sent))


# Tokens -------------------------------------------------------------------------------------------


async def test_the_token_endpoint_takes_json_and_forms(api: Served, program: Program) -> None:
    sent = {
        "grant_type": "authorization_code",
        "client_id": program.client_id,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    }
    by_json = await api.anonymous.post(
        "/token", json={**sent, "code": await program.code(api.key), "scope": None}
    )
    by_form = await api.anonymous.post("/token", data={**sent, "code": await program.code(api.key)})
    for response in (by_json, by_form):
        assert response.status_code == 200, response.text
        answer = response.json()
        assert sorted(answer) == ["access_token", "expires_in", "refresh_token", "scope", "token_type"]
        assert answer["token_type"] == "Bearer"
        assert response.headers["cache-control"] == "no-store"


async def test_an_access_token_works_like_a_key_on_rest_and_mcp(api: Served, program: Program) -> None:
    headers = bearer((await program.tokens(api.key))["access_token"])
    body = {"key": "fact_a", "description": "By OAuth."}
    stored = await api.anonymous.post(f"{REST}/store", json=body, headers=headers)
    assert stored.status_code == 200
    assert (await api.client.post(f"{REST}/nodes", json={"keys": ["fact_a"]})).json()["nodes"]["fact_a"]
    called = await api.anonymous.post("/mcp", json=CALL, headers=headers)
    assert called.status_code == 200
    assert called.json()["result"]["structuredContent"]["nodes"] == 1


async def test_a_token_without_the_scope_cannot_write(api: Served, program: Program) -> None:
    headers = bearer((await program.tokens(api.key, scope="memory:read"))["access_token"])
    refused = await api.anonymous.post(
        f"{REST}/store", json={"key": "a", "description": "b"}, headers=headers
    )
    assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    assert (await api.anonymous.get(f"{REST}/overview", headers=headers)).status_code == 200


async def test_a_token_of_a_read_only_key_cannot_write(api: Served, program: Program) -> None:
    tokens = await program.tokens(api.read_only_key)
    assert tokens["scope"] == "memory:read"
    headers = bearer(tokens["access_token"])
    refused = await api.anonymous.post(
        f"{REST}/store", json={"key": "a", "description": "b"}, headers=headers
    )
    assert refused.status_code == 403


async def test_a_token_for_another_address_is_refused(api: Served, program: Program) -> None:
    headers = bearer((await program.tokens(api.key))["access_token"])
    for host, status in (("localhost", 200), ("127.0.0.1", 200), ("localhost:9", 401)):
        response = await api.anonymous.get(f"{REST}/overview", headers={**headers, "Host": host})
        assert response.status_code == status, host


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"code": "ac_wrong"}, 400, "invalid_grant"),
        ({"code": None}, 400, "invalid_request"),
        ({"code_verifier": "x" * 43}, 400, "invalid_grant"),
        ({"code_verifier": None}, 400, "invalid_request"),
        ({"redirect_uri": "http://127.0.0.1:1"}, 400, "invalid_grant"),
        ({"redirect_uri": None}, 400, "invalid_grant"),
        ({"resource": "https://other.example/"}, 400, "invalid_target"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": None}, 400, "invalid_request"),
        ({"client_id": "client_none"}, 401, "invalid_client"),
        ({"client_id": None}, 400, "invalid_request"),
    ],
)
async def test_a_wrong_exchange_is_refused(
    api: Served, program: Program, changes: dict[str, str | None], status: int, error: str
) -> None:
    code = await program.code(api.key)
    response = await program.exchange(**{"code": code, **changes})  # type: ignore[arg-type]
    assert (response.status_code, response.json()["error"]) == (status, error)
    assert response.json()["error_description"]
    assert (await program.exchange(code)).status_code == 200


async def test_a_code_that_is_used_again_ends_its_tokens(api: Served, program: Program) -> None:
    code = await program.code(api.key)
    tokens = (await program.exchange(code)).json()
    again = await program.exchange(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    response = await api.anonymous.get(f"{REST}/overview", headers=bearer(tokens["access_token"]))
    assert response.status_code == 401


async def test_a_refresh_gives_new_tokens(api: Served, program: Program) -> None:
    tokens = await program.tokens(api.key)
    response = await program.refresh(tokens["refresh_token"], resource="http://localhost/mcp")
    assert response.status_code == 200
    following = response.json()
    assert following["refresh_token"] != tokens["refresh_token"]
    overview = await api.anonymous.get(f"{REST}/overview", headers=bearer(following["access_token"]))
    assert overview.status_code == 200
    for wrong in (tokens["access_token"], "rt_wrong"):
        assert (await program.refresh(wrong)).json()["error"] == "invalid_grant"
    assert (await program.refresh(following["refresh_token"], scope="memory:read")).json()[
        "scope"
    ] == "memory:read"
    assert (await program.refresh(following["refresh_token"], scope="openid")).json()[
        "error"
    ] == "invalid_scope"


async def test_a_program_uses_the_grant_types_that_it_registered(api: Served) -> None:
    program = await Program.register(api.anonymous, grant_types=["authorization_code"])
    assert "refresh_token" not in await program.tokens(api.key)
    assert (await program.refresh("rt_any")).json()["error"] == "unauthorized_client"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", None])
async def test_a_program_with_a_secret_shows_it_in_header_or_body(api: Served, method: str | None) -> None:
    program = await Program.register(api.anonymous, token_endpoint_auth_method=method)
    secret = program.registration["client_secret"]
    assert program.registration["client_secret_expires_at"] == 0
    assert program.registration["token_endpoint_auth_method"] == method or method is None
    stored = await api.services.store.oauth_client(program.client_id)
    assert secret not in repr(stored)

    async def status(**given: Any) -> int:
        sent = {
            "grant_type": "authorization_code",
            "code": await program.code(api.key),
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
        }
        data = {**sent, **given.get("data", {})}
        return (await api.anonymous.post("/token", data=data, headers=given.get("headers", {}))).status_code

    identity = {"client_id": program.client_id}
    assert await status(data={**identity, "client_secret": secret}) == 200
    assert await status(headers=basic(program.client_id, secret)) == 200
    assert await status(data=identity, headers=basic(program.client_id, secret)) == 200
    assert await status(data=identity) == 401
    assert await status(data={**identity, "client_secret": "wrong"}) == 401
    assert await status(headers=basic(program.client_id, "wrong")) == 401
    assert await status(data={"client_id": "client_other"}, headers=basic(program.client_id, secret)) == 401
    assert await status(headers={"Authorization": "Basic ?"}) == 401


async def test_a_public_program_may_name_itself_in_the_header(api: Served, program: Program) -> None:
    sent = {
        "grant_type": "authorization_code",
        "code": await program.code(api.key),
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    }
    response = await api.anonymous.post("/token", data=sent, headers=basic(program.client_id, ""))
    assert response.status_code == 200
    wrong = await api.anonymous.post("/token", data=sent, headers=basic("client_none", ""))
    assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, 'Basic realm="hivemem"')


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
async def test_a_public_program_revokes_without_a_secret(api: Served, program: Program, kind: str) -> None:
    tokens = await program.tokens(api.key)
    sent = {"token": tokens[kind], "client_id": program.client_id, "token_type_hint": "anything"}
    response = await api.anonymous.post("/revoke", data=sent)
    assert (response.status_code, response.json()) == (200, {})
    overview = await api.anonymous.get(f"{REST}/overview", headers=bearer(tokens["access_token"]))
    assert overview.status_code == 401
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    unknown = await api.anonymous.post("/revoke", json={**sent, "token": "at_unknown"})
    assert unknown.status_code == 200


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/x-www-form-urlencoded", b"a=\xff"),
        ("application/x-www-form-urlencoded", b"a=%ff"),
        ("application/x-www-form-urlencoded", b"a=1&" * 51),
        ("application/x-www-form-urlencoded", b"client_id=a&client_id=b"),
        ("application/json", b'{"client_id": 5}'),
        ("application/json", b"[]"),
        ("multipart/form-data; boundary=x", b"--x--"),
        ("text/plain", b"client_id=a"),
    ],
)
async def test_bodies_that_cannot_be_read_are_errors_of_oauth(
    api: Served, content_type: str, body: bytes
) -> None:
    response = await api.anonymous.post("/token", content=body, headers={"Content-Type": content_type})
    assert response.status_code in (400, 415)
    assert response.json()["error"] == "invalid_request"


@pytest.mark.parametrize("odd", ["\x00", "a\x00b", "é", "\ud800", "☕" * 300])
async def test_odd_characters_are_answered(api: Served, program: Program, odd: str) -> None:
    body = json.dumps({"client_id": program.client_id, "grant_type": "refresh_token", "refresh_token": odd})
    for content in (body, body.replace(program.client_id, json.dumps(odd)[1:-1])):
        response = await api.anonymous.post(
            "/token", content=content, headers={"Content-Type": "application/json"}
        )
        assert response.status_code in (400, 401), response.text
    named = await register(api.anonymous, client_name=f"a{odd}", grant_types=["authorization_code", odd])
    assert named.status_code in (201, 400)
    if odd != "\ud800":
        assert (await program.authorize(client_id=odd)).status_code == 400
        decided = await program.decide(await program.consent_page(api.key, state=odd))
        assert query_of(decided)["state"] == odd


async def test_a_revoked_key_ends_what_was_granted_with_it(api: Served, program: Program) -> None:
    owner = await api.services.access.local_principal()
    secret, key = await api.services.keys.create(owner, name="short")
    tokens = await program.tokens(secret)
    await api.services.keys.revoke(owner, key.key_id)
    overview = await api.anonymous.get(f"{REST}/overview", headers=bearer(tokens["access_token"]))
    assert overview.status_code == 401
    page = await program.consent_page(api.key)
    assert hidden(page, "consent")


def basic(name: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}
