"""The lock of a data directory."""

from __future__ import annotations

import os
from pathlib import Path

import httpx2
import pytest

from hivemem.errors import Conflict
from hivemem.server_lock import FILE_NAME, Holder, ServerLock, read_holder
from tests.surfaces.serving import REST, Server, bearer


def test_a_second_holder_is_told_about_the_first(tmp_path: Path) -> None:
    lock = ServerLock.acquire(tmp_path, "127.0.0.1:0")
    lock.note("127.0.0.1:8477")
    assert read_holder(tmp_path) == Holder(pid=os.getpid(), address="127.0.0.1:8477")
    with pytest.raises(Conflict) as raised:
        ServerLock.acquire(tmp_path, "127.0.0.1:9000")
    assert raised.value.code == "already_running"
    assert raised.value.facts == {"pid": os.getpid(), "address": "127.0.0.1:8477"}
    lock.release()
    lock.release()
    ServerLock.acquire(tmp_path, "127.0.0.1:9000").release()


def test_a_file_left_behind_locks_nobody_out(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"pid": 1, "address": "127.0.0.1:1"}')
    lock = ServerLock.acquire(tmp_path, "127.0.0.1:8477")
    assert read_holder(tmp_path) == Holder(pid=os.getpid(), address="127.0.0.1:8477")
    lock.release()
    assert read_holder(tmp_path) is None


def test_the_way_to_the_server_is_for_its_user_alone(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).touch(mode=0o644)
    lock = ServerLock.acquire(tmp_path, "127.0.0.1:0")
    lock.note("127.0.0.1:8477", "http://127.0.0.1:8477")
    holder = read_holder(tmp_path)
    assert holder is not None
    assert (holder.url, holder.token) == ("http://127.0.0.1:8477", lock.token)
    assert lock.token not in repr(holder)
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    lock.release()
    other = ServerLock.acquire(tmp_path, "127.0.0.1:0")
    assert other.token != lock.token
    other.release()


def test_the_token_in_the_lock_file_is_the_owner_s_for_as_long_as_the_server_runs(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        holder = read_holder(tmp_path)
        assert holder is not None and holder.url == server.url and holder.token is not None
        stored = httpx2.post(
            f"{server.url}{REST}/store",
            json={"key": "fact_a", "description": "Stored with the token."},
            headers=bearer(holder.token),
        )
        assert stored.status_code == 200
        wrong = httpx2.get(f"{server.url}{REST}/overview", headers=bearer(holder.token[:-1] + "!"))
        assert wrong.status_code == 401
    with Server(tmp_path) as server:
        late = httpx2.get(f"{server.url}{REST}/overview", headers=bearer(holder.token))
        assert late.status_code == 401


@pytest.mark.parametrize("note", ["", "{", "[]", '{"pid": "x", "address": 1}'])
def test_an_unreadable_note_is_no_reason_to_fail(tmp_path: Path, note: str) -> None:
    (tmp_path / FILE_NAME).write_text(note)
    assert read_holder(tmp_path) is None
