"""What the tests of copies share: a database with a row in every table, and its rows."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from hivemem.domain.files import StoredFile
from hivemem.domain.oauth import TokenKind
from hivemem.domain.skills import CustomSkill, SkillFile
from hivemem.domain.tokens import TokenReport
from hivemem.service.copying import CopyResult, copy_database
from hivemem.storage.sqlite import SqliteStore
from hivemem.storage.sqlite.rows import SqliteSource, SqliteTarget
from hivemem.storage.tables import TABLES
from tests.support.builders import (
    api_key,
    audit_event,
    authorization_code,
    batch,
    create,
    delete,
    edge,
    entry,
    external_identity,
    grant,
    graph,
    hyperedge,
    invitation,
    minutes,
    node,
    oauth_client,
    organization,
    passage,
    sign_in,
    token,
    update,
    user,
    vectors,
)

GRAPH = "graph_one"


async def fill(path: Path, nodes: int = 5) -> None:
    """Write `nodes` nodes, in a ring of edges, and something of every other kind."""
    store = await SqliteStore.open(path)
    try:
        await store.add_user(user(), graph())
        await store.add_key(api_key())
        await store.add_organization(organization(), "user_one")
        await store.add_invitation(invitation())
        await store.add_external_identity(external_identity())
        await store.add_audit_events([audit_event(user_id="user_one", detail={"é": [1]}), audit_event()])
        keys = [f"n_{number:05}" for number in range(nodes)]
        things: list[Any] = [
            create(node(key, "日本語 'x' " * 9), vectors(passage(1.5, -0.0))) for key in keys
        ]
        things += [
            edge(key, after, description="") for key, after in zip(keys, keys[1:] + keys[:1], strict=True)
        ]
        things += [hyperedge(*keys[:3]), node("gone_1"), entry(node_key=keys[0], meta={"é": 1.0})]
        await store.apply(GRAPH, batch(*things))
        gone = (await store.nodes(GRAPH, ["gone_1"]))["gone_1"]
        await store.apply(GRAPH, batch(delete(gone), at=minutes(1)))
        await store.touch(GRAPH, "session ☕", keys[:2], minutes(2))
        report = TokenReport(
            event_id="event_1",
            user_id="user_one",
            session_id="session ☕",
            turn_sequence=1,
            report={"tokens": 2**40},
            recorded_at=minutes(3),
        )
        await store.record_tokens(GRAPH, report)
        file = StoredFile(
            file_id="file_1",
            filename="Übersicht.PNG",
            file_type="image",
            content_type="image/png",
            size_bytes=2**40,
            sha256="0" * 64,
            node_key=keys[0],
            summary="",
            created_at=minutes(3),
        )
        await store.add_file(GRAPH, file)
        tool = SkillFile(path="tool.py", content="print()", content_type="text/x-python")
        skill = CustomSkill(
            skill_id="skill_1",
            name="tidy-up",
            version="0.1.0",
            content="Tidy up.",
            files=(tool,),
            published_at=minutes(3),
        )
        await store.put_skill(GRAPH, skill)
        await store.put_oauth_client(oauth_client())
        await store.add_sign_in(sign_in())
        await store.add_sign_in(sign_in("waiting"))
        await store.allow_sign_in(sign_in().hash, grant(), authorization_code())
        tokens = [token("at_1"), token("rt_1", kind=TokenKind.REFRESH)]
        await store.exchange_code(authorization_code().hash, tokens, minutes(4))
    finally:
        await store.close()


async def describe(path: Path, key: str, description: str) -> None:
    """One more write to a database that `fill` made."""
    store = await SqliteStore.open(path)
    try:
        found = (await store.nodes(GRAPH, [key])).get(key)
        change = create(node(key, description)) if found is None else update(found, description=description)
        await store.apply(GRAPH, batch(change))
    finally:
        await store.close()


def filled(path: Path, nodes: int = 5) -> Path:
    """`path`, with a database that `fill` made."""
    asyncio.run(fill(path, nodes))
    return path


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, by SQL of its own."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return {
            table.name: sorted(connection.execute(f"SELECT * FROM {table.name}"), key=repr)
            for table in TABLES
        }


def copied(source: Path, target: Path, **options: Any) -> CopyResult:
    """Copy a file to another."""
    with (
        contextlib.closing(SqliteSource.open(source)) as reading,
        contextlib.closing(SqliteTarget.open(target)) as writing,
    ):
        return copy_database(reading, writing, **{"report": lambda *_: None, **options})
