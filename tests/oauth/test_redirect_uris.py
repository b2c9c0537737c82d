"""Which redirect URIs may be registered, and which a request may use."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AnyUrl, ValidationError

from hivemem.domain.redirect_uris import (
    redirect_origin,
    redirect_uri_problem,
    redirect_uris_match,
    same_redirect_uri,
    with_parameters,
)

PRIVATE = ("cursor", "vscode")


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1",
        "http://127.0.0.1:51234",
        "http://127.0.0.1:51234/callback?x=1",
        "http://localhost/callback",
        "http://[::1]:8000/",
        "https://agent.example",
        "https://agent.example:8443/a/b?c=d",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "vscode://agent",
        "com.example.app:/callback",
    ],
)
def test_may_be_registered(uri: str) -> None:
    assert redirect_uri_problem(uri, PRIVATE) is None


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "/callback",
        "agent.example/callback",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "zed://agent",
        "http://agent.example/callback",
        "http://127.0.0.1.agent.example/",
        "http://127.1/",
        "http://0.0.0.0/",
        "http://127.0.0.1@agent.example/",
        "https://user@agent.example/",
        "https:///callback",
        "https:callback",
        "https://agent.example/#fragment",
        "https://agent.example/#",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:port/",
        "https://agent.example/a b",
        "https://agent.example/\n",
        "https://agent.example\\@evil.example/",
        "https://ägent.example/",
        "https://agent.example/" + "a" * 2000,
        "http://[::1/",
    ],
)
def test_may_not_be_registered(uri: str) -> None:
    assert redirect_uri_problem(uri, PRIVATE)


@pytest.mark.parametrize(
    ("registered", "asked", "matches"),
    [
        ("http://127.0.0.1", "http://127.0.0.1:51234", True),
        ("http://127.0.0.1:1", "http://127.0.0.1:2/", True),
        ("http://localhost/callback", "http://localhost:3118/callback", True),
        ("http://[::1]/", "http://[::1]:9/", True),
        ("http://LOCALHOST/", "http://localhost:5/", True),
        ("https://agent.example", "https://agent.example/", True),
        ("https://Agent.example/a", "https://agent.example/a", True),
        ("cursor://x/y", "cursor://x/y", True),
        ("http://127.0.0.1/", "http://localhost/", False),
        ("http://127.0.0.1/", "https://127.0.0.1/", False),
        ("http://127.0.0.1/a", "http://127.0.0.1/b", False),
        ("http://127.0.0.1/a", "http://127.0.0.1/a/", False),
        ("http://127.0.0.1/a", "http://127.0.0.1/a?b=c", False),
        ("http://127.0.0.1/", "http://x@127.0.0.1/", False),
        ("http://127.0.0.1/", "http://127.0.0.1#", False),
        ("http://127.0.0.1/", "http://127.0.0.1:0x50/", False),
        ("https://agent.example/", "https://agent.example:8443/", False),
        ("https://agent.example/", "https://agent.example.evil.example/", False),
        ("https://127.0.0.1/", "https://127.0.0.1:8443/", False),
        ("cursor://x/y", "cursor://x/Y", False),
        ("com.example.app:/a", "com.example.app:/b", False),
    ],
)
def test_a_request_uses_what_was_registered_with_any_port_on_loopback(
    registered: str, asked: str, matches: bool
) -> None:
    assert redirect_uris_match(registered, asked) is matches


CHARACTERS = st.sampled_from("/:@#?[]\\%.;,=&~- \t\n\x00aé0123456789")
SOUP = st.builds(
    lambda prefix, middle, rest: prefix + middle + rest,
    st.sampled_from(
        ["", "http://", "http:", "HTTP://", "http://127.0.0.1", "http://127.0.0.1:5000", "http://localhost"]
    ),
    st.text(CHARACTERS, max_size=8),
    st.sampled_from(["", "/", "/callback", "evil.example", "@evil.example/callback", "127.0.0.1/callback"]),
)


@given(SOUP)
@settings(max_examples=50)
def test_whatever_matches_a_loopback_address_leads_to_it_in_every_reading(asked: str) -> None:
    for registered in ("http://127.0.0.1/callback", "http://localhost:5000"):
        if redirect_uris_match(registered, asked):
            host = urlsplit(registered).hostname
            assert urlsplit(asked).hostname == host
            assert AnyUrl(asked).host == host
            assert redirect_uri_problem(asked, ()) is None


@given(SOUP)
@settings(max_examples=50)
def test_what_may_be_registered_is_a_url_for_others_too(uri: str) -> None:
    if redirect_uri_problem(uri, ()) is None:
        try:
            host = AnyUrl(uri).host
        except ValidationError:
            pytest.fail(f"{uri!r} is no URL for others")
        parts = urlsplit(uri)
        assert parts.scheme == "https" or host == parts.hostname


VALUES = st.none() | st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.dictionaries(st.sampled_from(["code", "state", "iss", "error"]), VALUES))
@settings(max_examples=50)
def test_parameters_arrive_as_they_were_and_beside_those_that_were_there(
    parameters: dict[str, str | None],
) -> None:
    given_ones = [(name, value) for name, value in parameters.items() if value is not None]
    for uri, kept in (
        ("http://127.0.0.1:5000", []),
        ("https://agent.example/a?b=&c=%20", [("b", ""), ("c", " ")]),
        ("com.example.app:/callback", []),
    ):
        result = with_parameters(uri, parameters)
        assert parse_qsl(urlsplit(result).query, keep_blank_values=True) == kept + given_ones
        assert urlsplit(result).netloc == urlsplit(uri).netloc


def test_an_address_without_path_gets_one() -> None:
    assert with_parameters("http://127.0.0.1:5000", {"code": "ac_1"}) == "http://127.0.0.1:5000/?code=ac_1"
    assert same_redirect_uri("http://127.0.0.1:5000", "http://127.0.0.1:5000/")
    assert not same_redirect_uri("http://127.0.0.1:5000", "http://127.0.0.1:5001")
    assert not same_redirect_uri("https://a.example/b", "https://a.example/b/")
    assert not same_redirect_uri("http://127.0.0.1:5000", "http://[::1")


def test_people_see_where_they_go() -> None:
    assert redirect_origin("https://agent.example:8443/a?b=c") == "https://agent.example:8443"
    assert redirect_origin("cursor://anysphere/callback?x=1") == "cursor://anysphere/callback"
