"""Programs, sign-ins, grants, codes and tokens of OAuth."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hivemem.domain.access import Scope, hash_api_key
from hivemem.domain.oauth import ClientAuthentication, Identity, Token, TokenKind, TokenState
from hivemem.ports.store import Store
from tests.conformance.store.backends import Backend
from tests.support.builders import (
    api_key,
    authorization_code,
    grant,
    graph,
    minutes,
    oauth_client,
    sign_in,
    token,
    user,
)

CODE = authorization_code().hash
REFRESH = token(
    "rt_1", kind=TokenKind.REFRESH, expires_at=minutes(9000), scopes=("memory:read", "memory:write")
)


@pytest.fixture
async def granted(store: Store) -> Store:
    """A store with a grant and its unused code."""
    await fill(store)
    return store


async def fill(store: Store) -> None:
    await store.add_user(user(), graph())
    await store.add_key(api_key())
    await store.put_oauth_client(oauth_client())
    await store.add_sign_in(sign_in())
    assert await store.allow_sign_in(sign_in().hash, grant(), authorization_code())


async def test_an_empty_store_knows_no_secret(store: Store) -> None:
    assert await store.oauth_client("client_one") is None
    assert await store.sign_in(CODE) is None
    assert await store.authorization_code(CODE) is None
    assert await store.oauth_token(CODE) is None
    assert await store.grants("user_one") == []
    assert not await store.end_sign_in(CODE)
    assert not await store.exchange_code(CODE, [token()], minutes(1))
    assert not await store.exchange_refresh_token(CODE, [token()], minutes(1), minutes(0))
    await store.revoke_grant("grant_none", minutes(1))
    await store.revoke_oauth_client("client_none", minutes(1))


async def test_a_program_says_something_new_of_itself_and_stays_revoked(store: Store) -> None:
    first = oauth_client("https://agent.example/client", secret_hash="5" * 64)
    await store.put_oauth_client(first)
    assert await store.oauth_client(first.client_id) == first
    changed = replace(
        first,
        name="",
        redirect_uris=(),
        grant_types=("authorization_code",),
        scopes=(),
        authentication=ClientAuthentication.HEADER,
        secret_hash=None,
    )
    await store.put_oauth_client(replace(changed, created_at=minutes(9)))
    assert await store.oauth_client(first.client_id) == changed
    await store.revoke_oauth_client(first.client_id, minutes(3))
    await store.revoke_oauth_client(first.client_id, minutes(4))
    await store.put_oauth_client(first)
    assert await store.oauth_client(first.client_id) == replace(first, revoked_at=minutes(3))


async def test_a_sign_in_knows_the_last_one_who_signed_in_and_ends_once(store: Store) -> None:
    await store.put_oauth_client(oauth_client())
    begun = sign_in()
    await store.add_sign_in(begun)
    await store.add_sign_in(begun)
    assert await store.sign_in(begun.hash) == begun
    for key_id in ("1" * 12, None):
        identity = Identity(user_id="user_one", graph_id="graph_one", scope=Scope.MEMBER, key_id=key_id)
        assert await store.identify(begun.hash, identity, f"consent {key_id}")
        known = replace(begun, identity=identity, consent_hash=f"consent {key_id}")
        assert await store.sign_in(begun.hash) == known
    assert await store.end_sign_in(begun.hash)
    assert not await store.end_sign_in(begun.hash)
    assert not await store.identify(begun.hash, identity, "late")
    assert await store.sign_in(begun.hash) is None


async def test_a_sign_in_becomes_one_grant(granted: Store) -> None:
    assert await granted.sign_in(sign_in().hash) is None
    assert await granted.authorization_code(CODE) == (authorization_code(), grant())
    other = authorization_code("ac_2", "grant_two")
    assert not await granted.allow_sign_in(sign_in().hash, grant("grant_two"), other)
    assert await granted.authorization_code(other.hash) is None
    assert await granted.grants("user_one") == [grant()]
    assert await granted.grants("user_two") == []


async def test_grants_are_listed_newest_first(granted: Store) -> None:
    for number, at in enumerate((2, 1, 2)):
        begun = sign_in(f"another {number}")
        await granted.add_sign_in(begun)
        late = grant(f"grant_{number}", created_at=minutes(at), key_id=None)
        await granted.allow_sign_in(begun.hash, late, authorization_code(f"code {number}", late.grant_id))
    listed = [one.grant_id for one in await granted.grants("user_one")]
    assert listed == ["grant_2", "grant_0", "grant_1", "grant_one"]


async def test_of_many_exchanges_of_a_code_one_succeeds(granted: Store) -> None:
    pairs = [
        [token(f"at_{number}"), replace(REFRESH, hash=hash_api_key(f"rt_{number}"))] for number in range(8)
    ]
    results = await asyncio.gather(*(granted.exchange_code(CODE, pair, minutes(1)) for pair in pairs))
    assert sorted(results) == [False] * 7 + [True]
    found = [[await granted.oauth_token(one.hash) for one in pair] for pair in pairs]
    assert [all(states) for states in found] == results
    assert [any(states) for states in found] == results
    assert await granted.authorization_code(CODE) == (authorization_code(used_at=minutes(1)), grant())


async def test_a_token_comes_with_all_that_can_end_it(granted: Store) -> None:
    await granted.exchange_code(CODE, [token(), REFRESH], minutes(1))
    state = TokenState(token=token(), grant=grant(), client_revoked_at=None, key=api_key())
    assert await granted.oauth_token(token().hash) == state
    assert await granted.oauth_token(REFRESH.hash) == replace(state, token=REFRESH)
    await granted.revoke_oauth_client("client_one", minutes(2))
    await granted.revoke_grant("grant_one", minutes(3))
    await granted.revoke_grant("grant_one", minutes(9))
    await granted.revoke_key(api_key().key_id, minutes(4))
    assert await granted.oauth_token(token().hash) == TokenState(
        token=token(),
        grant=grant(revoked_at=minutes(3)),
        client_revoked_at=minutes(2),
        key=api_key(revoked_at=minutes(4)),
    )


async def test_a_grant_may_have_no_key(granted: Store) -> None:
    begun, own = sign_in("another"), grant("grant_two", key_id=None)
    await granted.add_sign_in(begun)
    await granted.allow_sign_in(begun.hash, own, authorization_code("ac_2", "grant_two"))
    await granted.exchange_code(hash_api_key("ac_2"), [token(grant_id="grant_two")], minutes(1))
    assert await granted.oauth_token(token().hash) == TokenState(
        token=token(grant_id="grant_two"), grant=own, client_revoked_at=None, key=None
    )


async def test_a_refresh_token_may_be_used_again_for_a_while(granted: Store) -> None:
    await granted.exchange_code(CODE, [REFRESH], minutes(1))

    async def refresh(name: str, at: float, reusable_from: float) -> bool:
        return await granted.exchange_refresh_token(
            REFRESH.hash, [token(name)], minutes(at), minutes(reusable_from)
        )

    assert await refresh("at_a", 10, 9.5)
    assert await refresh("at_b", 10.5, 10)
    assert not await refresh("at_c", 10.6, 10.1)
    state = await granted.oauth_token(REFRESH.hash)
    assert state is not None
    assert state.token.used_at == minutes(10)
    found = [await granted.oauth_token(hash_api_key(name)) is not None for name in ("at_a", "at_b", "at_c")]
    assert found == [True, True, False]


async def test_what_has_no_use_is_forgotten(granted: Store) -> None:
    await granted.exchange_code(CODE, [token(expires_at=minutes(60)), REFRESH], minutes(1))
    for number, created_at in enumerate((minutes(0), minutes(2), minutes(0), minutes(0))):
        await granted.put_oauth_client(oauth_client(f"client_{number}", created_at=created_at))
    await granted.revoke_oauth_client("client_2", minutes(1))
    await granted.add_sign_in(sign_in("waiting", "client_3", expires_at=minutes(61)))
    await granted.add_sign_in(sign_in("late", "client_0", expires_at=minutes(60)))
    await granted.drop_stale_oauth(minutes(60), minutes(1))
    names = ("client_one", "client_0", "client_1", "client_2", "client_3")
    kept = [name for name in names if await granted.oauth_client(name) is not None]
    assert kept == ["client_one", "client_1", "client_2", "client_3"]
    assert await granted.sign_in(hash_api_key("late")) is None
    assert await granted.sign_in(hash_api_key("waiting")) is not None
    assert await granted.oauth_token(token().hash) is None
    assert await granted.oauth_token(REFRESH.hash) is not None
    assert await granted.authorization_code(CODE) is not None
    await granted.drop_stale_oauth(minutes(8999), minutes(8998))
    assert await granted.authorization_code(CODE) is None
    assert await granted.grants("user_one") == [grant()]
    await granted.drop_stale_oauth(minutes(9000), minutes(8998))
    assert await granted.grants("user_one") == []
    assert await granted.oauth_client("client_one") is None
    assert await granted.oauth_client("client_2") is not None


async def test_a_revocation_is_seen_by_every_open_store(backend: Backend, tmp_path: Path) -> None:
    if not backend.capabilities.shared:
        pytest.skip("the backend is private to its process")
    one, two = await backend.open(tmp_path), await backend.open(tmp_path)
    try:
        await fill(one)
        assert await one.exchange_code(CODE, [token()], minutes(1))
        assert await ended(two, token()) is None
        await one.revoke_grant("grant_one", minutes(2))
        assert await ended(two, token()) == minutes(2)
        assert not await two.exchange_code(CODE, [token("at_2")], minutes(3))
    finally:
        await one.close()
        await two.close()


async def ended(store: Store, token: Token) -> object:
    state = await store.oauth_token(token.hash)
    assert state is not None
    return state.grant.revoked_at
