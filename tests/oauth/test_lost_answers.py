"""A commit whose answer is lost on the way: what is good once is still used once, and works."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hivemem.storage.postgres import PostgresStore
from tests.storage.postgres.proxy import Proxy, proxy
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
from tests.support.postgres import Server, fresh_database, with_parameters

COMMIT = b"COMMIT\0"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    own = Server()
    yield own
    own.remove()


@pytest.fixture
async def between(server: Server, tmp_path: Path) -> AsyncIterator[Proxy]:
    async with proxy(server.socket, tmp_path) as running:
        yield running


@pytest.fixture
async def store(server: Server, between: Proxy, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    url = with_parameters(fresh_database(server.url), host=str(tmp_path))
    opened = await PostgresStore.open(url, connections=2, wait_seconds=5.0)
    yield opened
    await opened.close()


@pytest.mark.parametrize("when", ["cut_before", "cut_after"])
async def test_each_step_of_a_sign_in_happens_once(store: PostgresStore, between: Proxy, when: str) -> None:
    def cut() -> None:
        assert getattr(between, when) is None, "the line was not cut"
        setattr(between, when, COMMIT)

    code = authorization_code()
    await store.add_user(user(), graph())
    await store.add_key(api_key())
    cut()
    await store.put_oauth_client(oauth_client())
    cut()
    await store.add_sign_in(sign_in())
    cut()
    assert await store.allow_sign_in(sign_in().hash, grant(), code)
    assert await store.grants("user_one") == [grant()]
    cut()
    assert not await store.allow_sign_in(sign_in().hash, grant("grant_two"), code)
    cut()
    assert await store.exchange_code(code.hash, [token()], minutes(1))
    state = await store.oauth_token(token().hash)
    assert state is not None and state.token == token()
    cut()
    assert not await store.exchange_code(code.hash, [token("at_2")], minutes(2))
    cut()
    following = [token("at_3")]
    assert await store.exchange_refresh_token(token().hash, following, minutes(3), minutes(3))
    assert await store.oauth_token(following[0].hash) is not None
    cut()
    await store.revoke_grant("grant_one", minutes(4))
    assert await store.grants("user_one") == [grant(revoked_at=minutes(4))]
    assert getattr(between, when) is None
