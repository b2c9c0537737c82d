"""Two replicas on an empty database, once for each module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.replicas.replica import Caller, Replica
from tests.support.postgres import fresh_database

Pair = tuple[Caller, Caller]


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Replica, Replica]]:
    folder = tmp_path_factory.mktemp("replicas")
    url = fresh_database()
    with Replica(folder / "one", url) as one, Replica(folder / "other", url) as other:
        yield one, other


@pytest.fixture
async def pair(replicas: tuple[Replica, Replica]) -> AsyncIterator[Pair]:
    """A caller of each replica."""
    one, other = replicas
    assert one.key
    callers = Caller(one, one.key), Caller(other, one.key)
    yield callers
    for caller in callers:
        await caller.close()
