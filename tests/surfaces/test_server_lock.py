"""The lock of a data directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hivemem.errors import Conflict
from hivemem.server_lock import FILE_NAME, Holder, ServerLock, read_holder


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


@pytest.mark.parametrize("note", ["", "{", "[]", '{"pid": "x", "address": 1}'])
def test_an_unreadable_note_is_no_reason_to_fail(tmp_path: Path, note: str) -> None:
    (tmp_path / FILE_NAME).write_text(note)
    assert read_holder(tmp_path) is None
